"""What a run has left on a node: from the answer of fetch.sh to the sections of a recording. Pure, and never raises on garbage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Captured

_HEAD = re.compile(rb"@ ([A-Za-z0-9._-]{1,200}) ([0-9]{1,15}) ([0-9]{1,9})")
_STATUS = re.compile(r"([0-9]{1,3}) ([0-9]{1,12})\s*")
KILLED = 137  # a program that left no status: what it ran in was ended from outside
CONTAINER = "container"  # the section of the container itself, where its start is what failed


@dataclass(frozen=True, slots=True)
class Piece:
    """One file, or its beginning (`cut`)."""

    text: str
    cut: bool


def pieces(out: str) -> Mapping[str, Piece] | Unreadable:
    """The files by name. Whole or not at all: what comes after a break in the stream would be read as something else."""
    data = out.encode("utf-8", "surrogateescape")
    found: dict[str, Piece] = {}
    at = 0
    while at < len(data):
        stop = data.find(b"\n", at)
        line = data[at:stop] if stop >= 0 else data[at:]
        if line == b"end" and stop in (-1, len(data) - 1):
            return found
        head = _HEAD.fullmatch(line)
        if head is None or stop < 0:
            break
        sent = int(head[3])
        body = data[stop + 1:stop + 1 + sent]
        at = stop + 1 + sent
        name = head[1].decode()
        if len(body) != sent or data[at:at + 1] != b"\n" or name in found:
            break
        found[name] = Piece(body.decode("utf-8", "surrogateescape"), int(head[2]) > sent)
        at += 1
    return Unreadable(Reason.CUT, "what the run has left on the node: the answer is not whole")


def sections(found: Mapping[str, Piece]) -> dict[str, Captured]:
    """As a recording keeps them: `launcher`, `rank[N]`, `nccl.log[HOST.PID]`, `result.json`, `clock.start`, `container`."""
    out: dict[str, Captured] = {}
    for label in sorted({n.rpartition(".")[0] for n in found if n.endswith((".rc", ".out", ".err"))}, key=lambda s: (len(s), s)):
        section = _section(label)
        if section:
            out[section] = _program(label, found)
    for name, piece in found.items():
        stem, _, kind = name.rpartition(".")
        if kind == "log" and stem:
            out[f"nccl.log[{stem}]"] = Captured(0, piece.text, cut=piece.cut)
        elif name == "result.json":
            out[name] = Captured(0, without_environment(piece.text), cut=piece.cut)
        elif name == "clock.start":
            out[name] = Captured(0, piece.text)
    return out


def _section(label: str) -> str:
    if label in ("launcher", "box"):
        return label if label == "launcher" else CONTAINER
    return f"rank[{label}]" if re.fullmatch(r"[0-9]{1,6}", label) else ""


def _program(label: str, found: Mapping[str, Piece]) -> Captured:
    nothing = Piece("", False)
    out, err, status = (found.get(f"{label}.{kind}", nothing) for kind in ("out", "err", "rc"))
    told = _STATUS.fullmatch(status.text)
    rc, ms = (int(told[1]), int(told[2])) if told and int(told[1]) < 256 else (KILLED, 0)
    return Captured(rc, out.text, err.text, ms, out.cut, err_cut=err.cut)


_ENV = re.compile(r'"env"\s{0,40}:\s{0,40}\[')


def without_environment(text: str) -> str:
    """nccl-tests' JSON without the values of its `env`: that is the whole environment of rank 0. Where the list does not end, nothing
    after it is kept."""
    out, at = [], 0
    while (begin := _ENV.search(text, at)) is not None:
        end = _list_end(text, begin.end())
        out.append(text[at:begin.end()])
        if end < 0:
            return "".join(out)
        at = end
    return "".join([*out, text[at:]])


def _list_end(text: str, at: int) -> int:
    """Where the list's own `]` stands; -1 if nowhere. Brackets inside strings do not count."""
    depth, inside = 1, False
    while at < len(text):
        c = text[at]
        if inside:
            if c == "\\":
                at += 1
            elif c == '"':
                inside = False
        elif c == '"':
            inside = True
        elif c == "[":
            depth += 1
        elif c == "]":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1
