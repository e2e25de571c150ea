"""The processes of one consumer over all nodes, as the probe `hang` saw them: what the clues look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.case import Case
from fabrictool.snapshot import Snapshot, consumers
from fabrictool.snapshot.consumers import Consumer
from fabrictool.spec import NodeSpec
from fabrictool.system.hang_sections import MOMENT, Target, targets
from fabrictool.system.phases import Phase
from fabrictool.system.ranks import NodeView, Rank, view

PROBE = "hang"


@dataclass(frozen=True, slots=True)
class Job:
    """`pattern`: the consumer as the spec names it. `views`: nodes that could be read; `lost`: the others, and why. `idle`: nodes on
    which none of it runs. `owners`: address -> node that has it."""

    pattern: str
    wants: Mapping[str, NodeSpec]
    views: Mapping[str, NodeView]
    lost: Mapping[str, Unreadable]
    idle: tuple[str, ...]
    owners: Mapping[str, str]
    whole: bool  # no node of the site was left out, and no process of a node

    @property
    def everyone(self) -> tuple[Rank, ...]:
        return tuple(r for v in self.views.values() for r in v.ranks)

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """Those that take part: with a rank in their environment; else those that use a GPU; else all. Helpers of an engine (an API
        server) are none, although they have NCCL loaded."""
        every = self.everyone
        for chosen in ([r for r in every if r.number is not None], [r for r in every if isinstance(r.busy, Value)]):
            if chosen:
                return tuple(chosen)
        return every

    @property
    def subject(self) -> Subject:
        return Subject(SubjectKind.FLEET, tuple(self.views))

    def starting(self) -> bool:
        """Whether some rank waits in a phase that ends within seconds or never."""
        return any(r.phase.init for r in self.ranks)

    def blind(self) -> bool:
        """Whether of some rank that runs it is not known where it stands."""
        return any(r.phase is Phase.UNKNOWN and not r.gone for r in self.ranks)

    def is_one(self) -> bool:
        """Whether its ranks themselves tell that they are parts of one job, and no independent engines with a name in common: each has a
        number of its own below one world size, which no node fills alone."""
        numbers, worlds = [r.number for r in self.ranks], {r.world for r in self.ranks}
        world = next(iter(worlds)) if len(worlds) == 1 else None
        if world is None or None in numbers or len(set(numbers)) < len(numbers):
            return False
        return all(sum(1 for r in self.ranks if r.node == node) < world for node in self.views)

    def at(self, *phases: Phase) -> tuple[Rank, ...]:
        return tuple(r for r in self.ranks if r.phase in phases)


def named(snap: Snapshot, pattern: str) -> tuple[Consumer, ...] | Unreadable:
    running = consumers.read(snap)
    return running if isinstance(running, Unreadable) else running.named(pattern)


def to_look_at(want: NodeSpec, snap: Snapshot) -> tuple[Target, ...]:
    """The processes that the probe looks at on a node: those of its consumers, as the snapshot that was just taken has them."""
    hits = (named(snap, pattern) for pattern in want.env.consumers)
    return targets(c for hit in hits if not isinstance(hit, Unreadable) for c in hit)


def jobs(case: Case) -> Iterable[Job]:
    """One for each consumer that the spec names, in its order."""
    recording = case.recording(PROBE)
    patterns = dict.fromkeys(p for w in case.wants.values() for p in w.env.consumers)
    owners = _owners(case)
    for pattern in patterns:
        views: dict[str, NodeView] = {}
        lost: dict[str, Unreadable] = {}
        idle: list[str] = []
        whole = not case.fleet.left_out
        for node, want in case.wants.items():
            if pattern not in want.env.consumers:
                continue
            running = consumers.read(case.snap(node))
            whole = whole and not isinstance(running, Unreadable) and not running.partial
            found, take = named(case.snap(node), pattern), recording.at(MOMENT, node)
            if isinstance(found, Unreadable):
                lost[node] = found
            elif not found:
                idle.append(node)
            elif take.error:
                lost[node] = take.error
            else:
                born = {p.pid: p.started for c in found for p in c.processes}
                views[node] = view(take, targets(found), born)
        yield Job(pattern, case.wants, views, lost, tuple(idle), owners, whole)


def _owners(case: Case) -> dict[str, str]:
    out: dict[str, str] = {}
    for node in case.wants:
        netdevs = ports.read(case.snap(node)).netdevs
        if not isinstance(netdevs, Unreadable):
            for dev in netdevs.values():
                out |= {str(a.ip): node for a in dev.addresses if not a.ip.is_loopback and not a.ip.is_link_local}
    return out
