"""Base room: netdev - RDMA function - PCI - physical port, and the binding of the spec's selectors on a node."""

from fabrictool.ports.bind import bind, bootstrap, bootstrap_address, physical_port, rail_address
from fabrictool.ports.guard import guard, related
from fabrictool.ports.judge import judge, other_cage
from fabrictool.ports.model import Address, BoundFunction, Netdev, Pcie, Ports, QueuePair, RdmaDevice
from fabrictool.ports.parse import is_global
from fabrictool.ports.read import read
from fabrictool.ports.sections import SECTIONS
from fabrictool.room import Room

ROOM = Room("ports", SECTIONS, read, judge)

__all__ = [
    "ROOM", "SECTIONS", "Address", "BoundFunction", "Netdev", "Pcie", "Ports", "QueuePair", "RdmaDevice", "bind", "bootstrap",
    "bootstrap_address", "guard", "is_global", "judge", "other_cage", "physical_port", "rail_address", "read", "related",
]
