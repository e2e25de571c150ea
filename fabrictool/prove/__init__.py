"""Judges over a fleet and what was recorded of it: each composes rooms, and is what a check in checks/ names. Pure."""

from fabrictool.prove.case import Case

__all__ = ["Case"]
