"""RDMA ports, read only: state, rate, link layer, GIDs, active MTU, the driver's own traffic class."""

from fabrictool.rdma.judge import judge
from fabrictool.rdma.read import read
from fabrictool.rdma.sections import SECTIONS
from fabrictool.room import Room

ROOM = Room("rdma", SECTIONS, read, judge)

__all__ = ["ROOM", "SECTIONS", "judge", "read"]
