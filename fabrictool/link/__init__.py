"""The link room: MTU as it runs and as it is kept, link state and speed, and who owns each interface."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.link.arp import judge_arp
from fabrictool.link.model import Claim, Link, Owner
from fabrictool.link.persisted import ASPECT as PERSISTED
from fabrictool.link.persisted import judge_persisted
from fabrictool.link.read import read
from fabrictool.link.running import ASPECT as RUNNING
from fabrictool.link.running import judge_running
from fabrictool.link.sections import SECTIONS
from fabrictool.model import Finding
from fabrictool.ports import bind
from fabrictool.room import Fleet, Room
from fabrictool.spec import NodeSpec


def judge(want: NodeSpec, got: Link, fleet: Fleet) -> Iterator[Finding]:
    bound = bind(want, got.ports)
    for fn in bound:
        yield from judge_running(fn, got.ports, want)
        yield from judge_persisted(fn, got, want)
    yield from judge_arp(bound, got, want)


ROOM = Room("link", SECTIONS, read, judge, (RUNNING, PERSISTED))

__all__ = ["PERSISTED", "ROOM", "RUNNING", "SECTIONS", "Claim", "Link", "Owner", "judge", "read"]
