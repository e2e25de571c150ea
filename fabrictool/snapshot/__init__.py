"""Snapshots: the raw text one node gave in one remote exec, never parsed on the node."""

from fabrictool.snapshot.model import Captured, Snapshot
from fabrictool.snapshot.recording import Recording
from fabrictool.snapshot.sections import Each, Section, files, links, script, sysfs, tool

__all__ = ["Captured", "Each", "Recording", "Section", "Snapshot", "files", "links", "script", "sysfs", "tool"]
