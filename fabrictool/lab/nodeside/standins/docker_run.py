"""docker run: in the background, or in the foreground with both streams and the exit status of the container's program."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.lab.nodeside import container
from fabrictool.lab.nodeside.container import Container
from fabrictool.lab.nodeside.state import edit
from fabrictool.lab.nodeside.tool import Answer, Call

STATE = Path("/opt/fabrictool-lab/node/state.json")
FLAGS = ("-d", "--detach", "--rm", "--privileged", "-it", "-i", "-t", "--init", "--interactive", "--tty", "--read-only")
TAKE = ("-e", "--env", "--env-file", "--name", "--network", "--net", "-h", "--hostname", "-v", "--volume", "--device", "-w", "--workdir",
        "--entrypoint", "--pull", "--ipc", "--gpus", "--ulimit", "-u", "--user", "--shm-size", "--cap-add", "--security-opt", "--label",
        "--restart", "--pid", "--uts", "--memory", "-m", "--cpus", "-p", "--publish", "--runtime", "--log-opt", "--log-driver")
LOOK_S = 0.2


@dataclass
class Asked:
    """The command line."""

    flags: set[str] = field(default_factory=set)
    values: list[tuple[str, str]] = field(default_factory=list)
    image: str = ""
    cmd: list[str] = field(default_factory=list)
    unknown: str = ""

    def all(self, *names: str) -> list[str]:
        return [v for k, v in self.values if k in names]

    def last(self, *names: str) -> str:
        return next(reversed(self.all(*names)), "")


def parse(words: list[str]) -> Asked:
    asked, queue = Asked(), list(words)
    while queue and queue[0].startswith("-"):
        key, eq, value = queue.pop(0).partition("=")
        if key in FLAGS:
            asked.flags.add(key)
        elif key in TAKE:
            asked.values.append((key, value if eq else queue.pop(0) if queue else ""))
        else:
            asked.unknown = key
            return asked
    asked.image, asked.cmd = (queue[0], queue[1:]) if queue else ("", [])
    return asked


def env_file(path: str) -> dict[str, str]:
    """Docker's own rules: no quotes, no expansion; a name alone takes nothing here."""
    lines = [line for line in Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {line.partition("=")[0].lstrip(): line.partition("=")[2] for line in lines if "=" in line}


def _environment(call: Call, asked: Asked) -> dict[str, str]:
    """Files first, then single ones; a name without a value takes the caller's. OSError with the file's name."""
    found: dict[str, str] = {}
    for path in asked.all("--env-file"):
        found.update(env_file(path))
    for word in asked.all("-e", "--env"):
        name, eq, value = word.partition("=")
        if eq:
            found[name] = value
        elif name in call.caller.environ:
            found[name] = call.caller.environ[name]
    return found


def _failed(text: str) -> Answer:
    return Answer(125, "", f"docker: Error response from daemon: {text}.\n")


def run(call: Call, words: list[str]) -> Answer:
    asked = parse(words)
    if asked.unknown:
        return Answer(125, "", f"unknown flag: {asked.unknown}\n\nRun 'docker run --help' for more information\n")
    if not asked.image:
        return Answer(1, "", "docker: 'docker run' requires at least 1 argument.\n")
    if asked.last("--pull") == "never" and asked.image not in call.node.images:
        return _failed(f"No such image: {asked.image}")
    devices = [d.partition(":")[0] for d in asked.all("--device")]
    gone = next((d for d in devices if not os.path.exists(d)), "")
    if gone:
        return _failed(f'error gathering device information while adding custom device "{gone}": no such file or directory')
    if "--privileged" in asked.flags and os.path.isdir("/dev/infiniband"):
        devices.append("/dev/infiniband")
    try:
        env = _environment(call, asked)
    except OSError as error:
        return Answer(125, "", f"docker: open {error.filename}: {(error.strerror or '').lower()}.\n")
    entry = asked.last("--entrypoint")
    made = container.new(asked.last("--name"), asked.image, env, [*([entry] if entry else []), *asked.cmd],
                         asked.last("--network", "--net") or "bridge", asked.last("-h", "--hostname"))
    made.devices, made.workdir = devices, asked.last("-w", "--workdir") or "/"
    made.mounts = [[*v.split(":"), "rw"][:3] for v in asked.all("-v", "--volume") if ":" in v]
    detached = bool({"-d", "--detach"} & asked.flags)
    with edit(STATE) as node:
        if any(raw.get("name") == made.name for raw in node.containers):
            return _failed(f'Conflict. The container name "/{made.name}" is already in use')
        if detached:
            node.containers.append(container.start(made).kept())
            return Answer(0, f"{made.id}\n")
        read_out, write_out = os.pipe()
        read_err, write_err = os.pipe()
        child = container.launch(made, write_out, write_err)
        node.containers.append(made.kept())
    os.close(write_out)
    os.close(write_err)
    container.show_cgroup(child.pid, f"/system.slice/docker-{made.id}.scope")
    return _attached(call, asked, made, child, read_out, read_err)


def _attached(call: Call, asked: Asked, made: Container, child: subprocess.Popen[bytes], out: int, err: int) -> Answer:
    """Until its program ends. A client that goes away passes its end on, as one that gets a signal does."""
    heard: dict[int, bytes] = {}

    def listen(descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as stream:
            heard[descriptor] = stream.read()

    listeners = [threading.Thread(target=listen, args=(d,), daemon=True) for d in (out, err)]
    for one in listeners:
        one.start()
    while child.poll() is None:
        if call.caller.gone(LOOK_S):
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(container.STOP_S)
                break
    for one in listeners:
        one.join(container.STOP_S)
    if "--rm" in asked.flags:
        with edit(STATE) as node:
            node.containers = [raw for raw in node.containers if raw.get("id") != made.id]
        container.remove(made)
    rc = child.returncode if child.returncode is not None else -signal.SIGKILL
    return Answer(rc if rc >= 0 else 128 - rc, *(heard.get(d, b"").decode("utf-8", "surrogateescape") for d in (out, err)))
