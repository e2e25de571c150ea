"""docker: ps, inspect, image inspect, logs, run, restart, stop, rm on the lab's containers. There is no exec: nobody may enter a
serving container."""

from __future__ import annotations

import fnmatch
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from fabrictool.lab.nodeside import container
from fabrictool.lab.nodeside.container import Container
from fabrictool.lab.nodeside.standins import docker_run
from fabrictool.lab.nodeside.state import edit
from fabrictool.lab.nodeside.tool import Answer, Call

LOCKED = False  # a container's program may be a stand-in itself
STATE = Path("/opt/fabrictool-lab/node/state.json")
DENIED = ("permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: "
          "Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.47/containers/json\": dial unix /var/run/docker.sock: connect: permission denied\n")


def _facts(c: Container) -> dict[str, Any]:
    """What `docker inspect` says, as far as anybody asks."""
    return {
        "Id": c.id, "Created": c.created, "Name": f"/{c.name}", "Path": c.cmd[0] if c.cmd else "", "Args": c.cmd[1:],
        "Image": container.image_id(c.image),
        "State": {"Status": "running" if c.running else "exited", "Running": c.running, "Pid": c.pid if c.running else 0,
                  "StartedAt": c.created, "ExitCode": 0},
        "HostConfig": {"NetworkMode": c.network, "RestartPolicy": {"Name": "no"}},
        "Config": {"Hostname": c.hostname, "Image": c.image, "Cmd": c.cmd, "Env": [f"{k}={v}" for k, v in c.env.items()], "Labels": {}},
        "NetworkSettings": {"Networks": {c.network: {}}},
    }


def _row(c: Container, whole: bool) -> dict[str, Any]:
    return {"ID": c.id if whole else c.id[:12], "Names": c.name, "Image": c.image, "Status": "Up 2 hours" if c.running else "Exited (0)",
            "State": "running" if c.running else "exited", "Command": json.dumps(" ".join(c.cmd)), "CreatedAt": c.created,
            "Networks": c.network, "Ports": "", "Labels": ""}


class TemplateError(Exception):
    """Docker's text."""


def template(text: str, facts: dict[str, Any]) -> str:
    """Go templates as far as `{{.A.B}}` and `{{json .A.B}}` go."""
    def one(m: re.Match[str]) -> str:
        body = m[1].strip()
        as_json = body.startswith("json ")
        path = body.removeprefix("json ").strip()
        if not re.fullmatch(r"\.([A-Za-z]\w*(\.[A-Za-z]\w*)*)?", path):
            raise TemplateError(f"template parsing error: template: :1: unexpected {path!r}")
        value: Any = facts
        for key in [k for k in path.split(".") if k]:
            if not isinstance(value, dict) or key not in value:
                raise TemplateError(f'template: :1:2: executing "" at <{path}>: map has no entry for key "{key}"')
            value = value[key]
        if as_json:
            return json.dumps(value, separators=(",", ":"))
        return ("true" if value else "false") if isinstance(value, bool) else str(value)
    return re.sub(r"\{\{(.*?)\}\}", one, text.removeprefix("table ").replace("\\t", "\t"))


def _image(c: Container) -> dict[str, Any]:
    repository = c.image.partition("@")[0].rpartition(":")[0] or c.image
    return {"Id": container.image_id(c.image), "RepoTags": [c.image],
            "RepoDigests": [f"{repository}@sha256:{container.image_id(c.image)[7:][::-1]}"], "Architecture": "arm64", "Os": "linux"}


def _images(call: Call, found: list[Container], words: list[str]) -> Answer:
    """`image inspect`: of images that the node has, by name or id. Those of its containers it has in any case."""
    have = {name: container.new("", name, {}, [], "host") for name in call.node.images} | {c.image: c for c in found}
    by_id = {container.image_id(name): c for name, c in have.items()}
    shape, names = _shape(words)
    hits, out, err = [], "", ""
    for name in names:
        c = have.get(name) or by_id.get(name)
        if c is None:
            err += f"Error response from daemon: No such image: {name}\n"
            continue
        hits.append(_image(c))
        out += template(shape, hits[-1]) + "\n" if shape else ""
    return Answer(1 if err else 0, out if shape else json.dumps(hits, indent=4) + "\n", err)


def _logs(found: list[Container], words: list[str]) -> Answer:
    """Both streams as one: a container's log is not split here."""
    tail, queue, name = "", list(words), ""
    while queue:
        word = queue.pop(0)
        if word in ("-n", "--tail"):
            tail = queue.pop(0) if queue else ""
        elif word.startswith("--tail="):
            tail = word.partition("=")[2]
        elif not word.startswith("-"):
            name = word
    c = _find(found, name)
    if c is None:
        return Answer(1, "", f"Error response from daemon: No such container: {name}\n")
    try:
        lines = container.log_of(c).read_text(errors="surrogateescape").splitlines(keepends=True)
    except OSError:
        lines = []
    return Answer(0, "".join(lines[-int(tail):] if tail.isdigit() else lines))


def _find(found: list[Container], key: str) -> Container | None:
    return next((c for c in found if c.name == key.lstrip("/") or c.id == key or (len(key) >= 4 and c.id.startswith(key))), None)


def _ps(found: list[Container], words: list[str]) -> Answer:
    words = [w for word in words for w in ([f"-{c}" for c in word[1:]] if re.fullmatch("-[aqnls]+", word) else [word])]
    quiet = "-q" in words or "--quiet" in words
    everything, whole = "-a" in words or "--all" in words, "--no-trunc" in words
    pairs = list(pairwise([*words, ""]))
    shape = next((b if a == "--format" else a.partition("=")[2] for a, b in pairs if a.startswith("--format")), "")
    filters = [b for a, b in pairs if a in ("-f", "--filter")]
    names = [f.partition("=")[2] for f in filters if f.startswith("name=")]
    rows = [_row(c, whole) for c in found if (everything or c.running) and all(fnmatch.fnmatch(c.name, f"*{n}*") for n in names)]
    if quiet:
        return Answer(0, "".join(f"{r['ID']}\n" for r in rows))
    if shape == "json":
        return Answer(0, "".join(json.dumps(r) + "\n" for r in rows))
    if shape:
        return Answer(0, "".join(template(shape, r) + "\n" for r in rows))
    head = f"{'CONTAINER ID':<15}{'IMAGE':<30}{'STATUS':<15}NAMES\n"
    return Answer(0, head + "".join(f"{r['ID']:<15}{r['Image']:<30}{r['Status']:<15}{r['Names']}\n" for r in rows))


def _shape(words: list[str]) -> tuple[str, list[str]]:
    """The template of `-f`, and the names."""
    shape, names = "", []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word in ("-f", "--format"):
            shape = queue.pop(0) if queue else ""
        elif word.startswith("--format="):
            shape = word.partition("=")[2]
        elif word not in ("--type", "container", "--type=container"):
            names.append(word)
    return shape, names


def _inspect(found: list[Container], words: list[str]) -> Answer:
    shape, names = _shape(words)
    hits, out, err = [], "", ""
    for name in names:
        c = _find(found, name)
        if c is None:
            err += f"Error response from daemon: No such container: {name}\n"
            continue
        hits.append(_facts(c))
        out += template(shape, hits[-1]) + "\n" if shape else ""
    return Answer(1 if err else 0, out if shape else json.dumps(hits, indent=4) + "\n", err)


def _change(words: list[str], verb: str) -> Answer:
    names = [w for w in words if not w.startswith("-") and not w.isdigit()]
    out, err = "", ""
    for name in names:
        with edit(STATE) as node:
            found = [container.of(raw) for raw in node.containers]
            c = _find(found, name)
            if c is None:
                err += f"Error response from daemon: No such container: {name}\n"
                continue
            if verb == "rm":
                container.remove(c)
                found.remove(c)
            else:
                container.stop(c)
                if verb in ("restart", "start"):
                    container.start(c)
            node.containers = [x.kept() for x in found]
        out += f"{name}\n"
    return Answer(1 if err else 0, out, err)


def run(call: Call) -> Answer:
    if not call.root:
        return Answer(1, "", DENIED)
    found = [container.of(raw) for raw in call.node.containers]
    verb, words = (call.argv[0], call.argv[1:]) if call.argv else ("help", [])
    if verb == "container" and words:
        verb, words = words[0], words[1:]
    try:
        if verb in ("ps", "ls"):
            return _ps(found, words)
        if verb == "inspect":
            return _inspect(found, words)
        if verb == "image" and words[:1] == ["inspect"]:
            return _images(call, found, words[1:])
        if verb == "logs":
            return _logs(found, words)
        if verb == "run":
            return docker_run.run(call, words)
        if verb in ("stop", "kill", "start", "restart", "rm"):
            return _change(words, verb)
    except TemplateError as error:
        return Answer(64, "", f"{error}\n")
    if verb in ("version", "--version", "-v"):
        return Answer(0, "Docker version 27.5.1, build 9f9e405\n")
    if verb == "exec":
        return Answer(126, "", "Error response from daemon: this lab lets nobody into a container\n")
    return Answer(1, "", f"docker: '{verb}' is not a docker command.\nSee 'docker --help'\n")
