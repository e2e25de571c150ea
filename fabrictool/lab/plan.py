"""What a lab is to be: names, addresses, interfaces, functions. Pure: from a profile and a number of nodes, nothing read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fabrictool.lab.errors import LabError
from fabrictool.lab.nodeside.state import Function, Nic, Node

MAX_NODES = 64
FIRST_HOST = 10  # node 1 is .11, as in the examples of the spec
SWITCH_MTU = 9216  # what a RoCE switch port is usually set to
NIC_MTU = 1500  # factory


class Owner(StrEnum):
    """Who owns the fabric interfaces' persistent configuration."""

    NETWORK_MANAGER = "netplan with NetworkManager"
    NETWORKD = "netplan with systemd-networkd"
    NONE = "none"


@dataclass(frozen=True)
class Device:
    """One RDMA function of a profile. `rail` "" = a storage function, on no rail."""

    interface: str
    rdma: str
    port: str
    rail: str
    bus: str
    rate_gbit: int


@dataclass(frozen=True)
class Profile:
    """A kind of node. `management`: the interface of SSH and of the default route. `cards`: functions of one card share a
    sys_image_guid. `tools`: stand-ins present; every other known tool is absent, also where this machine has the real one."""

    name: str
    prefix: str
    group: str
    management: Nic
    devices: tuple[Device, ...]
    subnets: dict[str, str]  # rail -> first three octets
    bootstrap: str
    owner: Owner
    era: str
    one_card: bool
    gpu: str
    gpus: int
    tools: frozenset[str]
    pcie_width: int


@dataclass(frozen=True)
class Cable:
    """One interface of one node and the bridge that its other end is in. `address` with prefix length."""

    interface: str
    bridge: str
    mac: str
    address: str
    rail: str


@dataclass(frozen=True)
class NodePlan:
    name: str
    number: int  # from 1
    cables: tuple[Cable, ...]  # the first is management

    @property
    def management(self) -> Cable:
        return self.cables[0]

    @property
    def fabric(self) -> tuple[Cable, ...]:
        return self.cables[1:]


@dataclass(frozen=True)
class LabPlan:
    name: str
    profile: Profile
    nodes: tuple[NodePlan, ...]

    @property
    def bridges(self) -> tuple[str, ...]:
        return ("mgmt", *dict.fromkeys(c.bridge for n in self.nodes for c in n.fabric))

    def node(self, name: str) -> NodePlan:
        """LabError names the nodes there are."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise LabError(f"lab {self.name} has no node {name!r}; it has {', '.join(n.name for n in self.nodes)}")


MANAGEMENT_NET = "192.168.1"
GATEWAY = f"{MANAGEMENT_NET}.1"
STORAGE_NET = "10.30.0"


def _mac(node: int, position: int) -> str:
    """Locally administered, and the same for the same node in every lab."""
    return f"02:5b:00:00:{node:02x}:{position:02x}"


def _subnet(profile: Profile, device: Device, position: int) -> str:
    return profile.subnets[device.rail] if device.rail else f"{STORAGE_NET[:-1]}{position}"


def node_plan(profile: Profile, number: int) -> NodePlan:
    """Node `number` (from 1) of a profile."""
    host = FIRST_HOST + number
    cables = [Cable(profile.management.interface, "mgmt", _mac(number, 0), f"{MANAGEMENT_NET}.{host}/24", "")]
    for i, d in enumerate(profile.devices, 1):
        cables.append(Cable(d.interface, f"rail-{d.rail}" if d.rail else f"store-{i}", _mac(number, i),
                            f"{_subnet(profile, d, i)}.{host}/24", d.rail))
    return NodePlan(f"{profile.prefix}{number:02d}", number, tuple(cables))


def lab_plan(name: str, profile: Profile, count: int) -> LabPlan:
    """LabError if the number of nodes cannot be."""
    if not 1 <= count <= MAX_NODES:
        raise LabError(f"--nodes {count}: a lab has 1 to {MAX_NODES} nodes")
    return LabPlan(name, profile, tuple(node_plan(profile, n) for n in range(1, count + 1)))


def factory_state(profile: Profile, node: NodePlan) -> Node:
    """The node as delivered: trust pcp, no PFC, global pause on (the defaults of `Function`)."""
    functions = {}
    for i, d in enumerate(profile.devices):
        card = 0 if profile.one_card else i
        functions[d.interface] = Function(
            d.interface, d.rdma, d.port, d.rail, d.bus, d.rate_gbit, pcie_width=profile.pcie_width,
            sys_image_guid=f"025b:0003:00{node.number:02x}:{card:02x}00", node_guid=f"025b:0003:00{node.number:02x}:{i:02x}01")
    return Node(node.name, functions, era=profile.era, nics={profile.management.interface: profile.management},
                gpu=profile.gpu, gpus=profile.gpus)
