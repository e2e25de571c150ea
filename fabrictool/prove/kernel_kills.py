"""Out-of-memory kills and hung tasks: whose they are decides what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from fabrictool.model import Code, Finding, Unreadable
from fabrictool.prove.kernel_window import Window, worst
from fabrictool.snapshot import Snapshot, consumers
from fabrictool.snapshot.consumers import Consumers
from fabrictool.spec import NodeSpec
from fabrictool.system.cgroup import Owner
from fabrictool.system.containers import Boxes
from fabrictool.system.containers import read as boxes
from fabrictool.system.events import Event, Hung, Oom


class Side(StrEnum):
    OURS = "ours"
    OTHER = "other"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Whose:
    """`label`: for people and for the finding's path; `why`: where it cannot be told, the reason."""

    side: Side
    label: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """The consumers that the spec names, as they are on the node."""

    patterns: tuple[str, ...]
    running: Consumers | Unreadable
    known: Boxes | Unreadable

    @classmethod
    def of(cls, want: NodeSpec, snap: Snapshot) -> Job:
        return cls(want.env.consumers, consumers.read(snap), boxes(snap))

    def whose(self, owner: Owner | None) -> Whose:
        if owner is None or not owner.path:
            return Whose(Side.UNSURE, "a process", "the log does not tell its control group")
        if not self.patterns:
            return Whose(Side.UNSURE, str(owner), "the spec names no consumers")
        if owner.container:
            return self._container(owner)
        if owner.unit and any(self._unit(p, owner.unit) for p in self.patterns):
            return Whose(Side.OURS, f"systemd:{owner.unit}")
        return Whose(Side.OTHER, str(owner))

    def _container(self, owner: Owner) -> Whose:
        names = []
        if not isinstance(self.known, Unreadable):
            names += [b.name for b in self.known.found if b.id == owner.container]
        if not isinstance(self.running, Unreadable) and not isinstance(self.running.containers, Unreadable):
            names += [c.name for c in self.running.containers if c.id == owner.container]
        if names:
            ours = any(self._named(p, names[0]) for p in self.patterns)
            return Whose(Side.OURS, f"docker:{names[0]}") if ours else Whose(Side.OTHER, f"container {names[0]}")
        if not any(p.startswith("docker:") for p in self.patterns):
            return Whose(Side.OTHER, str(owner))
        if isinstance(self.known, Unreadable):
            return Whose(Side.UNSURE, str(owner), f"docker's containers could not be listed: {self.known.why}")
        return Whose(Side.UNSURE, str(owner), "docker does not know this container (any more)")

    @staticmethod
    def _named(pattern: str, name: str) -> bool:
        kind, _, glob = pattern.partition(":")
        return kind == "docker" and fnmatchcase(name, glob)

    @staticmethod
    def _unit(pattern: str, unit: str) -> bool:
        kind, _, glob = pattern.partition(":")
        return kind == "systemd" and fnmatchcase(unit, glob if "." in glob else f"{glob}.service")

    def pids(self) -> frozenset[int]:
        """Processes of the consumers, as far as they can be told."""
        found: set[int] = set()
        for pattern in self.patterns:
            named = () if isinstance(self.running, Unreadable) else self.running.named(pattern)
            if not isinstance(named, Unreadable):
                found |= {p.pid for c in named for p in c.processes}
        return frozenset(found)


def kills(window: Window, job: Job, events: tuple[Event, ...]) -> Iterator[Finding]:
    """One finding for each owner. A limit of another control group concerns only that one; a node without memory concerns all."""
    recent, older = window.split(e for e in events if isinstance(e, Oom))
    found: list[Finding] = []
    others: list[str] = []
    sorted_out: dict[tuple[str, bool], list[Oom]] = {}
    sides: dict[tuple[str, bool], Whose] = {}
    for kill in recent:
        whose = job.whose(kill.whose)
        key = (whose.label, kill.scope is None)
        sorted_out.setdefault(key, []).append(kill)
        sides[key] = whose
    for key, mine in sorted_out.items():
        made = _kill(window, sides[key], key[1], mine)
        if made is None:
            others.append(f"not the job's: {len(mine)} in {key[0]}, which met its own limit")
        else:
            found.append(made)
    yield from found
    if not worst(found):
        yield window.quiet(window.about(Code.OOM_KILLED, "oom"), "process of the job killed for want of memory", older, others)


def _kill(window: Window, whose: Whose, of_node: bool, mine: list[Oom]) -> Finding | None:
    about = window.about(Code.OOM_KILLED, f"oom.{'node' if of_node else 'limit'}.{whose.label}")
    names = ", ".join(dict.fromkeys(f"{k.process} ({k.pid})" for k in mine[-3:]))
    got = f"{whose.label}: {names} killed {window.told(mine)}"
    wanted = "no process of the job killed for want of memory"
    if of_node:
        why = "the node itself had no memory left"
        remedy = "find what takes the memory (on unified memory the GPU's is the same): smaller batches or caches, fewer programs"
        if whose.side is Side.OURS:
            return about.fail(got, wanted, f"{why}, and the kernel took this consumer", remedy=remedy)
        return about.warn(got, wanted, f"{why}; the kernel took {whose.label}" + (f" ({whose.why})" if whose.why else ""), remedy=remedy)
    if whose.side is Side.OTHER:
        return None
    remedy = "raise its memory limit (docker run --memory, MemoryMax=), or let it use less"
    if whose.side is Side.OURS:
        return about.fail(got, wanted, "it met the memory limit of its own control group; the node had memory left", remedy=remedy)
    return about.warn(got, wanted, f"a control group met its memory limit; whether it was the job's cannot be told: {whose.why}",
                      remedy=remedy)


def hung(window: Window, job: Job, events: tuple[Event, ...]) -> Iterator[Finding]:
    recent, older = window.split(e for e in events if isinstance(e, Hung))
    pids = job.pids()
    groups: dict[str, list[Hung]] = {}
    for event in recent:
        groups.setdefault("cpu" if event.lockup else event.process, []).append(event)
    wanted, remedy = "no task that hangs in the kernel", "look at the call trace below that line, at storage and at NFS servers"
    for name, mine in groups.items():
        about = window.about(Code.HUNG_TASK, f"hung.{name}")
        if mine[-1].lockup:
            yield about.fail(window.told(mine), wanted, "a CPU was stuck in the kernel: everything on it waited",
                             remedy="look at the call trace below that line; update kernel and drivers; reboot the node")
        elif any(e.pid in pids for e in mine):
            yield about.fail(f"{name}, a process of the job: {window.told(mine)}", wanted,
                             "it waits for a device or a file server that does not answer", remedy=remedy)
        else:
            yield about.warn(f"{name}: {window.told(mine)}", wanted,
                             "a task waited for a device or a file server; whether it was the job's the log does not tell", remedy=remedy)
    if not groups:
        yield window.quiet(window.about(Code.HUNG_TASK, "hung"), "hung task", older)
