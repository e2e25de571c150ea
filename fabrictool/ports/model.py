"""What a node's interfaces and RDMA devices are, as read; and the spec's functions bound to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface

from fabrictool.model import Absent, Observed, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.spec import FunctionSpec, NodeSpec
from fabrictool.values import Rate

Address = IPv4Interface | IPv6Interface

NOT_READ = Unreadable(Reason.NOT_COLLECTED, "not collected")


@dataclass(frozen=True, slots=True)
class Pcie:
    """The PCIe link of a function as it runs now and as the device could run it. Speeds are in GT/s per lane."""

    width: int
    max_width: int
    speed_gt_s: float | None = None
    max_speed_gt_s: float | None = None

    @property
    def gbit_per_s(self) -> float | None:
        """What the link can carry before packet overhead: lanes x GT/s x encoding (8b/10b up to 5 GT/s, 128b/130b above:
        PCI Express Base Specification 3.0, section 4.2)."""
        if self.speed_gt_s is None:
            return None
        return self.width * self.speed_gt_s * (0.8 if self.speed_gt_s <= 5 else 128 / 130)


@dataclass(frozen=True, slots=True)
class QueuePair:
    """One queue pair of `rdma resource show qp`. `pid` 0 = owned by the kernel."""

    rdma: str
    number: int
    kind: str  # RC, UD, GSI ...
    state: str
    pid: int = 0
    comm: str = ""

    @property
    def housekeeping(self) -> bool:
        """The kernel's own management queue pairs: every device has them always, so they say nothing about use."""
        if self.kind in ("SMI", "GSI") or self.number in (0, 1):
            return True
        return self.pid == 0 and self.kind == "UD" and self.comm.strip("[]") in ("ib_core", "mlx5_ib", "mlx5-gsi", "rdma-mad")


@dataclass(frozen=True, slots=True)
class Netdev:
    """One kernel interface.

    `kind`: iproute2's info_kind ("" for a plain NIC; bond, vlan, bridge, veth); `device`: has a device behind it in sysfs;
    `bus`: PCI address; `master`: its bond or bridge; `parent`: the interface below a VLAN; `rdma`: RDMA devices on it.
    """

    name: str
    mac: str = ""
    mtu: Observed[int] = NOT_READ
    min_mtu: Observed[int] = NOT_READ
    max_mtu: Observed[int] = NOT_READ
    up: bool = False  # administratively
    operstate: str = ""
    carrier: Observed[bool] = NOT_READ
    speed: Observed[Rate] = NOT_READ
    driver: Observed[str] = NOT_READ
    bus: Observed[str] = NOT_READ
    phys_port_name: Observed[str] = NOT_READ
    kind: str = ""
    device: bool = False
    virtual_function: bool = False
    master: str = ""
    parent: str = ""
    addresses: tuple[Address, ...] = ()
    rdma: tuple[str, ...] = ()
    altnames: tuple[str, ...] = ()
    permanent_mac: str = ""  # a bond gives its members its own MAC; this one stays
    physfn: str = ""  # the PCI address of a virtual function's physical function
    phys_switch_id: Observed[str] = NOT_READ
    carrier_changes: Observed[int] = NOT_READ
    pcie: Observed[Pcie] = NOT_READ

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.altnames)

    def has_mac(self, mac: str) -> bool:
        return mac.lower() in (self.mac.lower(), self.permanent_mac.lower())


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """One RDMA device. `sys_image_guid` is equal for all functions of one card."""

    name: str
    netdevs: tuple[str, ...] = ()
    bus: Observed[str] = NOT_READ
    sys_image_guid: Observed[str] = NOT_READ
    node_guid: Observed[str] = NOT_READ


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything of one node. `default_route` and `ssh_interface` are what MGMT_PATH protects."""

    netdevs: Mapping[str, Netdev] | Unreadable
    rdma: Mapping[str, RdmaDevice] | Unreadable
    default_routes: tuple[str, ...] | Unreadable = ()
    ssh_interface: Observed[str] = field(default_factory=lambda: Absent("no SSH session in this snapshot"))
    ssh_routes: tuple[str, ...] = ()  # where answers to the SSH client leave
    queue_pairs: tuple[QueuePair, ...] | Unreadable = NOT_READ

    def netdev(self, name: str) -> Observed[Netdev]:
        """An interface by its name or an altname."""
        if isinstance(self.netdevs, Unreadable):
            return self.netdevs
        found = self.netdevs.get(name) or next((n for n in self.netdevs.values() if name in n.altnames), None)
        return Value(found) if found else Absent(f"interface {name}")


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A function of the spec, bound on the node. `twins`: interfaces of the other functions of the same physical port."""

    port: str
    want: FunctionSpec
    netdev: Observed[Netdev]
    rdma: Observed[RdmaDevice]
    twins: tuple[str, ...] = ()
    members: tuple[str, ...] = ()  # a LAG: its member interfaces, as the spec names them or as the bond has them

    @property
    def interface(self) -> str:
        """The interface's name on the node; before binding, the spec's best selector."""
        if isinstance(self.netdev, Value):
            return self.netdev.value.name
        return self.want.interface or self.want.rdma or self.want.mac or "?"

    @property
    def rdma_name(self) -> str:
        if isinstance(self.rdma, Value):
            return self.rdma.value.name
        return self.want.rdma or "?"

    def subject(self, node: NodeSpec) -> Subject:
        """The function as the subject of a finding."""
        return Subject(SubjectKind.FUNCTION, (node.name,), self.port, self.interface, self.want.rail)
