"""Lossless RoCE on the host: trust, DSCP map, PFC, pause, traffic classes, ECN, and that they come back after a reboot."""

from fabrictool.qos.judge import ASPECTS, judge
from fabrictool.qos.read import read
from fabrictool.qos.sections import SECTIONS
from fabrictool.room import Room

ROOM = Room("qos", SECTIONS, read, judge, ASPECTS)

__all__ = ["ASPECTS", "ROOM", "SECTIONS", "judge", "read"]
