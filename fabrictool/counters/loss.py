"""Counters that tell of loss, damage and congestion: which ones, and what growth during a run means.

Meanings: the kernel's mlx5 and rxe drivers, the vendor's list of mlx5 counters, InfiniBand's PortCounters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.counters.delta import Invalid, Moved, Span
from fabrictool.model import Reason, Unreadable, Value


class Kind(StrEnum):
    """LOSS: packets were lost, by a lossy fabric perhaps by design. DAMAGE: a fault of cable, port or PFC itself, on any fabric.
    HINT: worth a look, and no loss of the fabric's (a receiver without buffers, say). CONGESTION: how it should work."""

    LOSS = "loss"
    DAMAGE = "damage"
    HINT = "hint"
    CONGESTION = "congestion"


class Where(StrEnum):
    """PORT: sysfs counters/; HW: sysfs hw_counters/; NIC: `ethtool -S`, of the physical port, so that twins show it twice."""

    PORT = "counters"
    HW = "hw_counters"
    NIC = "ethtool -S"


@dataclass(frozen=True, slots=True)
class Watched:
    """`name`: `{p}` stands for the priority of the RoCE traffic."""

    where: Where
    name: str
    kind: Kind
    meaning: str


_HW, _PORT, _NIC = Where.HW, Where.PORT, Where.NIC
WATCHED: tuple[Watched, ...] = (
    Watched(_HW, "out_of_sequence", Kind.LOSS, "the receiver saw a gap: packets were lost or overtook each other on the way"),
    Watched(_HW, "packet_seq_err", Kind.LOSS, "the sender was told of a gap (sequence NAK)"),
    Watched(_HW, "implied_nak_seq_err", Kind.LOSS, "an answer to the sender was lost"),
    Watched(_HW, "local_ack_timeout_err", Kind.LOSS, "the sender got no answer in time: path broken, MTU hole, or peer dead"),
    Watched(_HW, "req_transport_retries_exceeded", Kind.LOSS, "the sender gave up: a queue pair died"),
    Watched(_HW, "duplicate_request", Kind.LOSS, "the peer sent again what had arrived: its answer was lost or late"),
    Watched(_HW, "roce_adp_retrans", Kind.LOSS, "the card recovered from loss by sending again"),
    Watched(_HW, "roce_adp_retrans_to", Kind.LOSS, "the card sent again after a time-out"),
    Watched(_HW, "roce_slow_restart", Kind.LOSS, "the card restarted slowly after loss"),
    Watched(_HW, "roce_slow_restart_trans", Kind.LOSS, "the card went over to a slow restart after loss"),
    # rxe
    Watched(_HW, "out_of_seq_request", Kind.LOSS, "the receiver saw a gap: packets were lost or overtook each other on the way"),
    Watched(_HW, "rcvd_seq_err", Kind.LOSS, "the sender was told of a gap (sequence NAK)"),
    Watched(_HW, "completer_retry_err", Kind.LOSS, "the sender got no answer in time and sent again"),
    Watched(_HW, "retry_exceeded_err", Kind.LOSS, "the sender gave up: a queue pair died"),
    Watched(_PORT, "port_xmit_discards", Kind.LOSS, "the port threw packets away instead of sending them"),
    Watched(_NIC, "rx_discards_phy", Kind.LOSS, "the port threw received packets away: its buffers were full"),
    Watched(_NIC, "tx_discards_phy", Kind.LOSS, "the port threw packets away instead of sending them"),
    Watched(_NIC, "rx_prio{p}_discards", Kind.LOSS, "received packets of the RoCE priority were thrown away: no buffer"),
    Watched(_NIC, "rx_prio{p}_buf_discard", Kind.LOSS, "the RoCE priority's receive buffer overflowed"),
    Watched(_NIC, "rx_prio{p}_cong_discard", Kind.LOSS, "received packets of the RoCE priority were thrown away under congestion"),
    Watched(_HW, "rx_icrc_encapsulated", Kind.DAMAGE, "a RoCE packet arrived corrupted"),
    Watched(_PORT, "symbol_error", Kind.DAMAGE, "symbols arrived corrupted: cable or transceiver"),
    Watched(_PORT, "link_error_recovery", Kind.DAMAGE, "the link had to recover: cable or transceiver"),
    Watched(_PORT, "link_downed", Kind.DAMAGE, "the link went down"),
    Watched(_PORT, "port_rcv_errors", Kind.DAMAGE, "packets arrived corrupted"),
    Watched(_NIC, "rx_crc_errors_phy", Kind.DAMAGE, "frames arrived corrupted: cable or transceiver"),
    Watched(_NIC, "rx_symbol_err_phy", Kind.DAMAGE, "symbols arrived corrupted: cable or transceiver"),
    Watched(_NIC, "rx_out_of_range_len_phy", Kind.DAMAGE, "a frame was larger than this interface's MTU: a peer's MTU is higher"),
    Watched(_NIC, "rx_oversize_pkts_phy", Kind.DAMAGE, "a frame was larger than the port takes: a peer's MTU is higher"),
    Watched(_NIC, "link_down_events_phy", Kind.DAMAGE, "the link went down"),
    Watched(_NIC, "tx_pause_storm_error_events", Kind.DAMAGE, "the port paused the link so long that the card switched pause off"),
    Watched(_HW, "rnr_nak_retry_err", Kind.HINT, "the peer had no buffer posted: application or host, not the fabric"),
    Watched(_HW, "out_of_buffer", Kind.HINT, "packets arrived while no buffer was posted: application or host, not the fabric"),
    Watched(_HW, "rcvd_rnr_err", Kind.HINT, "the peer had no buffer posted: application or host, not the fabric"),
    Watched(_NIC, "tx_pause_storm_warning_events", Kind.HINT, "this host paused the link for long: it is slow to take packets in"),
    Watched(_HW, "req_remote_access_errors", Kind.HINT, "the peer refused access to its memory: application"),
    Watched(_HW, "resp_remote_access_errors", Kind.HINT, "a peer reached for memory that it may not: application"),
    Watched(_NIC, "rx_pcs_symbol_err_phy", Kind.HINT, "symbols that error correction could not mend: cable or transceiver at its limit"),
    Watched(_HW, "np_ecn_marked_roce_packets", Kind.CONGESTION, "a switch marked packets: it met congestion"),
    Watched(_HW, "np_cnp_sent", Kind.CONGESTION, "the receiver told senders to slow down"),
    Watched(_HW, "rp_cnp_handled", Kind.CONGESTION, "the sender slowed down when told"),
    Watched(_HW, "rp_cnp_ignored", Kind.CONGESTION, "the sender was told to slow down and did not: congestion control is off"),
    Watched(_NIC, "rx_prio{p}_pause", Kind.CONGESTION, "the link partner paused the RoCE priority: its PFC works"),
    Watched(_NIC, "tx_prio{p}_pause", Kind.CONGESTION, "this port paused the RoCE priority: its PFC works"),
)
# A driver that shows none of a row tells nothing of loss. In order: gaps at the receiver, gaps at the sender, answers that did not come.
CORE = (("out_of_sequence", "out_of_seq_request"), ("packet_seq_err", "rcvd_seq_err"), ("local_ack_timeout_err", "completer_retry_err"))


@dataclass(frozen=True, slots=True)
class Growth:
    """One watched counter over a span. `name`: as the driver spells it."""

    watched: Watched
    name: str
    moved: Moved


def function_growth(span: Span, device: str) -> Iterator[Growth]:
    """The function's own counters, those that either reading shows: one that only one of them shows is unreadable."""
    told = span.told(device)
    for one in WATCHED:
        if one.where is not Where.NIC and one.name in told:
            yield Growth(one, one.name, span.port(device, one.name) if one.where is Where.PORT else span.hw(device, one.name))


def port_growth(span: Span, interface: str, priority: int | None) -> Iterator[Growth]:
    """The physical port's counters as one interface shows them, those that either reading shows."""
    told = span.before.nic(interface).names | span.after.nic(interface).names
    for one in WATCHED:
        if one.where is Where.NIC and (priority is not None or "{p}" not in one.name):
            name = one.name.replace("{p}", str(priority))
            if name in told:
                yield Growth(one, name, span.nic(interface, name))


def blind(growth: tuple[Growth, ...]) -> Unreadable | Invalid | None:
    """Why these counters of a function prove nothing about loss; None where every part of `CORE` could be read."""
    known = {g.name: g.moved for g in growth}
    for names in CORE:
        seen = [known[n] for n in names if n in known]
        if not any(isinstance(m, Value) for m in seen):
            why = f"the driver shows neither {' nor '.join(names)}"
            return next((m for m in seen if not isinstance(m, Value)), Unreadable(Reason.EMPTY, why))
    return None
