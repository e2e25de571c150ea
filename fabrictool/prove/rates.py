"""What the ports of a node can carry, from what was read of them."""

from __future__ import annotations

from fabrictool import ports, rdma
from fabrictool.collective.bands import Capacity, PortCapacity, port_capacity
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.values import Rate


def capacity(want: NodeSpec, snap: Snapshot) -> Capacity | Unreadable:
    """Every port of the spec. One whose rate cannot be read leaves no capacity at all: a sum without it would be a lower bar."""
    if snap.error:
        return snap.error
    seen, devices = ports.read(snap), rdma.read(snap)
    found: list[PortCapacity] = []
    for name in want.ports:
        mine = [fn for fn in ports.bind(want, seen) if fn.port == name]
        rates = [_rate(fn, devices.device(fn.rdma_name).rate if fn.rdma_name in devices.devices else Absent(fn.rdma_name)) for fn in mine]
        links = [link for fn in mine for link in _pcie(fn, seen)]
        one = port_capacity(name, rates, links)
        if isinstance(one, Unreadable):
            return Unreadable(one.reason, f"{want.name}: {one.why}")
        found.append(one)
    return Capacity(want.name, tuple(found)) if found else Unreadable(Reason.EMPTY, f"{want.name}: the spec names no port")


def _rate(fn: ports.BoundFunction, device: Observed[Rate]) -> Observed[Rate]:
    """The interface's speed, else the rate of its RDMA device. One that is down shows neither: mlx5 then names a rate that it has not."""
    if not isinstance(fn.netdev, Value):
        return fn.netdev
    if isinstance(fn.netdev.value.speed, Value):
        return fn.netdev.value.speed
    up = isinstance(fn.netdev.value.carrier, Value) and fn.netdev.value.carrier.value
    return device if up and isinstance(device, Value) else fn.netdev.value.speed


def _pcie(fn: ports.BoundFunction, seen: ports.Ports) -> list[Observed[ports.Pcie]]:
    """The PCIe links behind the function: a bond's are its members'."""
    if not fn.members:
        return [fn.netdev.value.pcie if isinstance(fn.netdev, Value) else fn.netdev]
    members = [seen.netdev(m) for m in fn.members]
    return [m.value.pcie if isinstance(m, Value) else m for m in members]
