"""The scripts of the system room, run for real on this machine with a docker that is made for the test."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.snapshot import Section, Snapshot, collector
from fabrictool.snapshot.collector import resource
from fabrictool.spec.system import ContentSpec
from fabrictool.system import contents, sections
from fabrictool.system.containers import Boxes
from fabrictool.system.containers import read as boxes
from fabrictool.system.contents import Content
from fabrictool.system.processes import Process, missing
from fabrictool.system.processes import read as processes
from fabrictool.system.read import host, nccl, package
from tests.snapshot.shells import as_root, collect, every_shell, tool_folder
from tests.specs import node_spec
from tests.system.nodes import BOX, DIGEST, SHA

TOOLS = ("sh", "cat", "cut", "tail", "head", "grep", "sed", "sort", "tr", "base64", "gzip", "timeout", "cksum", "id", "env", "awk",
         "readlink", "sha256sum", "dpkg-query", "ldconfig", "uname", "rm", "mkdir", "uniq")


def docker(folder: Path, pid: int, broken: str = "") -> Path:
    """`ps`, `inspect` and `image inspect` of one container whose first process is `pid`."""
    tools = tool_folder(folder, *TOOLS)
    text = f"""#!/bin/sh
{broken}
case "$1 $2" in
  'ps '*) echo {BOX} ;;
  'image inspect') echo '{SHA} ["x@{DIGEST}"]' ;;
  'inspect -f') case $3 in
    '{{{{.State.Pid}}}} {{{{.Name}}}}') echo '{pid} /vllm-a' ;;
    '{{{{.State.Pid}}}}') echo {pid} ;;
    *) echo '{pid} {BOX} "/vllm-a" "x:1" "{SHA}" "running"' ;;
  esac ;;
  *) exit 1 ;;
esac
"""
    (tools / "docker").write_text(text)
    (tools / "docker").chmod(0o755)
    return tools


def one(shell: tuple[str, ...], section: Section, tools: Path, env: dict[str, str] | None = None) -> Snapshot:
    return collect(shell, [section], tools=tools, env=env)


@every_shell
def test_containers_and_images(shell: tuple[str, ...], tmp_path: Path) -> None:
    got = boxes(one(shell, sections.CONTAINERS, docker(tmp_path / "bin", os.getpid())))
    assert isinstance(got, Boxes), got
    assert [(b.name, b.image, b.image_id, b.running) for b in got.found] == [("vllm-a", "x:1", SHA, True)]
    assert got.digests == {SHA: frozenset({DIGEST})}
    assert not got.partial


@every_shell
def test_a_docker_that_refuses(shell: tuple[str, ...], tmp_path: Path) -> None:
    tools = docker(tmp_path / "bin", 1, "echo 'permission denied while trying to connect' >&2; exit 1")
    got = boxes(one(shell, sections.CONTAINERS, tools))
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.NEEDS_ROOT
    (tools / "docker").unlink()
    assert boxes(one(shell, sections.CONTAINERS, tools)) == Boxes()


@every_shell
def test_what_a_process_may_lock(shell: tuple[str, ...], tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], env={"NCCL_DEBUG": "INFO", "PATH": os.environ["PATH"]}) as child:
        try:
            got = processes(one(shell, sections.PROCESSES, docker(tmp_path / "bin", os.getpid())))
        finally:
            child.kill()
    assert not isinstance(got, Unreadable), got
    assert {os.getpid(), child.pid} <= set(got)
    mine = got[os.getpid()]
    assert isinstance(mine, Process)
    assert isinstance(mine.locked, Value)
    assert isinstance(mine.may_lock_all, Value)


@every_shell
@pytest.mark.parametrize(("broken", "reason"), [
    ("exit 1", Reason.FAILED), ("exit 124", Reason.TIMEOUT), ("case $1 in inspect) exit 1 ;; esac", Reason.FAILED),
    ("", Reason.NOT_COLLECTED), ("case $1 in ps) exit 0 ;; esac", Reason.NOT_COLLECTED),
], ids=["down", "hangs", "a broken inspect", "well", "nothing runs"])
def test_a_docker_that_does_not_tell_its_processes(shell: tuple[str, ...], broken: str, reason: Reason, tmp_path: Path) -> None:
    """Why a process may be missing; the others are told all the same."""
    snap = one(shell, sections.PROCESSES, docker(tmp_path / "bin", os.getpid(), broken))
    assert not isinstance(processes(snap), Unreadable)
    assert missing(snap).reason is reason


def probes(*specs: ContentSpec) -> Section:
    rows = [{"name": s.name, "path": s.path, "container": s.container, **({"text": s.text} if s.text else {})} for s in specs]
    want = node_spec(versions={"probes": rows})
    return next(s for s in sections.versions(want) if s.name == sections.CONTENTS)


@every_shell
def test_content_probes(shell: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "patch.py"
    file.write_bytes(b"a = 1\nb = '$HOME'\n\xff\n")
    (tmp_path / "link").symlink_to("patch.py")
    (tmp_path / "loop").symlink_to("loop")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    here = ContentSpec("a", str(file))
    specs = {
        "whole": here, "link": ContentSpec("b", str(tmp_path / "link")), "inside": ContentSpec("c", str(file), "vllm-*"),
        "text": ContentSpec("d", str(file), text="b = '$HOME'"), "other": ContentSpec("e", str(file), text="b = $HOME"),
        "dash": ContentSpec("f", str(file), text="-e a"), "gone": ContentSpec("g", str(tmp_path / "no/such")),
        "folder": ContentSpec("h", str(tmp_path)), "loop": ContentSpec("i", str(tmp_path / "loop")),
        "nowhere": ContentSpec("j", str(file), "sglang-*"), "regex": ContentSpec("k", str(file), text="a . 1"),
    }
    got = contents(one(shell, probes(*specs.values()), docker(tmp_path / "bin", os.getpid())))
    assert not isinstance(got, Unreadable), got
    found = {name: got.of(spec) for name, spec in specs.items()}
    assert found["whole"] == found["link"] == {"host": Value(Content(digest))}
    assert found["inside"] == {"vllm-a": Value(Content(digest))}
    told = {name: {"host": Value(Content(has_text=name == "text"))} for name in ("text", "other", "dash", "regex")}
    assert {name: found[name] for name in told} == told
    gone, folder, loop, nowhere = (found[n] for n in ("gone", "folder", "loop", "nowhere"))
    assert not isinstance(gone, Unreadable)
    assert isinstance(gone["host"], Absent)
    for odd in (folder, loop):
        assert not isinstance(odd, Unreadable)
        assert isinstance(odd["host"], Unreadable)
    assert isinstance(nowhere, Unreadable)
    assert "no container called sglang-*" in nowhere.why


def test_links_are_followed_as_the_container_sees_them(tmp_path: Path) -> None:
    """An absolute link leads to the container's own file, never to the host's, and `..` does not leave it."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "data" / "f").write_text("x")
    for name, to in (("abs", "/data"), ("rel", "data"), ("etc/up", "../../../../data/f"), ("host", "/etc/hostname"), ("a", "b"),
                     ("b", "a")):
        (root / name).symlink_to(to)
    text = resource("contents.sh")
    functions = text[:text.index("\nboxes\n")]
    for path, want in (("/abs/f", "/data/f"), ("/rel/f", "/data/f"), ("/etc/up", "/data/f"), ("/host", "/etc/hostname"),
                       ("/../../data//./f", "/data/f"), ("/data/f", "/data/f")):
        out = subprocess.run(["sh", "-c", f'{functions}\ninside "$1" "$2"; printf %s "$found"', "x", str(root), path], capture_output=True,
                             text=True, check=True).stdout
        assert out == f"{root}{want}", path
    loop = subprocess.run(["sh", "-c", f'{functions}\ninside "$1" /a; printf "[%s]" "$found"', "x", str(root)], capture_output=True,
                          text=True, check=True)
    assert loop.stdout == "[]"


@every_shell
def test_the_node_itself(shell: tuple[str, ...], tmp_path: Path) -> None:
    tools = tool_folder(tmp_path / "bin", *TOOLS)
    seen = collect(shell, [sections.HOST_FACTS, sections.PACKAGES, sections.LIBRARIES], tools=tools)
    got = host(seen)
    assert got.kernel == Value(os.uname().release)
    assert isinstance(got.locked, Value)
    assert isinstance(got.available_bytes, Value)
    assert got.available_bytes.value > 0
    assert not isinstance(package(seen, "no-such-package"), Unreadable)
    assert isinstance(nccl(seen), Absent | Value)


@as_root
@pytest.mark.parametrize("check", [sections.versions, sections.memlock, sections.rails, sections.kernel_log])
def test_all_sections_of_a_check_can_be_collected_together(check: object, tmp_path: Path) -> None:
    assert callable(check)
    want = node_spec(gpu={"model": "NVIDIA H20", "count": 8, "gpudirect": "required"})
    found = check(want)
    assert found
    names = [s.name for s in found]
    assert len(names) == len(set(names))
    seen = collect(("sh",), found, tools=docker(tmp_path / "bin", os.getpid()), lanes=4)
    assert [n for n in names if n not in seen.sections] == []
    assert "set -- " in collector.script(sections.kernel_log(want))


@every_shell
def test_a_tool_that_fails_is_no_proof_that_nothing_is_installed(shell: tuple[str, ...], tmp_path: Path) -> None:
    tools = tool_folder(tmp_path / "bin", *TOOLS)
    for ldconfig, dpkg, said in (("echo \"ldconfig: Can't open cache file\" >&2; exit 1", "exit 2", False),
                                 ("echo '1 libs found in cache'", "exit 1", True)):
        for name, body in (("ldconfig", ldconfig), ("dpkg-query", dpkg)):
            (tools / name).unlink(missing_ok=True)  # a link to the real one
            (tools / name).write_text(f"#!/bin/sh\n{body}\n")
            (tools / name).chmod(0o755)
        seen = collect(shell, [sections.PACKAGES, sections.LIBRARIES], tools=tools)
        for got in (nccl(seen), package(seen, "rdma-core")):
            assert isinstance(got, Absent if said else Unreadable), got
