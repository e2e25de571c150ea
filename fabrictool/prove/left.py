"""What of a run is still on a node after its end: the lines of node/sweep.sh (`unit NAME`, `process PID COMMAND` ...), to its `end`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fabrictool.model import Code, Finding, Reason, Subject, SubjectKind, Unreadable
from fabrictool.room import About
from fabrictool.snapshot import Captured, Snapshot

SECTION = "left"
LAST = "end"
HUNG = 124  # timeout(1): the manager is there, and did not answer
FOUND = re.compile(r"(unit|container|job|process|port) \S.*")
UNASKED = re.compile(r"unasked (systemd|docker|slurm) ([0-9]{1,3})")


def judge(node: str, takes: Iterable[Snapshot], path: str, launcher: str, who: str = "a run") -> Finding:
    """Over all moments at which the node was asked; what was found at one counts more than silence at another. `who` started it."""
    about, want = About(Code.LEFT_BEHIND, Subject(SubjectKind.NODE, (node,)), path, ""), "nothing of the run"
    seen = [left(take, launcher) for take in takes]
    lines = [ln for s in seen if not isinstance(s, Unreadable) for ln in s]
    unread = next((s for s in seen if isinstance(s, Unreadable)), None)
    if lines:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        return about.fail(lines[0][:200] + more, want, f"what {who} started was still there when everything of it had been ended",
                          remedy="end it by its number or its unit's name; everything of a run has its id in its name")
    if unread:
        return about.unknown(unread, want, "log in and look for the run's id: `ps`, /run/fabrictool; what is there ends by itself")
    return about.ok(want)


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
