"""What RDMA traffic does to the counters of a node: the arithmetic of packets, classes and priorities.

Nothing here moves data. A program that would (nccl/) says how much went where, and this counts it as the NIC would.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.lab.nodeside.counts import add
from fabrictool.lab.nodeside.state import Function, Node

# A RoCE v2 packet around its payload: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand specification, annex A17).
HEADERS = 58
FCS = 4  # Ethernet's check sum: counted by the port alone
MTUS = (256, 512, 1024, 2048, 4096)
ROCE_ROOM = 96  # bytes that the driver keeps of the interface's MTU for headers
MESSAGE = 1 << 19  # bytes of one RDMA write of NCCL's Simple protocol: a request each


@dataclass(frozen=True)
class Flow:
    """RDMA traffic of one function since the last time. `sent`, `received`: payload bytes. `tos`, `peer_tos`: the class that this end and
    the far end's packets carry. `mtu`: the path's RDMA MTU. `missed`: packets that the far end said it did not get."""

    rdma: str
    sent: int
    received: int
    mtu: int
    tos: int = 0
    peer_tos: int = 0
    missed: int = 0


def active_mtu(mtu: int) -> int:
    """Of an interface with this MTU: the largest RDMA MTU that fits."""
    return max((m for m in MTUS if m <= mtu - ROCE_ROOM), default=MTUS[0])


def packets(size: int, mtu: int) -> int:
    return -(-size // mtu)


def tos_of(fn: Function, asked: int) -> int:
    """The class that packets of a queue pair really carry: an administrator's global one wins over the program's."""
    override = re.search(r"tclass=(\d+)", fn.tclass)
    if override:
        return int(override[1]) & 0xFF
    return 0 if fn.ignores_class else asked & 0xFF


def priority(fn: Function, tos: int) -> int:
    """Where this function's port puts a packet of that class. Without a VLAN tag, trust pcp means priority 0."""
    return fn.dscp_map[tos >> 2] if fn.trust == "dscp" else 0


def carry(fn: Function, flow: Flow, owed: float = 0.0) -> tuple[int, float]:
    """Count one flow. Gives how many packets this end did not get, and the fraction of one that is still owed."""
    for side, size, tos in (("tx", flow.sent, flow.tos), ("rx", flow.received, flow.peer_tos)):
        number = packets(size, flow.mtu) + (flow.missed if side == "tx" else 0)
        whole = size + (flow.missed * flow.mtu if side == "tx" else 0) + HEADERS * number
        level = priority(fn, tos)
        add(fn, f"{side}_prio{level}_bytes", whole + FCS * number)
        add(fn, f"{side}_prio{level}_packets", number)
        if not fn.frozen:
            add(fn, f"{side}_bytes", whole)
            add(fn, f"{side}_packets", number)
    owed += packets(flow.received, flow.mtu) * fn.lost_per_million / 1_000_000
    lost = int(owed)
    if not fn.frozen:
        add(fn, "rx_write_requests", packets(flow.received, MESSAGE))
        for name, number in (("packet_seq_err", flow.missed), ("roce_adp_retrans", flow.missed), ("out_of_sequence", lost)):
            if number:
                add(fn, name, number)
    return lost, owed - lost


def of(node: Node, rdma: str) -> Function | None:
    """The function of an RDMA device."""
    return next((fn for fn in node.functions.values() if fn.rdma == rdma), None)
