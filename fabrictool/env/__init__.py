"""The env room: NCCL, Gloo and UCX variables in files and in running consumers."""

from fabrictool.env.judge import ASPECTS, judge
from fabrictool.env.model import SECTIONS, State, read
from fabrictool.room import Room

ROOM: Room[State] = Room("env", SECTIONS, read, judge, ASPECTS)

__all__ = ["ASPECTS", "ROOM", "SECTIONS", "State", "judge", "read"]
