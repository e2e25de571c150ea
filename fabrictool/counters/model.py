"""One reading: every counter of one node at one moment, with the node's own clock. What is not a number is never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value

NOT_READ = Unreadable(Reason.NOT_COLLECTED, "not collected")


@dataclass(frozen=True, slots=True)
class Clock:
    """`uptime_s`: seconds since boot (a hundredth of a second); `epoch_s`: seconds since 1970, as the node believes; `boot`: an id that
    each boot has anew."""

    uptime_s: Observed[float] = NOT_READ
    epoch_s: Observed[float] = NOT_READ
    boot: Observed[str] = NOT_READ


@dataclass(frozen=True, slots=True)
class Table:
    """Counters of one thing by name. `what` names it for people; `odd`: counters whose content was no number (`N/A (no PMA)`)."""

    what: str
    values: Mapping[str, int] | Unreadable = NOT_READ
    odd: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> Value[int] | Unreadable:
        """A counter that has no line is unreadable: a driver without it and one that refuses to tell look the same."""
        if isinstance(self.values, Unreadable):
            return self.values
        if name in self.values:
            return Value(self.values[name])
        if name in self.odd:
            return Unreadable(Reason.GARBLED, f"{self.what}: {name} says {self.odd[name][:40]!r}")
        return Unreadable(Reason.EMPTY, f"{self.what}: no {name} (the driver has none, or does not tell)")

    @property
    def names(self) -> frozenset[str]:
        return frozenset() if isinstance(self.values, Unreadable) else frozenset(self.values)


@dataclass(frozen=True, slots=True)
class Device:
    """Port 1 of an RDMA device. `port`: sysfs `counters/` (data in units of 4 bytes); `hw`: `hw_counters/`; `lifespan_ms`: how old
    a value of `hw` may be."""

    name: str
    port: Table
    hw: Table
    lifespan_ms: Observed[int] = NOT_READ


@dataclass(frozen=True, slots=True)
class Reading:
    """`devices` by RDMA device; `nets` (sysfs statistics) and `nics` (`ethtool -S`) by interface. `error`: nothing could be read."""

    node: str
    clock: Clock = field(default_factory=Clock)
    devices: Mapping[str, Device] = field(default_factory=dict)
    nets: Mapping[str, Table] = field(default_factory=dict)
    nics: Mapping[str, Table] = field(default_factory=dict)
    error: Unreadable | None = None

    def device(self, name: str) -> Observed[Device]:
        """Absent: the node listed its RDMA devices, and this one was not among them."""
        if self.error:
            return self.error
        return Value(self.devices[name]) if name in self.devices else Absent(f"RDMA device {name}")

    def net(self, name: str) -> Table:
        return self.nets.get(name) or Table(name, self.error or Unreadable(Reason.NOT_COLLECTED, f"{name}: no statistics in this reading"))

    def nic(self, name: str) -> Table:
        none = self.error or Unreadable(Reason.NOT_COLLECTED, f"ethtool -S {name}: not in this reading")
        return self.nics.get(name) or Table(f"ethtool -S {name}", none)


def size_text(n: int) -> str:
    """Bytes for people, decimal: `19.73 GB`, `312.0 kB`, `0 B`."""
    for unit, scale, digits in (("GB", 10**9, 2), ("MB", 10**6, 1), ("kB", 10**3, 1)):
        if abs(n) >= scale:
            return f"{n / scale:.{digits}f} {unit}"
    return f"{n} B"
