"""`gids`: whether each function has the RoCE v2 GID that NCCL finds by itself, and whether something pins another one."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.prove.case import Case
from fabrictool.prove.picked import picked
from fabrictool.room import About

HERE = ("rdma.device", "rdma.gid")
PINS = (Code.GID_PINNED, Code.GID_NOT_AUTOMATIC)
PLACES = ("env.lint.", "env.running.", "env.override.")


def judge(case: Case) -> Iterator[Finding]:
    for node, found in picked(case, "gids", ("rdma", "env"), _wanted):
        yield from found
        env = [f for f in found if f.path.startswith("gids.env.")]
        about = About(Code.GID_PINNED, Subject(SubjectKind.NODE, (node,)), "gids.pinned", "")
        # A place that could not be read may pin one: then nothing is said for it here.
        if not any(f.code is Code.GID_PINNED or f.status is Status.UNKNOWN for f in env):
            yield about.ok("NCCL_IB_GID_INDEX is set in no place that is read", "no pinned index")


def _wanted(f: Finding) -> bool:
    return f.path in HERE or f.code in PINS or (f.status is Status.UNKNOWN and f.path.startswith(PLACES))
