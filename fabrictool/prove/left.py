"""What of a run is still on a node after its end: the lines of node/sweep.sh (`unit NAME`, `process PID COMMAND` ...), to its `end`."""

from __future__ import annotations

import re

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Captured, Snapshot

SECTION = "left"
LAST = "end"
HUNG = 124  # timeout(1): the manager is there, and did not answer
FOUND = re.compile(r"(unit|container|job|process|port) \S.*")
UNASKED = re.compile(r"unasked (systemd|docker|slurm) ([0-9]{1,3})")


def left(take: Snapshot, launcher: str = "") -> tuple[str, ...] | Unreadable:
    """Everything of the run that was found, a line each. Nothing found counts only where all were asked who may hold something: a Slurm
    that does not answer matters to a run that it started (`launcher`), a docker that is not running holds nothing."""
    got = take.raw(SECTION)
    if isinstance(got, Unreadable):
        return got
    lines = [ln.strip() for ln in got.out.splitlines() if ln.strip()]
    unasked = [m for ln in lines if (m := UNASKED.fullmatch(ln))]
    found = tuple(ln for ln in lines if FOUND.fullmatch(ln))
    if found:
        return found
    strange = next((ln for ln in lines if ln != LAST and not UNASKED.fullmatch(ln)), None)
    if strange is not None:
        return Unreadable(Reason.GARBLED, f"left: {strange[:60]!r} is nothing that the list holds")
    if got.rc != 0 or got.cut or lines[-1:] != [LAST]:
        return Unreadable(Reason.FAILED, f"left: {_why(got)}")
    for m in unasked:
        name, status = m[1], int(m[2])
        if name == "systemd" or (name == "docker" and status == HUNG) or (name == "slurm" and launcher == "srun"):
            said = "did not answer in time" if status == HUNG else f"ended with status {status}"
            return Unreadable(Reason.FAILED, f"left: {name}, asked for what it still holds of the run, {said}")
    return ()


def _why(got: Captured) -> str:
    return f"exit status {got.rc}: {got.tail or 'no message'}" if got.rc else "the list is not whole"
