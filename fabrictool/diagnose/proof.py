"""The lines of a log or run that show a finding: those that it names, else those that tell of its kind."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabrictool.model import Code, Finding, Status
from fabrictool.snapshot.sniff import Piece

MOST = 300  # findings of one run whose lines are looked for
# Beside a fault these only say that no more is known.
_FOLLOW = frozenset({Code.BLOCKED, Code.TRANSPORT_UNKNOWN, Code.LOG_MISSING, Code.SINGLE_NODE})
_LINE = re.compile(r"(?:(\S{1,300}) )?line (\d{1,7}): ")
# By code, the lines that show it where the finding itself names none.
_TELLS: Mapping[Code, str] = {
    Code.TCP_FALLBACK: r"via NET/Socket|Using network Socket|NET/IB : No device found",
    Code.SINGLE_NODE: r"nNodes 1 |via (?:P2P|SHM)|#  Rank ",
    Code.WRONG_RESULT: r"Out of bounds values", Code.NO_RESULT: r"Avg bus bandwidth|USAGE: |Test NCCL failure|Collective test",
    Code.TOO_FEW_GPUS: r"Invalid number of GPUs", Code.BAD_ARGUMENT: r"invalid size|invalid option", Code.RANK_DIED: r"noticed that|Killed",
    Code.OOM_KILLED: r"oom[_-]kill|Out Of Memory",
    Code.SIZE_REDUCED: r"Reducing maxBytes", Code.INIT_HANG: r"Init START|Bootstrap", Code.NCCL_WRONG_INTERFACE: r"OOB |Bootstrap ?: Using",
    Code.SHM_ON_NVLINK: r"via SHM", Code.NCCL_MIXED: r"NCCL version", Code.LOG_MISSING: r"# +Rank +\d|nranks \d",
    Code.GDR_MISSING: r"via NET/IB|GPU Direct RDMA Disabled", Code.RUN_TIMEOUT: r"Test timeout|TIME LIMIT|time limit",
}


def numbered(piece: Piece) -> str:
    """The piece's text with empty lines for those that are not its own, so that every parser's line numbers are the input's."""
    out = [""] * piece.last_line
    for line in piece.lines:
        old = out[line.number - 1]
        out[line.number - 1] = f"{old} {line.text}" if old else line.text
    return "".join(f"{text}\n" for text in out)


def proven(findings: Sequence[Finding], pieces: Sequence[Piece]) -> tuple[Finding, ...]:
    """Each once, with its lines. Beside a fault, what only says that no more can be said is left out."""
    failing = {f.code for f in findings if f.status is Status.FAIL}
    kept = [f for f in dict.fromkeys(findings) if not (failing and _follows(f, failing))]
    return tuple(_with_lines(f, pieces) if f.bad and not f.lines and i < MOST else f for i, f in enumerate(kept))


def _follows(f: Finding, failing: set[Code]) -> bool:
    return f.status is Status.UNKNOWN and (f.code in _FOLLOW or f.code in failing)


def _with_lines(f: Finding, pieces: Sequence[Piece]) -> Finding:
    """The lines that the finding names, else those that tell of its kind; its own text then says the rest."""
    named = _LINE.search(f.got)
    if named:
        number = int(named[2])
        for piece in pieces:
            if named[1] in (None, piece.source):
                at = bisect_left(piece.lines, number, key=lambda ln: ln.number)
                hit = piece.lines[at] if at < len(piece.lines) and piece.lines[at].number == number else None
                if hit is not None:
                    got = _LINE.sub("", f.got, count=1)
                    return replace(f, got=got, lines=(piece.quote(hit), *_others(f, pieces, piece.quote(hit))))
    return replace(f, lines=_others(f, pieces, ""))


def _others(f: Finding, pieces: Sequence[Piece], first: str) -> tuple[str, ...]:
    pattern = _TELLS.get(f.code, "")
    if first and f.code is not Code.TCP_FALLBACK:
        return ()
    words = [w for w in (f.got.strip(), f.got.strip()[:60]) if len(w) > 20]
    out: list[str] = []
    for piece in pieces:
        own = [ln for ln in piece.lines if any(w in ln.text for w in words)]
        of_kind = [ln for ln, _ in piece.find(pattern)] if pattern else []
        mine = [ln for ln in of_kind if not f.subject.nodes or any(n in ln.text for n in f.subject.nodes)]
        out += [piece.quote(ln) for ln in (own or mine or of_kind)[:2]]
        if not of_kind and not own and f.code in (Code.RUN_TIMEOUT, Code.NO_RESULT, Code.RANK_DIED):
            out += [piece.quote(piece.lines[-1])]
    return tuple(q for q in dict.fromkeys(out) if q != first)[:6]


