"""What one RDMA device's port is, as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from fabrictool.model import Absent, Observed, Reason, Unreadable
from fabrictool.ports import Ports
from fabrictool.values import Gid, Rate

NOT_READ = Unreadable(Reason.NOT_COLLECTED, "the snapshot does not hold this device")


class PortState(IntEnum):
    """The numbers that sysfs prints before the words."""

    DOWN = 1
    INIT = 2
    ARMED = 3
    ACTIVE = 4
    ACTIVE_DEFER = 5


@dataclass(frozen=True, slots=True)
class GidEntry:
    """One slot of the GID table that holds a GID. `kind`: "RoCE v2" or "IB/RoCE v1"."""

    index: int
    gid: Gid
    kind: Observed[str]
    netdev: Observed[str]


@dataclass(frozen=True, slots=True)
class RdmaLink:
    """One line of `rdma -j link`, port 1. `state` and `physical` as the tool spells them (ACTIVE, LINK_UP)."""

    state: str
    physical: str
    netdev: str


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """Port 1 of a device. `rate` says nothing unless the port is active (mlx5 shows 40 Gb/s while down). `active_mtu` in bytes;
    `override`: the traffic class that the driver gives to every queue pair, whatever the program asked for."""

    name: str
    state: Observed[PortState] = NOT_READ
    phys_state: Observed[str] = NOT_READ
    rate: Observed[Rate] = NOT_READ
    link_layer: Observed[str] = NOT_READ
    gids: Observed[tuple[GidEntry, ...]] = NOT_READ
    active_mtu: Observed[int] = NOT_READ
    override: Observed[int] = NOT_READ
    link: Observed[RdmaLink] = NOT_READ


@dataclass(frozen=True, slots=True)
class Rdma:
    """Everything of one node. `stack`: absent = the kernel has no RDMA core."""

    ports: Ports
    devices: Mapping[str, RdmaPort]
    stack: Observed[bool]

    def device(self, name: str) -> RdmaPort:
        return self.devices.get(name) or RdmaPort(name)


NO_STACK = Absent("RDMA core of the kernel (ib_core is not loaded)")
