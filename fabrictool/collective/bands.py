"""What a bus bandwidth means beside what the ports can carry. A band explains; logs and counters decide.

Rates are those that were read from the ports. Functions of one port share its rate: they are added on the PCIe side only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports import Pcie
from fabrictool.values import Rate

# Shares of what the ports carry, from AllReduce of 256 MiB over Ring on 200 Gb/s ports with two functions (25 GB/s): 9.5 to 13 GB/s is one
# of two rails, 2.5 to 6 most often TCP. Measured there: TCP 4.0, one rail 11.4, both 22.9.
ONE_RAIL = (9.5 / 12.5, 13 / 12.5)  # of one rail's part
TCP = (2.5 / 25, 6 / 25)  # of one port
ABOVE = 1.05  # more than this times the ports' rate does not pass through them


class Band(StrEnum):
    """Where a figure lies."""

    GOOD = "as the ports can carry"
    ONE_RAIL = "as one rail alone gives"
    TCP = "as TCP gives"
    LOW = "low"
    ABOVE = "more than the ports can carry"


@dataclass(frozen=True, slots=True)
class PortCapacity:
    """One cage and cable. `rate`: as read; `pcie_gbit_per_s`: what the PCIe links of its functions carry together, None where one of them
    could not be read; `functions`: how many of its functions are rails."""

    port: str
    rate: Rate
    pcie_gbit_per_s: float | None
    functions: int

    @property
    def gbytes_per_s(self) -> float:
        """Decimal GB/s each way."""
        limit = self.rate.gbit_per_s if self.pcie_gbit_per_s is None else min(self.rate.gbit_per_s, self.pcie_gbit_per_s)
        return limit / 8


@dataclass(frozen=True, slots=True)
class Capacity:
    """What all ports of one node carry together."""

    node: str
    ports: tuple[PortCapacity, ...]

    @property
    def gbytes_per_s(self) -> float:
        return sum(p.gbytes_per_s for p in self.ports)

    @property
    def rails(self) -> int:
        return sum(p.functions for p in self.ports)

    def __str__(self) -> str:
        return f"{self.gbytes_per_s:.1f} GB/s ({len(self.ports)} port{'' if len(self.ports) == 1 else 's'}, {self.rails} rails)"


def port_capacity(port: str, rates: Sequence[Observed[Rate]], pcie: Sequence[Observed[Pcie]]) -> PortCapacity | Unreadable:
    """`rates`: what each function shows of the port's rate (one that is down shows none); the smallest counts, once. `pcie`: of each
    function."""
    read = [r.value for r in rates if isinstance(r, Value)]
    if not read:
        why = next((r.why for r in rates if isinstance(r, Unreadable)), "no function tells it")
        return Unreadable(Reason.EMPTY, f"the rate of port {port}: {why}")
    if min(read).bits_per_s <= 0:
        return Unreadable(Reason.GARBLED, f"the rate of port {port}: 0")
    links = [p.value.gbit_per_s for p in pcie if isinstance(p, Value)]
    known = [g for g in links if g]
    return PortCapacity(port, min(read), sum(known) if known and len(known) == len(pcie) else None, len(rates))


def smallest(nodes: Sequence[Capacity]) -> Capacity:
    """The node that holds all others back."""
    return min(nodes, key=lambda n: n.gbytes_per_s)


def band(busbw: float, capacity: Capacity, min_share: float) -> Band:
    """`busbw`: GB/s of an AllReduce over a ring, which is what leaves each node a second. `min_share`: of the ports' rate."""
    whole = capacity.gbytes_per_s
    if busbw > whole * ABOVE:
        return Band.ABOVE
    if busbw >= whole * min_share:
        return Band.GOOD
    part = whole / max(capacity.rails, 1)
    if capacity.rails > 1 and part * ONE_RAIL[0] <= busbw <= part * ONE_RAIL[1]:
        return Band.ONE_RAIL
    port = max(p.gbytes_per_s for p in capacity.ports)
    return Band.TCP if port * TCP[0] <= busbw <= port * TCP[1] else Band.LOW


WHY = {
    Band.GOOD: "",
    Band.ONE_RAIL: "this much comes of one rail alone: one device listed, one down, or one with a wrong GID or subnet; the check rails and "
                   "the counters tell which",
    Band.TCP: "TCP gives about this much; whether it was TCP is told by the logs and the counters, not by the figure",
    Band.LOW: "neither TCP nor a missing rail gives just this much: look at PCIe width, a degraded NIC, loss, and the slowest node",
    Band.ABOVE: "no port carries this much: either the rate was misread or the traffic did not leave the nodes",
}
