"""Who is who: the ranks of each communicator, their nodes, and which logs are missing.

Lines repeat what they say, so the majority counts: one damaged line moves no rank to another node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from fabrictool.collective.logmodel import CommEvent, CommLine, Edge, NcclLog, Process, ProcessKey

SHOWN = 64  # missing ranks that are named


@dataclass(frozen=True, slots=True)
class Member:
    """One rank of one communicator in one process. `nodes`: how many nodes NCCL counts (None: not said); `votes`: lines that say so."""

    process: ProcessKey
    pointer: str
    rank: int
    size: int
    comm_id: str
    nodes: int | None
    started: bool
    completed: bool
    mnnvl: bool
    votes: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Ranks whose log is not there. `node` is "" where nothing tells where they ran."""

    node: str
    ranks: tuple[int, ...]


def _top(values: Iterable[str], popular: Mapping[str, int]) -> str:
    """The most frequent; of equals the one that more processes name."""
    count = Counter(values)
    return max(count, key=lambda v: (count[v], popular.get(v, 0)), default="")


def _members(process: Process, popular: Mapping[str, int]) -> list[Member]:
    by_pointer: dict[str, list[CommLine]] = {}
    for said in process.comms:
        by_pointer.setdefault(said.pointer, []).append(said)
    out = []
    for pointer, told in by_pointer.items():
        (rank, size), votes = Counter((s.rank, s.size) for s in told).most_common(1)[0]
        nodes = Counter(s.nodes for s in told if s.nodes is not None).most_common(1)
        out.append(Member(
            process.key, pointer, rank, size, _top((s.comm_id for s in told if s.comm_id), popular), nodes[0][0] if nodes else None,
            any(s.event is CommEvent.START for s in told),
            any(s.event in (CommEvent.COMPLETE, CommEvent.DESTROY) for s in told), any(s.mnnvl for s in told), votes))
    return out


def members(log: NcclLog) -> tuple[Member, ...]:
    """Every rank that says who it is, without the ghosts that damaged lines make."""
    popular = Counter(c for p in log.processes for c in {s.comm_id for s in p.comms if s.comm_id})
    found = [m for p in log.processes if p.key.known for m in _members(p, popular)]
    strong = [m for m in found if m.votes > 1]
    said = {(m.comm_id, m.size, m.rank) for m in strong} | {("", m.size, m.rank) for m in strong}
    mine = {(m.process, m.size, m.rank) for m in strong}
    # A single line against several of another: a damaged rank, pointer, host or communicator.
    return tuple(m for m in found if m.votes > 1 or ((m.comm_id, m.size, m.rank) not in said and (m.process, m.size, m.rank) not in mine))


class Ranks:
    """Where ranks run, as one process sees it: its peers are the ranks of its own communicators.

    `given`: the node of each rank as the caller knows it (nccl-tests prints it); it counts for communicators of that size.
    """

    def __init__(self, log: NcclLog, given: Mapping[int, str]) -> None:
        self.given = given
        self.members = members(log)
        self._mine: dict[ProcessKey, list[Member]] = {}
        self._homes: dict[tuple[str, int], dict[int, set[str]]] = {}
        for m in self.members:
            self._mine.setdefault(m.process, []).append(m)
            self._homes.setdefault((m.comm_id, m.size), {}).setdefault(m.rank, set()).add(m.process.node)
        # Without any line about communicators (the INIT subsystem was off) the ranks that log channels tell.
        votes: dict[int, Counter[str]] = {}
        if not self.members:
            for p in log.processes:
                for e in p.edges:
                    votes.setdefault(e.own, Counter())[p.key.node] += 1
        self._by_edges = {rank: count.most_common(1)[0][0] for rank, count in votes.items()}

    def of(self, process: ProcessKey) -> tuple[Member, ...]:
        return tuple(self._mine.get(process, ()))

    def accepts(self, process: ProcessKey, edge: Edge) -> bool:
        """Whether this process can have logged this edge: it owns one end, and both are ranks of a communicator of its own."""
        mine = self._mine.get(process)
        if not mine:  # where others say their ranks, a process that does not is a damaged or cut one
            return not self.members and process.known and (not self.given or max(edge.src, edge.dst) < len(self.given))
        return any(m.rank == edge.own and max(edge.src, edge.dst) < m.size for m in mine)

    def node(self, process: ProcessKey, own: int, rank: int, *, inside: bool | None = None) -> str:
        """The node of `rank`; "" when it is not known. Where it differs between the process's communicators (a rank is another process in
        each), `inside` tells whether the transport stays in the node or leaves it."""
        mine = [m for m in self._mine.get(process, ()) if m.rank == own and rank < m.size]
        ours = not mine or (any(m.size == len(self.given) for m in mine) and self.given.get(own) == process.node)
        if rank in self.given and ours:
            return self.given[rank]
        homes = set[str]()
        for m in mine:
            homes |= self._homes[m.comm_id, m.size].get(rank, set())
        if not mine:
            return self._by_edges.get(rank, "")
        if len(homes) > 1 and inside is not None:
            homes = homes & {process.node} if inside else homes - {process.node}
        return homes.pop() if len(homes) == 1 else ""

    def missing(self, log: NcclLog, nodes: Iterable[str]) -> tuple[Missing, ...]:
        """Ranks without a log, and `nodes` of which nothing was logged."""
        seen_nodes = {m.process.node for m in self.members} | {p.key.node for p in log.processes if p.edges}
        absent = [n for n in dict.fromkeys((*self.given.values(), *nodes)) if n not in seen_nodes]
        out = [Missing(n, tuple(sorted(r for r, at in self.given.items() if at == n))) for n in absent]
        own = {e.own for p in log.processes for e in p.edges} if not self.members else set()
        if self.given:
            present = {m.rank for m in self.members if m.size == len(self.given)} | own
            lost: dict[str, list[int]] = {}
            for rank, node in self.given.items():
                if node not in absent and rank not in present:
                    lost.setdefault(node, []).append(rank)
            return (*out, *(Missing(n, tuple(sorted(ranks))) for n, ranks in lost.items()))
        for (_, size), ranks in self._homes.items():
            gone = tuple(islice((r for r in range(size) if r not in ranks), SHOWN))
            if gone:
                out.append(Missing("", gone))
        return tuple(dict.fromkeys(out))

    def spanning(self) -> set[ProcessKey]:
        """Processes of communicators over several nodes: each rank has one home, and there are several homes. Two jobs whose lines do not
        tell them apart have every rank twice."""
        wide = {key for key, homes in self._homes.items()
                if len(set().union(*homes.values())) > 1 and all(len(at) == 1 for at in homes.values())}
        return {m.process for m in self.members if (m.comm_id, m.size) in wide}

    def counted_nodes(self) -> set[int | None]:
        """How many nodes NCCL itself counts, over all communicators that say so."""
        return {m.nodes for m in self.members if m.nodes is not None}
