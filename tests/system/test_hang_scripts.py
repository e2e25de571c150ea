"""The scripts of the probe `hang`, run for real on this machine against a process made for the test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictool.model import Unreadable, Value
from fabrictool.prove.hang_job import to_look_at
from fabrictool.snapshot import Snapshot
from fabrictool.system.hang_sections import MOST, MOVING, Target, by_process, of_node
from fabrictool.system.phases import Phase
from fabrictool.system.ranks import Rank, view
from fabrictool.system.sockets import Socket
from tests.snapshot.shells import as_root, collect, every_shell, tool_folder
from tests.specs import node_spec
from tests.system.jobs import Proc, consumers_of, job

TOOLS = ("sh", "cat", "cut", "tail", "head", "grep", "sed", "tr", "base64", "gzip", "timeout", "cksum", "id", "env", "readlink", "date",
         "sleep")
CHILD = ("import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname()[1], flush=True); "
         "sys.stdin.read()")


@contextmanager
def child(log: Path) -> Iterator[tuple[int, int]]:
    """A process with a socket that listens on loopback: (pid, port). It ends with the test, whatever happens."""
    with log.open("w") as err, subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True,
            env={"RANK": "3", "WORLD_SIZE": "4", "NCCL_DEBUG": "INFO", "HF_TOKEN": "hf_abcdefghijklmnopqrst", "PATH": "/usr/bin"}) as made:
        try:
            assert made.stdout is not None
            yield made.pid, int(made.stdout.readline())
        finally:
            made.kill()


def look(shell: tuple[str, ...], pid: int, tools: Path) -> tuple[Rank, Snapshot]:
    target = Target(pid, "docker:x")
    asked = [s for s in of_node((target,)) if s is not MOVING]  # it takes three seconds
    seen = by_process(collect(shell, asked, tools=tools, lanes=4))
    return view(seen, (target,), {pid: 1_700_000_000.0}).ranks[0], seen


@every_shell
@as_root
def test_a_process_as_the_probe_sees_it(shell: tuple[str, ...], tmp_path: Path) -> None:
    tools = tool_folder(tmp_path / "bin", *TOOLS)
    log = tmp_path / "log"
    with child(log) as (pid, _):
        with log.open("a") as more:
            more.write("NCCL WARN something\nsecret prompt of a user\nGloo connectFullMesh failed\n")
        rank, seen = look(shell, pid, tools)
    assert (rank.number, rank.world) == (3, 4)
    assert rank.get("NCCL_DEBUG") == "INFO"
    assert rank.get("HF_TOKEN") is None
    assert "hf_abc" not in "".join(got.out for got in seen.sections.values())
    assert rank.log == Value("NCCL WARN something\nGloo connectFullMesh failed\n")
    assert (rank.tool, rank.phase) == ("kernel", Phase.UNKNOWN)
    assert not rank.gone
    assert isinstance(rank.hosts, Value)
    assert rank.hosts.value.hostname == socket.gethostname()
    assert isinstance(rank.age_s, Value)
    gone, _ = look(shell, pid, tools)
    assert gone.gone
    assert isinstance(gone.env, Unreadable)


@as_root
def test_sockets_of_the_process(tmp_path: Path) -> None:
    tools = tool_folder(tmp_path / "bin", *TOOLS, "ss")
    with child(tmp_path / "log") as (pid, port):
        rank, _ = look(("dash",), pid, tools)
    assert rank.sockets == (Socket("LISTEN", "127.0.0.1", port, "0.0.0.0", 0, frozenset({pid})),)


@every_shell
@as_root
def test_sockets_of_another_network_that_cannot_be_read(shell: tuple[str, ...], tmp_path: Path) -> None:
    """No list is not an empty list: that would say that nothing listens, and nobody waits for an answer."""
    tools = tool_folder(tmp_path / "bin", *TOOLS)
    (tools / "readlink").unlink()
    (tools / "readlink").write_text('#!/bin/sh\ncase $1 in *self*) echo "net:[1]" ;; *) echo "net:[2]" ;; esac\n')
    for body, known in (("exit 1", False), ("echo 'LISTEN 0 128 10.1.1.1:4000 0.0.0.0:*'; exit 1", False), ("exit 127", False),
                        ("echo 'LISTEN 0 128 10.1.1.1:4000 0.0.0.0:*'", True)):
        (tools / "nsenter").write_text(f"#!/bin/sh\n{body}\n")
        for name in ("readlink", "nsenter"):
            (tools / name).chmod(0o755)
        with child(tmp_path / "log") as (pid, _):
            rank, _ = look(shell, pid, tools)
        assert isinstance(rank.sockets, tuple) is known, body


@every_shell
@as_root
def test_a_stack_tool_is_used_where_there_is_one(shell: tuple[str, ...], tmp_path: Path) -> None:
    tools = tool_folder(tmp_path / "bin", *TOOLS)
    dump = ('#!/bin/sh\ncase "$*" in *native*) [ -z "$REFUSE" ] || exit 1; frame="accept (libc.so.6)" ;; *) frame="x (y.py:1)" ;; esac\n'
            'for last; do :; done\nprintf \'Process %s: python3\\nThread %s (idle): "MainThread"\\n    %s\\n\' "$last" "$last" "$frame"\n')
    for refuse, told in (("", "accept"), ("1", "x")):
        (tools / "py-spy").write_text(dump.replace("$REFUSE", refuse))
        (tools / "py-spy").chmod(0o755)
        with child(tmp_path / "log") as (pid, _):
            rank, _ = look(shell, pid, tools)
        assert (rank.tool, rank.phase) == ("py-spy", Phase.OTHER)
        assert rank.stand.frame is not None
        assert rank.stand.frame.function == told


@as_root
@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_the_real_gdb(tmp_path: Path) -> None:
    tools = tool_folder(tmp_path / "bin", *TOOLS, "gdb")
    with child(tmp_path / "log") as (pid, _):
        rank, seen = look(("dash",), pid, tools)
    assert (rank.tool, rank.phase) == ("gdb", Phase.OTHER), seen.sections[f"hang.stack[{pid}]"]
    assert rank.stand.frame is not None


@as_root
def test_whether_rdma_moves() -> None:
    seen = collect(("dash",), [MOVING])
    got = view(seen, (), {}).moving
    assert isinstance(got, Unreadable | Value)


def test_only_processes_of_named_consumers_are_looked_at() -> None:
    snap = job({"spark01": [Proc(100, 0), Proc(101, 1)]}).snaps["spark01"]
    assert [(t.pid, t.label, t.box) for t in to_look_at(node_spec(), snap)] == [(n, "docker:vllm-a", "a" * 64) for n in (100, 101)]
    other = node_spec(env={"write": [], "consumers": ["docker:sglang-*"]})
    assert to_look_at(other, snap) == ()
    assert to_look_at(node_spec(env={"write": [], "consumers": []}), snap) == ()
    names = [s.name for s in of_node(to_look_at(node_spec(), snap))]
    assert names[:4] == ["hang.clock", "hang.moving", "hang.sockets", "hang.gpu"]
    assert {n.rsplit(".", 1)[0] for n in names[4:]} == {f"hang.{w}" for w in ("stack", "env", "hosts", "log", "sockets")}
    many = consumers_of([Proc(n, n) for n in range(100, 200)])
    crowd = Snapshot("spark01", {"consumers": many})
    assert len(of_node(to_look_at(node_spec(), crowd))) == 4 + 5 * MOST
    assert os.getpid() > 0
