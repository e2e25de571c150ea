"""What carried a collective, as its NCCL logs tell: a claim. Only counters prove traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fabrictool.collective.edges import Carrier, EdgeVerdict, edges
from fabrictool.collective.logmodel import NcclLog, Proof
from fabrictool.collective.membership import Missing, Ranks


class Overall(StrEnum):
    """One word for a whole run. Only `RDMA` and `RDMA_GDR` speak for the fabric, and even they only claim."""

    RDMA = "RDMA, staged in host memory"
    RDMA_GDR = "RDMA with GPUDirect"
    TCP = "TCP"
    MIXED = "RDMA and TCP"
    SINGLE_NODE = "one node"
    MNNVL = "NVLink between nodes"
    PLUGIN = "unknown network plugin"
    CONTRADICTORY = "contradictory"
    INCOMPLETE = "incomplete"
    LOG_MISSING = "a log is missing"
    NO_CHANNELS = "no channel lines"

    @property
    def claims_rdma(self) -> bool:
        return self in (Overall.RDMA, Overall.RDMA_GDR)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`edges`: those between nodes, and every one over TCP wherever it runs; `local`: the others. `why`: one line for people. `nodes`: all
    that take part, as far as is known. `selected_tcp`: processes that chose sockets for a communicator over several nodes."""

    overall: Overall
    why: str
    edges: tuple[EdgeVerdict, ...] = ()
    local: tuple[EdgeVerdict, ...] = ()
    missing: tuple[Missing, ...] = ()
    nodes: tuple[str, ...] = ()
    selected_tcp: tuple[str, ...] = ()
    in_network: bool = False
    proof: tuple[Proof, ...] = field(default=())


def _over_sockets(log: NcclLog, ranks: Ranks, found: tuple[EdgeVerdict, ...]) -> tuple[str, ...]:
    """Nodes whose processes chose sockets for a communicator over several nodes, where that there are several is beyond doubt."""
    if any(Carrier.MNNVL in e.carriers for e in found) or any(m.mnnvl for m in ranks.members):
        return ()  # one NVLink domain: its network is not used
    counted = {n for n in ranks.counted_nodes() if n is not None}
    if counted and min(counted) > 1:
        mine = {m.process for m in ranks.members}
    elif counted == {1}:
        return ()
    elif ranks.members:
        mine = ranks.spanning()
    else:  # without lines of ranks: several hosts that say nothing but their choice
        mine = set() if found else {p.key for p in log.processes if p.sockets or p.networks}
        mine = mine if len({k.node for k in mine}) > 1 else set()
    chose = {p.key: {n.casefold() for n in p.networks} or {"socket" for _ in p.sockets if not any(h.hcas for h in p.hcas)}
             for p in log.processes}
    return tuple(dict.fromkeys(k.node for k, names in chose.items() if k in mine and names == {"socket"}))


def _nodes(ranks: Ranks, found: Iterable[EdgeVerdict]) -> tuple[str, ...]:
    told = (*ranks.given.values(), *(m.process.node for m in ranks.members), *(n for e in found for n in (e.src_node, e.dst_node)))
    return tuple(dict.fromkeys(n for n in told if n))


def _leaves(e: EdgeVerdict) -> bool:
    """Whether it leaves its node. P2P and shared memory do not where the far end is unknown, nor by a single (damaged) line."""
    if e.carriers == {Carrier.LOCAL}:
        return bool(e.src_node and e.dst_node) and e.between_nodes and sum(end.lines for end in e.ends) > 1
    return e.between_nodes


def verdict(log: NcclLog, rank_nodes: Mapping[int, str] | None = None, expected: Iterable[str] = ()) -> Verdict:
    """`rank_nodes`: the node of each rank, in the names that the log's processes carry, where the caller knows it; `expected`: nodes that
    must have a log."""
    ranks = Ranks(log, rank_nodes or {})
    found = edges(log, ranks)
    between = tuple(e for e in found if Carrier.TCP in e.carriers or _leaves(e))
    local = tuple(e for e in found if e not in between)
    sockets = _over_sockets(log, ranks, found)
    missing = ranks.missing(log, expected) if found or ranks.members else ()
    nodes = _nodes(ranks, found)
    in_network = any(p.collnet for p in log.processes)
    overall, why, telling = _overall(log, ranks, between, local, sockets, missing, nodes)
    return Verdict(overall, why, between, local, missing, nodes, sockets, in_network, tuple(p for e in telling for p in e.proof)[:8])


Told = tuple[Overall, str, tuple[EdgeVerdict, ...]]


def _overall(log: NcclLog, ranks: Ranks, between: tuple[EdgeVerdict, ...], local: tuple[EdgeVerdict, ...], sockets: tuple[str, ...],
             missing: tuple[Missing, ...], nodes: tuple[str, ...]) -> Told:
    tcp = tuple(e for e in between if Carrier.TCP in e.carriers)
    rdma = tuple(e for e in between if Carrier.RDMA in e.carriers)
    if tcp or sockets:
        if rdma or any(Carrier.RDMA in e.carriers for e in local):
            return Overall.MIXED, "some channels run over RDMA and some over TCP", tcp or rdma
        why = "channels run over sockets" if tcp else "NCCL chose sockets for a communicator over several nodes"
        return Overall.TCP, why, tcp
    if not between and any(p.collnet for p in log.processes):
        return Overall.PLUGIN, "reduced inside the network (COLLNET): such channels name no peer, so the counters decide", ()
    if not between and not local and ranks.counted_nodes() == {1} and len({*nodes}) == 1:
        return Overall.SINGLE_NODE, "NCCL counts one node: nothing is known of the fabric", ()
    if not between and not local:
        return Overall.NO_CHANNELS, "no channel lines: NCCL connects at the first collective, and logs it with NCCL_DEBUG=INFO", ()
    odd = tuple(e for e in between if Carrier.LOCAL in e.carriers)
    if odd:
        return Overall.CONTRADICTORY, "a transport that works only inside a node joins ranks of different nodes", odd
    if missing and not _one_node(ranks, between):
        return Overall.LOG_MISSING, _missing_text(missing), rdma
    plugin = tuple(e for e in (*between, *local) if e.carriers & {Carrier.PLUGIN, Carrier.UNREADABLE})
    if plugin:
        names = ", ".join(dict.fromkeys(n for e in plugin for end in e.ends for n in end.names))
        return Overall.PLUGIN, f"{names[:120]}: its name does not tell what carries it", plugin
    return _over_rdma(ranks, between, local, rdma, nodes)


def _over_rdma(ranks: Ranks, between: tuple[EdgeVerdict, ...], local: tuple[EdgeVerdict, ...], rdma: tuple[EdgeVerdict, ...],
               nodes: tuple[str, ...]) -> Told:
    """No TCP anywhere, every carrier known."""
    if not between:
        if any(Carrier.RDMA in e.carriers for e in local):
            several = max((n for n in ranks.counted_nodes() if n is not None), default=1) > 1 and len(nodes) == 1
            why = ("RDMA between ranks of one host name, where NCCL counts several nodes: loopback, or nodes with the same name" if several
                   else "RDMA inside one node (loopback): nothing is known of the fabric")
            return Overall.SINGLE_NODE, why, local
        apart = ranks.given and len(set(ranks.given.values())) > 1
        if apart and not _one_node(ranks, between):
            return Overall.INCOMPLETE, "ranks of several nodes, but no channel between them", local
        return Overall.SINGLE_NODE, "all ranks run on one node: nothing is known of the fabric", local
    if not rdma:
        return Overall.MNNVL, "channels between nodes run over NVLink: nothing is known of the RDMA fabric", between
    half = tuple(e for e in rdma if not (e.whole or (Carrier.MNNVL in e.carriers)))
    if half:
        return Overall.INCOMPLETE, "only one end of a channel between nodes was logged", half
    silent = [n for n in nodes if not (any(e.src_node == n for e in between) and any(e.dst_node == n for e in between))]
    if silent:
        return Overall.INCOMPLETE, f"no channels both to and from {', '.join(silent[:8])}", rdma
    direct = all(end.gdr == end.lines for e in rdma for end in e.ends)
    return (Overall.RDMA_GDR if direct else Overall.RDMA), "every channel between nodes runs over RDMA, as both ends log it", rdma


def _one_node(ranks: Ranks, between: tuple[EdgeVerdict, ...]) -> bool:
    """NCCL itself counts one node, and no channel leaves it."""
    return not between and ranks.counted_nodes() == {1}


def _missing_text(missing: Iterable[Missing]) -> str:
    parts = [f"{m.node or 'unknown node'}: {_ranks(m.ranks)}" if m.ranks else m.node for m in missing]
    return f"no log of {'; '.join(parts[:4])}"


def _ranks(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"rank{'' if len(ranks) == 1 else 's'} {shown}{' ...' if len(ranks) > 8 else ''}"
