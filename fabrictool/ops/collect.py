"""One snapshot per host, read in one remote exec and kept until pyinfra has run anything there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from gevent.lock import RLock
from pyinfra.api.host import Host

from fabrictool.model import Unreadable
from fabrictool.ops.remote import run
from fabrictool.ops.session import session, want
from fabrictool.rooms import ROOMS, sections
from fabrictool.snapshot import Section, Snapshot, collector, frame

LOCK = "fabrictool.lock"
EVERY = frozenset(room.name for room in ROOMS)


def stamp(host: Host) -> tuple[bool, int]:
    """Moves exactly when pyinfra has run an operation's commands on `host` since: its own record, ours or foreign
    (reference: contract tests)."""
    done = sum(d.operation_meta.executed for d in host.state.ops[host].values())
    return host.state.is_executing, done


def take(host: Host, rooms: Iterable[str] | None = None) -> Snapshot:
    """Read the node now: all rooms and what the session adds, or only some rooms."""
    return read(host, sections(rooms, session(host).extra if rooms is None else ()))


def read(host: Host, asked: Sequence[Section], lanes: int = collector.LANES) -> Snapshot:
    """What these sections say now; with one lane in their order, one after the other. Never raises; `Snapshot.error` says why there is
    nothing."""
    program = collector.program(asked, peers=want(host).nodes, lanes=lanes)
    ran = run(host, program.argv, program.timeout_s, program.stdin)
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    if ran.lost:
        return Snapshot(host.name, error=ran.lost, taken=taken)
    snap = frame.parse(host.name, ran.out, taken)
    if snap.error and ran.tail and not ran.ok:
        return Snapshot(host.name, error=Unreadable(snap.error.reason, f"{snap.error.why}; the node said: {ran.tail}"), taken=taken)
    return snap


def snapshot(host: Host, room: str | None = None) -> Snapshot:
    """A snapshot that is true now for `room` (for every room if None), with as little re-reading as that takes."""
    mine = session(host)
    with host.connector_data.setdefault(LOCK, RLock()):  # one exec, however many ask
        now = stamp(host)
        if mine.snapshot is None or mine.snapshot.error or mine.stamp != now:
            mine.fresh = frozenset()
        mine.stamp = now
        needed = EVERY if room is None else frozenset((room,))
        if mine.snapshot is None or not mine.fresh or not needed <= mine.fresh:
            _read(host, None if not mine.fresh else needed - mine.fresh)
        assert mine.snapshot is not None
        return mine.snapshot


def again(host: Host, room: str) -> Snapshot:
    """Re-read what `room` needs, now, whatever is held: the read-back of a write. Everything else is stale after it."""
    mine = session(host)
    mine.fresh = frozenset()
    _read(host, (room,))
    # A read-back is its operation's last command, and one operation counts once: what was read stays true at the next stamp.
    executing, done = stamp(host)
    mine.stamp = (executing, done + 1)
    assert mine.snapshot is not None
    return mine.snapshot


def _read(host: Host, rooms: Iterable[str] | None) -> None:
    mine = session(host)
    new, old = take(host, rooms), mine.snapshot
    if rooms is None or new.error or old is None or old.error:
        mine.snapshot, mine.fresh = new, EVERY if rooms is None else frozenset(rooms)
    else:
        mine.snapshot, mine.fresh = old.merged(new, asked=[s.name for s in sections(rooms)]), mine.fresh | frozenset(rooms)


def others(host: Host) -> Mapping[str, Snapshot]:
    """What is known of the other connected hosts, fresh or not: good enough for their addresses."""
    found = {}
    for other in host.state.inventory:
        if other is not host:
            known = session(other).snapshot
            if known is None and other in host.state.active_hosts:
                known = snapshot(other)
            if known is not None:
                found[other.name] = known
    return found
