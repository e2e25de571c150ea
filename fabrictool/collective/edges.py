"""The channels between ranks as edges with two ends: what carries them, by which devices, as seen from each side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.collective.logmodel import Direction, Edge, Gdr, Kind, NcclLog, Process, ProcessKey, Proof, Via
from fabrictool.collective.membership import Ranks

RDMA_PLUGINS = ("ib", "gib")  # and every IBext*, as HPC-X names its own
LIBFABRIC = ("aws libfabric", "libfabric")
LIBFABRIC_TCP = ("tcp", "sockets", "tcp;ofi_rxm", "udp")
KEPT = 4  # proving lines for each end


class Carrier(StrEnum):
    """What carries an edge. `LOCAL`: P2P or shared memory inside a node; `MNNVL`: NVLink between nodes; `PLUGIN`: a network of which
    the name does not tell whether it is RDMA."""

    RDMA = "RDMA"
    TCP = "TCP"
    LOCAL = "local"
    MNNVL = "MNNVL"
    PLUGIN = "plugin"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class End:
    """One side of an edge. `devices`: RDMA devices behind NCCL's index; `unresolved`: indices without a name; `gdr` of `lines` lines go
    directly between NIC and GPU memory; `names`: transports as printed."""

    carriers: frozenset[Carrier]
    names: tuple[str, ...]
    devices: tuple[str, ...]
    unresolved: tuple[int, ...]
    lines: int
    gdr: int
    proof: tuple[Proof, ...]


@dataclass(frozen=True, slots=True)
class EdgeVerdict:
    """All channels from rank `src` to rank `dst`. A node is "" where it is not known. `send` as the sender logged it, `receive` as the
    receiver did; None = that side said nothing."""

    src: int
    dst: int
    src_node: str
    dst_node: str
    send: End | None
    receive: End | None

    @property
    def ends(self) -> tuple[End, ...]:
        return tuple(e for e in (self.send, self.receive) if e)

    @property
    def carriers(self) -> frozenset[Carrier]:
        return frozenset(c for e in self.ends for c in e.carriers)

    @property
    def proof(self) -> tuple[Proof, ...]:
        return tuple(p for e in self.ends for p in e.proof)

    @property
    def between_nodes(self) -> bool:
        """Whether it leaves its node, as far as the hosts tell. An unknown far end has no log of its own."""
        return self.src_node != self.dst_node

    @property
    def whole(self) -> bool:
        return self.send is not None and self.receive is not None


def carrier(via: Via, process: Process) -> Carrier:
    if via.kind is Kind.P2P:
        return Carrier.MNNVL if via.name.split("/")[0] == "MNNVL" else Carrier.LOCAL
    if via.kind is Kind.SHM:
        return Carrier.LOCAL
    if via.kind is not Kind.NET:
        return Carrier.UNREADABLE
    name = via.name.casefold()
    if name == "socket":
        return Carrier.TCP
    if name in RDMA_PLUGINS or name.startswith("ibext"):
        return Carrier.RDMA
    if name in LIBFABRIC:
        said = set(process.providers)
        if said and said <= {"efa"}:
            return Carrier.RDMA
        if said and said <= set(LIBFABRIC_TCP):
            return Carrier.TCP
    return Carrier.PLUGIN


class Devices:
    """NCCL's device index -> names of RDMA devices. The index is NCCL's own, not the number in the name."""

    def __init__(self, log: NcclLog) -> None:
        self._by_process: dict[ProcessKey, Mapping[int, tuple[str, ...]]] = {}
        nodes: dict[str, list[Mapping[int, tuple[str, ...]]]] = {}
        for p in log.processes:
            table: dict[int, tuple[str, ...]] = {}
            for listed in p.hcas:
                if listed.whole:
                    table |= {h.index: h.devices for h in listed.hcas}
            table |= {h.index: h.devices for h in p.virtual}
            if table:
                self._by_process[p.key] = table
                nodes.setdefault(p.key.node, []).append(table)
        # A process without a list of its own may use its node's, if the node has but one.
        self._by_node = {node: tables[0] for node, tables in nodes.items() if all(t == tables[0] for t in tables)}

    def names(self, process: ProcessKey, index: int) -> tuple[str, ...]:
        """() when nothing names it: beyond the list is a merged NIC that `Made virtual device` would name."""
        table = self._by_process.get(process) or self._by_node.get(process.node) or {}
        return table.get(index, ())


def announced(log: NcclLog) -> frozenset[str]:
    """Every network that any process said it uses, in small letters."""
    return frozenset(n.casefold() for p in log.processes for n in p.networks)


def _end(edges: list[tuple[Edge, Carrier]], process: Mapping[int, ProcessKey], devices: Devices) -> End:
    used = [(e, c) for e, c in edges if c is not Carrier.UNREADABLE] or edges
    names: dict[str, None] = {}
    unresolved: dict[int, None] = {}
    for e, c in used:
        if c is Carrier.RDMA and e.via.index is not None:
            found = devices.names(process[id(e)], e.via.index)
            names |= dict.fromkeys(found)
            if not found:
                unresolved[e.via.index] = None
    return End(frozenset(c for _, c in used), tuple(dict.fromkeys(str(e.via) for e, _ in used)), tuple(names), tuple(unresolved),
               len(used), sum(1 for e, _ in used if e.via.gdr is not Gdr.NONE), tuple(Proof.of(e.line) for e, _ in used[:KEPT]))


def edges(log: NcclLog, ranks: Ranks) -> tuple[EdgeVerdict, ...]:
    """Every edge between two ranks, in the order of the log."""
    devices = Devices(log)
    names = announced(log)
    found: dict[tuple[int, int, str, str], tuple[list[tuple[Edge, Carrier]], list[tuple[Edge, Carrier]]]] = {}
    home: dict[int, ProcessKey] = {}
    for process, edge in _accepted(log, ranks):
        kind = carrier(edge.via, process)
        if kind in (Carrier.RDMA, Carrier.PLUGIN) and names and edge.via.name.casefold() not in names:
            continue  # no process said that it uses such a network: a damaged line
        own = ranks.node(process.key, edge.own, edge.own) or process.key.node  # the majority's, not a damaged line's
        inside = None if kind in (Carrier.MNNVL, Carrier.UNREADABLE) else kind is Carrier.LOCAL
        peer = ranks.node(process.key, edge.own, edge.peer, inside=inside)
        at = (edge.src, edge.dst, peer, own) if edge.direction is Direction.RECEIVE else (edge.src, edge.dst, own, peer)
        home[id(edge)] = process.key
        sides = found.setdefault(at, ([], []))
        sides[1 if edge.direction is Direction.RECEIVE else 0].append((edge, kind))
    return tuple(
        EdgeVerdict(src, dst, a, b, _end(send, home, devices) if send else None, _end(receive, home, devices) if receive else None)
        for (src, dst, a, b), (send, receive) in found.items())


def _accepted(log: NcclLog, ranks: Ranks) -> Iterator[tuple[Process, Edge]]:
    orphans: list[tuple[Process, Edge]] = []
    tcp = False
    for process in log.processes:
        for edge in process.edges:
            is_tcp = carrier(edge.via, process) is Carrier.TCP
            if ranks.accepts(process.key, edge):
                tcp = tcp or is_tcp
                yield process, edge
            elif is_tcp:
                orphans.append((process, edge))
    # A line that belongs to no known rank can show that there is TCP. It proves nothing else.
    if not tcp:
        yield from orphans
