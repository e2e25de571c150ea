"""The one ordered list of rooms, and what is done over all of them: what to collect, what they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fabrictool import env, link, names, ports, qos, rdma
from fabrictool.model import Code, Finding, Observed, Reason, Status, Subject, SubjectKind, Unreadable
from fabrictool.room import Fleet, Room
from fabrictool.snapshot import Section, Snapshot
from fabrictool.spec import NodeSpec

# In the order in which a node is set: an interface must be there before its QoS, names come last.
ROOMS: tuple[Room[Any], ...] = (ports.ROOM, link.ROOM, qos.ROOM, rdma.ROOM, env.ROOM, names.ROOM)


def sections(rooms: Iterable[str] | None = None, extra: Iterable[Section] = ()) -> tuple[Section, ...]:
    """What to collect for these rooms (all by default), and `extra` besides. The base room's sections are always among them.

    Raises ValueError where two sections of one name differ.
    """
    chosen = None if rooms is None else {ports.ROOM.name, *rooms}
    found: dict[str, Section] = {}
    for section in (*(s for room in ROOMS if chosen is None or room.name in chosen for s in room.sections), *extra):
        if found.setdefault(section.name, section) != section:
            raise ValueError(f"two sections are called {section.name} and collect different things")
    return tuple(found.values())


def bug(room: str, node: str, error: Exception) -> Finding:
    """A judge that raised: no verdict, and never the end of the run for other nodes."""
    return Finding(Code.BUG, Subject(SubjectKind.NODE, (node,)), f"{room}.bug", "", f"{type(error).__name__}: {error}"[:300],
                   "a verdict", "fabrictool itself failed here; please report it with a snapshot", Status.UNKNOWN)


def findings(want: NodeSpec, snap: Snapshot, fleet: Fleet,
             only: Iterable[str] | None = None) -> Mapping[str, tuple[Finding, ...]]:
    """Room name -> everything it compared on this node (`only` these rooms), with the steps that are not safe now taken away."""
    every: list[Finding] = []
    chosen = None if only is None else set(only)
    rooms = tuple(r for r in ROOMS if chosen is None or r.name in chosen)
    for room in rooms:
        try:
            every.extend(room.findings(want, snap, fleet))
        except Exception as error:  # noqa: BLE001 - a hostile answer of one node must not hide the others' verdicts
            every.append(bug(room.name, want.name, error))
    try:
        guarded = ports.guard(want, ports.read(snap), tuple(every))
    except Exception as error:  # noqa: BLE001 - without the guard nothing may be written
        guarded = (*(_disarmed(f) for f in every), bug("ports", want.name, error))
    out: dict[str, list[Finding]] = {room.name: [] for room in rooms}
    for finding in guarded:
        out.setdefault(finding.room, []).append(finding)
    return {name: tuple(found) for name, found in out.items()}


def _disarmed(f: Finding) -> Finding:
    return Finding(f.code, f.subject, f.path, f.aspect, f.got, f.want, f.why, f.status, f.risk, (), f.remedy)


def fleet(wants: Mapping[str, NodeSpec], snaps: Mapping[str, Snapshot], left_out: Iterable[str] = ()) -> Fleet:
    """What judges may know of other nodes. `left_out`: nodes that nobody was asked to look at."""
    addresses: dict[str, Observed[str]] = {}
    for name, want in wants.items():
        if name in snaps:
            try:
                addresses[name] = ports.bootstrap_address(want, ports.read(snaps[name]))
            except Exception as error:  # noqa: BLE001 - as above
                addresses[name] = Unreadable(Reason.GARBLED, f"{type(error).__name__}: {error}"[:200])
    return Fleet(addresses, frozenset(left_out))
