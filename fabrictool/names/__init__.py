"""The names room: what host names resolve to, on the node and inside its consumers' containers."""

from fabrictool.names.judge import ASPECTS, judge
from fabrictool.names.sections import SECTIONS, State, read
from fabrictool.room import Room

ROOM: Room[State] = Room("names", SECTIONS, read, judge, ASPECTS)

__all__ = ["ASPECTS", "ROOM", "SECTIONS", "State", "judge", "read"]
