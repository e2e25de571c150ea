"""The lines of the kernel's out-of-memory killer, put together to one event for each victim.

    python3 invoked oom-killer: gfp_mask=..., order=0
    (call trace: frames of whatever asked for memory, often a file system's; they are no cause)
    oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=...,oom_memcg=/LIMIT,task_memcg=/VICTIM,task=python3,pid=4101,uid=0
    Memory cgroup out of memory: Killed process 4101 (python3) total-vm:...

CONSTRAINT_NONE with `global_oom` in place of `oom_memcg`, and `Out of memory: Killed process`: the node itself had no memory left.
"""

from __future__ import annotations

import re

from fabrictool.system.cgroup import Owner, owner
from fabrictool.system.events import Oom
from fabrictool.system.loglines import Line

_END = re.compile(r",pid=(\d{1,10}),uid=\d{1,10}$")
_OLD = re.compile(r"Task in (?P<task>/\S{0,1000}) killed as a result of limit of (?P<limit>/\S{0,1000})$")
_KILLED = re.compile(r"(?P<verb>Killed|Kill) process (?P<pid>\d{1,10}) \((?P<name>.{0,64}?)\)(?:[, ]|$)")


class Kills:
    """What the killer says of a victim stands in a line of its own, before the one that it kills it. Two kills may be under way at once,
    so facts are kept by the victim's pid."""

    def __init__(self) -> None:
        self._facts: dict[int, tuple[Line, str, Owner | None, Owner]] = {}
        self._old: tuple[Owner, Owner] | None = None
        self._limited = False
        self._killed: list[Oom] = []

    def takes(self, row: Line, text: str) -> bool:
        """Whether the line is one of these."""
        if text.startswith("oom-kill:"):
            self._fact(row, text)
            return True
        old = _OLD.match(text)
        if old:  # before 4.19
            self._old = owner(old["limit"]), owner(old["task"])
            return True
        m = _KILLED.search(text)  # anywhere: no name of a process is long enough to hold it
        if m is None:
            return False
        pid, limited = int(m["pid"]), "emory cgroup" in text[:m.start()] or self._limited
        if m["verb"] == "Killed":
            fact = self._facts.pop(pid, None)
            scope, victim = (fact[2], fact[3]) if fact else self._old or ((Owner("") if limited else None), None)
            self._killed.append(Oom(row, m["name"], pid, scope, victim))
            self._old, self._limited = None, False
        else:  # before 5.0 this comes first, and perhaps a child is killed in the victim's place
            self._limited = limited
        return True

    def _fact(self, row: Line, text: str) -> None:
        head, mark, tail = text.partition(",task_memcg=")
        end = _END.search(tail)
        path, named, name = tail[:end.start()].partition(",task=") if end else ("", "", "")
        if not mark or not end or not named or not head.startswith("oom-kill:constraint="):
            return
        limit = head.rpartition(",oom_memcg=")
        limited = head.startswith("oom-kill:constraint=CONSTRAINT_MEMCG")
        scope = owner(limit[2] if limit[1] else path) if limited else None
        self._facts[int(end[1])] = (row, name, scope, owner(path))

    def found(self) -> tuple[Oom, ...]:
        """With the victims of whom only the facts are in the log, because it ends there."""
        left = tuple(Oom(row, name, pid, scope, victim) for pid, (row, name, scope, victim) in self._facts.items())
        return (*self._killed, *left)
