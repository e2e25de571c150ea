"""A node's system, read only: software versions, what may be locked, the kernel's log, GPUDirect, where processes stand.

A library of pure parsers and readers. Its sections are collected for the checks that name them, not in every snapshot.
"""

from fabrictool.model import Reason, Unreadable
from fabrictool.system.contents import read as contents
from fabrictool.system.facts import Image, facts, images

__all__ = ["Image", "ask_again", "contents", "facts", "images"]


def ask_again(seen: Unreadable, check: str) -> str:
    """The remedy for a section that is collected only for some checks; "" = the usual one."""
    if seen.reason is not Reason.NOT_COLLECTED:
        return ""
    return f"run `fabrictool check {check}` against the nodes, or take a new `fabrictool snapshot`: this one was made without it"
