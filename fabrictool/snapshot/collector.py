"""The program that collects all sections of a node in one remote exec: POSIX sh text made from `fabrictool/node/*.sh`.

It runs some sections at the same time (`LANES`), writes nothing to the disk, and prints one ASCII frame (frame.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as resources

from fabrictool.snapshot.sections import Each, Section

LANES = 4  # sections at the same time: mlnx_qos takes 0.2 s per interface, most of it asleep
TOTAL_S = 75  # a node on which every tool hangs still answers; sections not begun by then count as timed out
GRACE_S = 15  # past the total: what a section that cannot be ended may take (5 s), start-up, the frame
ARGUMENT_BYTES = 120_000  # one argument of execve: 128 KiB on Linux (MAX_ARG_STRLEN)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PEER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*")  # as in spec/schema.py; a shell takes none of these for its own
_KIND = {Each.NODE: "-", Each.PEERS: "P", Each.NETDEV: "N", Each.RDMA: "R"}


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: `argv`, with `stdin` as its standard input. `timeout_s`: how long the caller must be ready to wait, s."""

    argv: tuple[str, ...]
    stdin: str
    timeout_s: int


def script(sections: Sequence[Section], *, peers: Sequence[str] = (), lanes: int = LANES, total_s: int = TOTAL_S,
           sys: str = "/sys", proc: str = "/proc") -> str:
    """The whole program. `peers`: the names of all nodes, for sections that are repeated for `Each.PEERS`. `total_s`: no section
    begins later than that many seconds after the start, and none runs on past it.

    `sys` and `proc`: where interfaces and RDMA devices are looked for. Raises ValueError for a section that could not be framed.
    """
    _valid(sections)
    for peer in peers:
        if not _PEER.fullmatch(peer):
            raise ValueError(f"{peer!r} is no node name")
    if not 1 <= lanes <= 16 or total_s < 1:
        raise ValueError(f"lanes are 1..16 and total_s is at least 1, not {lanes} and {total_s}")
    calls = [_call(s) for s in sections] or ["  :"]
    arguments = (str(lanes), str(total_s), str(int(any(s.root for s in sections))), sys, proc, " ".join(peers))
    return "\n".join([
        f"run_text={shlex.quote(_program_text('run.sh'))}",
        f"record_text={shlex.quote(_program_text('record.sh'))}",
        "sections() {", *calls, "}",
        _program_text("collect.sh"),
        # Last and alone: when the text arrives cut short, nothing runs.
        f"collect {shlex.join(arguments)} </dev/null", "",
    ])


def program(sections: Sequence[Section], *, peers: Sequence[str] = (), lanes: int = LANES, total_s: int = TOTAL_S) -> Program:
    """The program on the standard input of `sh -s`: no quoting by any login shell, no limit on its size."""
    text = script(sections, peers=peers, lanes=lanes, total_s=total_s)
    return Program(("sh", "-s"), text, total_s + GRACE_S)


def argument(sections: Sequence[Section], *, peers: Sequence[str] = (), lanes: int = LANES, total_s: int = TOTAL_S) -> Program:
    """The program as one argument of `sh -c`, for callers without a standard input. Raises ValueError where it is too large."""
    text = script(sections, peers=peers, lanes=lanes, total_s=total_s)
    if len(text) > ARGUMENT_BYTES:
        raise ValueError(f"the collector has {len(text)} bytes, more than the {ARGUMENT_BYTES} of one argument: use program()")
    return Program(("sh", "-c", text), "", total_s + GRACE_S)


def resource(name: str) -> str:
    """The text of a file of `fabrictool/node/`."""
    return resources("fabrictool.node").joinpath(name).read_text(encoding="ascii")


def _program_text(name: str) -> str:
    """A file of `fabrictool/node/` without its comment lines: nodes need not read them."""
    return "\n".join(line for line in resource(name).splitlines() if not line.lstrip().startswith("#"))


def _valid(sections: Sequence[Section]) -> None:
    seen: set[str] = set()
    for s in sections:
        if not _NAME.fullmatch(s.name):
            raise ValueError(f"section name {s.name!r}: letters, digits, `_`, `.` and `-` only")
        if s.name in seen:
            raise ValueError(f"two sections are called {s.name!r}")
        if not s.shell.isascii() or "\0" in s.shell:
            raise ValueError(f"section {s.name!r}: its text must be ASCII")
        if s.timeout_s < 1 or s.max_bytes < 1:
            raise ValueError(f"section {s.name!r}: its limits must be at least 1")
        if s.args and (s.each is not Each.NODE or not all(a.isascii() and a.isprintable() for a in s.args)):
            raise ValueError(f"section {s.name!r}: arguments are printable ASCII, and only of a section that is not repeated")
        seen.add(s.name)


def _call(s: Section) -> str:
    text = f"set -- {shlex.join(s.args)}\n{s.shell}" if s.args else s.shell
    return f'  each {_KIND[s.each]} {s.name} {int(s.root)} {s.timeout_s} {s.max_bytes} {shlex.quote(text)} "$@"'
