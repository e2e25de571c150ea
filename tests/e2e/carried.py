"""What a run has started on lab nodes, seen from the machine around them: /proc of the host, whatever the nodes' own tools say."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.lab.handle import Lab

PROC = Path("/proc")
RUN = "FABRICTOOL_RUN"
ESTABLISHED = "01"


@dataclass(frozen=True)
class Process:
    """A process of a node. `parent`: its parent's words; `environ`: without what holds no `=`."""

    node: str
    pid: int
    argv: tuple[str, ...]
    parent: tuple[str, ...]
    environ: Mapping[str, str] = field(compare=False)

    @property
    def program(self) -> str:
        return os.path.basename(self.argv[0]) if self.argv else ""

    @property
    def run(self) -> str:
        return self.environ.get(RUN, "")


def _words(pid: str, name: str) -> tuple[str, ...]:
    try:
        data = (PROC / pid / name).read_bytes()
    except OSError:  # it has ended, or is the kernel's
        return ()
    return tuple(w.decode("utf-8", "replace") for w in data.split(b"\0") if w)


def _parent(pid: str) -> str:
    with suppress(OSError, IndexError):
        return (PROC / pid / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
    return ""


def processes(lab: Lab) -> Iterator[Process]:
    """All processes of all nodes."""
    nodes = {os.readlink(f"/proc/{lab.pid(name)}/ns/net"): name for name in lab.nodes}
    for pid in filter(str.isdigit, os.listdir(PROC)):
        with suppress(OSError):
            node = nodes.get(os.readlink(f"/proc/{pid}/ns/net"))
            if node:
                environ = dict(w.split("=", 1) for w in _words(pid, "environ") if "=" in w)
                yield Process(node, int(pid), _words(pid, "cmdline"), _words(_parent(pid), "cmdline"), environ)


def naming(lab: Lab, run: str) -> list[str]:
    """Processes with the run's id in their environment or in their words."""
    return [f"{p.node} {p.pid} {' '.join(p.argv)}" for p in processes(lab)
            if any(run in value for value in (*p.environ.values(), *p.argv))]


def peers(process: Process) -> frozenset[str]:
    """IPv4 addresses that it is connected to by TCP, without its own node's loopback."""
    found = set()
    with suppress(OSError):
        mine = {os.readlink(fd) for fd in (PROC / str(process.pid) / "fd").iterdir()}
        for line in (PROC / str(process.pid) / "net" / "tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == ESTABLISHED and f"socket:[{words[9]}]" in mine:
                raw = bytes.fromhex(words[2].partition(":")[0])
                found.add(".".join(str(b) for b in reversed(raw)))
    return frozenset(a for a in found if not a.startswith("127."))


@dataclass
class Watched:
    """`seen`: every process that carried a run's id, once; `connected`: program -> addresses that one of that name was connected to."""

    seen: dict[tuple[str, int, tuple[str, ...]], Process] = field(default_factory=dict)
    connected: dict[str, set[str]] = field(default_factory=dict)

    def of(self, program: str) -> list[Process]:
        return [p for p in self.seen.values() if p.program == program]


@contextmanager
def watched(lab: Lab) -> Iterator[Watched]:
    """Looks again and again, until the block is left."""
    got, over = Watched(), threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            for p in processes(lab):
                if p.run:
                    got.seen[p.node, p.pid, p.argv] = p
                    got.connected.setdefault(p.program, set()).update(peers(p))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield got
    finally:
        over.set()
        thread.join()
