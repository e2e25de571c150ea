"""`kernel_log`: what the kernel of each node said in the last hours, on that node's own clock, and whose trouble it is."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.model import Code, Evidence, Finding, Said, Subject, SubjectKind, Unreadable
from fabrictool.prove.case import Case
from fabrictool.prove.kernel_devices import Fabric, links, storage, xids
from fabrictool.prove.kernel_kills import Job, hung, kills
from fabrictool.prove.kernel_window import Window
from fabrictool.room import About
from fabrictool.snapshot import Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.system import ask_again, journal


def judge(case: Case) -> Iterator[Said]:
    read = 0
    for name, want in case.wants.items():
        snap = case.snap(name)
        log = journal.read(snap)
        if isinstance(log, Unreadable):
            about = About(Code.OOM_KILLED, Subject(SubjectKind.NODE, (name,)), "kernel_log.read", "")
            yield about.unknown(log, f"the kernel's log of {want.kernel_log.hours} h", ask_again(log, "kernel_log"))
        else:
            read += len(log.rows)
            yield from _node(want, snap, log)
    yield Evidence("kernel_log_lines", read)


def _node(want: NodeSpec, snap: Snapshot, log: journal.KernelLog) -> Iterator[Finding]:
    window = Window(want.name, log, want.kernel_log.hours)
    events, job, fabric = log.events, Job.of(want, snap), Fabric.of(want, snap)
    yield from kills(window, job, events)
    yield from xids(window, events)
    yield from links(window, fabric, want.kernel_log.link_downs, events)
    yield from storage(window, events)
    yield from hung(window, job, events)
