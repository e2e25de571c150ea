"""Two readings of one node, and what moved between them.

A counter of 64 bits never goes back: where one did, the device was reset or its driver reloaded, and nothing that the device shows can be
compared. The queue counters of mlx5 have 32 bits and wrap. After a reboot, or where not a single counter of the node moved, not even
those of its own SSH session, the two readings are no pair at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

from fabrictool.counters.model import Device, Reading, Table
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value

WRAP = 2**32
# mlx5_ib's queue counters (query_q_counter_out: 32-bit fields). CNP, ECN and ICRC counters have 64 bits.
NARROW = frozenset({
    "rx_write_requests", "rx_read_requests", "rx_atomic_requests", "out_of_buffer", "out_of_sequence", "duplicate_request",
    "rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "req_transport_retries_exceeded",
    "req_rnr_retries_exceeded", "resp_local_length_error", "resp_cqe_error", "req_cqe_error", "req_remote_invalid_request",
    "req_remote_access_errors", "resp_remote_access_errors", "resp_cqe_flush_error", "req_cqe_flush_error", "roce_adp_retrans",
    "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans"})
# The classic port counters stop at their highest value (InfiniBand Architecture Specification, PortCounters; core/sysfs.c of the kernel).
STOPS = {"symbol_error": 0xFFFF, "link_error_recovery": 0xFF, "link_downed": 0xFF, "port_rcv_errors": 0xFFFF, "port_xmit_discards": 0xFFFF,
         "port_xmit_data": 0xFFFFFFFF, "port_rcv_data": 0xFFFFFFFF, "port_xmit_packets": 0xFFFFFFFF, "port_rcv_packets": 0xFFFFFFFF}
TRAFFIC = ("_data", "_packets")  # 64 bits
UNIT = 4  # bytes: port_xmit_data and port_rcv_data count words of four octets
DATA = {"tx": "port_xmit_data", "rx": "port_rcv_data"}


@dataclass(frozen=True, slots=True)
class Invalid:
    """No sample: the counter began anew between the two readings."""

    why: str


Moved = Union[Value[int], Unreadable, Invalid]


def total(parts: Iterable[Moved]) -> Moved:
    """The sum; of parts that are no numbers the worst one. Nothing to add up is no number."""
    every = tuple(parts)
    for kind in (Invalid, Unreadable):
        found = next((p for p in every if isinstance(p, kind)), None)
        if found is not None:
            return found
    numbers = [p.value for p in every if isinstance(p, Value)]
    return Value(sum(numbers)) if numbers else Unreadable(Reason.EMPTY, "there is no counter to add up")


def moved(before: Table, after: Table, name: str, *, narrow: bool = False) -> Moved:
    """How far the counter went. `narrow`: it has 32 bits. One that wrapped stood in its upper half: no run counts 2^31 events."""
    old, new = before.get(name), after.get(name)
    if isinstance(old, Unreadable):
        return old
    if isinstance(new, Unreadable):
        return new
    if new.value >= old.value:
        return Value(new.value - old.value)
    if narrow and WRAP // 2 <= old.value < WRAP:
        return Value(new.value + WRAP - old.value)
    return Invalid(f"{before.what}: {name} went back from {old.value} to {new.value}: the device was reset, or its driver reloaded")


@dataclass(frozen=True, slots=True)
class Span:
    """What happened to a node between two readings. `broken`: why the two are no pair. `seconds`: by the node's own uptime."""

    before: Reading
    after: Reading
    broken: Unreadable | Invalid | None
    seconds: Observed[float]

    @property
    def devices(self) -> tuple[str, ...]:
        """Every RDMA device of either reading."""
        return tuple(dict.fromkeys((*self.before.devices, *self.after.devices)))

    def told(self, device: str) -> frozenset[str]:
        """The counters of the function that either reading shows as a number."""
        seen = [d.value for d in (self.before.device(device), self.after.device(device)) if isinstance(d, Value)]
        return frozenset(n for d in seen for n in d.port.names | d.hw.names)

    def port(self, device: str, name: str) -> Moved:
        """A counter of sysfs `counters/`, in its own unit."""
        both = self._both(device)
        if not isinstance(both, Pair):
            return both
        stop = STOPS.get(name)
        old, now = both.before.port.get(name), both.after.port.get(name)
        # An error counter that reached its stop only now did grow; of traffic the amount is not known.
        if stop is not None and now == Value(stop) and (old == now or name.endswith(TRAFFIC)):
            return Unreadable(Reason.GARBLED, f"{both.after.port.what}: {name} stands at {stop}, where it stops counting")
        return both.reset or moved(both.before.port, both.after.port, name)

    def hw(self, device: str, name: str) -> Moved:
        """A counter of sysfs `hw_counters/`."""
        both = self._both(device)
        if not isinstance(both, Pair):
            return both
        narrow = name in NARROW and "sent_pkts" not in both.after.hw.names  # rxe has names of mlx5 with 64 bits
        return both.reset or moved(both.before.hw, both.after.hw, name, narrow=narrow)

    def nic(self, interface: str, name: str) -> Moved:
        """A counter of `ethtool -S`."""
        return self.broken or moved(self.before.nic(interface), self.after.nic(interface), name)

    def net(self, interface: str, name: str) -> Moved:
        """A counter of the kernel's own path: on mlx5 without RDMA."""
        return self.broken or moved(self.before.net(interface), self.after.net(interface), name)

    def rdma_bytes(self, device: str, way: str, interface: str = "") -> Moved:
        """Bytes of RDMA that the function sent (`way` "tx") or received ("rx"). Where sysfs does not tell, `ethtool -S` of its `interface`
        does: the same counter of the virtual port, in bytes."""
        words = self.port(device, DATA[way])
        if isinstance(words, Value):
            return Value(words.value * UNIT)
        if isinstance(words, Unreadable) and interface:
            second = self.nic(interface, f"{way}_vport_rdma_unicast_bytes")
            return second if not isinstance(second, Unreadable) else words
        return words

    def rdma_packets(self, device: str) -> Moved:
        """RoCE packets sent and received: what rates are told of."""
        return total((self.port(device, "port_xmit_packets"), self.port(device, "port_rcv_packets")))

    def _both(self, device: str) -> Pair | Unreadable | Invalid:
        if self.broken:
            return self.broken
        old, new = self.before.device(device), self.after.device(device)
        for seen in (old, new):
            if isinstance(seen, Unreadable):
                return seen
        if isinstance(old, Value) and isinstance(new, Value):
            return Pair(old.value, new.value, _reset(old.value.port, new.value.port))
        if isinstance(old, Absent) and isinstance(new, Absent):
            return Unreadable(Reason.EMPTY, f"{device}: the node has no such RDMA device")
        how = "appeared" if isinstance(old, Absent) else "vanished"
        return Invalid(f"{device} {how} between the two readings")


@dataclass(frozen=True, slots=True)
class Pair:
    """A device in both readings. `reset`: it began anew between them."""

    before: Device
    after: Device
    reset: Invalid | None


def _reset(before: Table, after: Table) -> Invalid | None:
    """A traffic counter that went back: all counters began anew then, those too that are beyond their old value again by now."""
    for name in sorted(n for n in before.names & after.names if n.endswith(TRAFFIC)):
        seen = moved(before, after, name)
        if isinstance(seen, Invalid):
            return seen
    return None


def span(before: Reading, after: Reading) -> Span:
    """The two readings as a pair, or why they are none."""
    for one in (before, after):
        if one.error:
            return Span(before, after, one.error, one.error)
    old, new = before.clock, after.clock
    if isinstance(old.boot, Value) and isinstance(new.boot, Value) and old.boot != new.boot:
        why = Invalid(f"{after.node} was booted between the two readings")
        return Span(before, after, why, Unreadable(Reason.BLOCKED, why.why))
    seconds: Observed[float] = old.uptime_s if not isinstance(old.uptime_s, Value) else new.uptime_s
    if isinstance(old.uptime_s, Value) and isinstance(new.uptime_s, Value):
        passed = round(new.uptime_s.value - old.uptime_s.value, 4)
        if passed <= 0:
            how = "was booted between the two readings" if passed < 0 else "gave two readings of one moment"
            why = Invalid(f"{after.node} {how}: uptime {old.uptime_s.value} s, then {new.uptime_s.value} s")
            return Span(before, after, why, Unreadable(Reason.BLOCKED, why.why))
        seconds = Value(passed)
    return Span(before, after, _still(before, after), seconds)


def _still(before: Reading, after: Reading) -> Invalid | None:
    """Not one counter of the node moved. Its own network traffic must have: somebody read them over it."""
    if not any(t.names for t in after.nets.values()):
        return None
    for old, new in ((before.nets, after.nets), (before.nics, after.nics)):
        if any(name not in old or old[name].values != t.values for name, t in new.items()):
            return None
    for name, device in after.devices.items():
        old_device = before.devices.get(name)
        if old_device is None or old_device.port.values != device.port.values or old_device.hw.values != device.hw.values:
            return None
    return Invalid(f"{after.node}: no counter moved at all, not even those of its interfaces: the readings are old ones")
