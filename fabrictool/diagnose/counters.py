"""Counters as pasted: `ethtool -S` and `rdma statistic`, twice for what grew between, or once for what should be zero on any link."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fabrictool.counters import Invalid, Reading, Table, span
from fabrictool.counters.loss import Growth, function_growth, port_growth
from fabrictool.counters.loss import Kind as Meaning
from fabrictool.counters.model import Device
from fabrictool.counters.parse import HEAD, ethtool, statistic
from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.model import Code, Finding, Reason, Status, Unreadable, Value
from fabrictool.room import About
from fabrictool.snapshot import Captured
from fabrictool.snapshot.sniff import Kind, Line, Piece, device

KINDS = frozenset({Kind.ETHTOOL_STATS, Kind.RDMA_STATISTIC})
TWICE = "when counters grew: paste the output twice, some time apart"
PRIORITIES = tuple(range(8))
_PAUSE = re.compile(r"([rt]x)_(prio[0-7]|global)_pause(?:_duration|_transition)?")


@dataclass(frozen=True, slots=True)
class _Seen:
    """One reading of one interface or device."""

    case: Case
    name: str
    table: Table


def judge(cases: Sequence[Case]) -> Iterator[Judged]:
    by_thing: dict[tuple[str, str, Kind], list[_Seen]] = {}
    for case in cases:
        for seen in _read(case):
            by_thing.setdefault((case.node or case.piece.label, seen.name, case.piece.kind), []).append(seen)
    for (_, name, kind), found in by_thing.items():
        readings = _in_time(found)
        pieces = tuple({id(s.case.piece): s.case.piece for s in readings}.values())
        about = f"{name}, {len(readings)} readings" if len(readings) > 1 else name
        if len(readings) == 1:
            yield Judged(kind, pieces, tuple(_once(readings[0])), about, (TWICE,))
        for old, new in pairwise(readings):
            if not (old.case.node or old.name) and _went_back(old, new):  # nothing tells that both are of one interface
                for one in (old, new):
                    yield Judged(kind, (one.case.piece,), tuple(_once(one)), about, (TWICE,))
                continue
            both = tuple({id(s.case.piece): s.case.piece for s in (old, new)}.values())
            yield Judged(kind, both, tuple(_between(old, new)), about, ("how much traffic there was between the two readings",))


def _went_back(old: _Seen, new: _Seen) -> bool:
    """Whether a counter is smaller in the second reading."""
    return any(isinstance(a := old.table.get(n), Value) and isinstance(b := new.table.get(n), Value) and b.value < a.value
               for n in old.table.names & new.table.names)


def _in_time(found: list[_Seen]) -> list[_Seen]:
    """Two files come in the order of their names (after.txt, before.txt): the one in which all counters are smaller is the earlier."""
    if len(found) == 2 and found[0].case.piece.source != found[1].case.piece.source and _went_back(*found) and not _went_back(*found[::-1]):
        return found[::-1]
    return found


def _read(case: Case) -> Iterator[_Seen]:
    piece = case.piece
    if piece.kind is Kind.ETHTOOL_STATS:
        text = piece.text if HEAD in piece.text else f"{HEAD}\n{piece.text}"
        name = device(piece.command)
        yield _Seen(case, name or "", ethtool(Captured(piece.rc or 0, text), name or "IF"))
    elif piece.lines[0].text.lstrip().startswith("["):
        found = statistic(Captured(piece.rc or 0, piece.text))
        for name, table in {} if isinstance(found, Unreadable) else found.items():
            yield _Seen(case, name, table)


def _reading(seen: _Seen) -> Reading:
    name = seen.name or "IF"
    if seen.case.piece.kind is Kind.ETHTOOL_STATS:
        return Reading(seen.case.node, nics={name: seen.table})
    empty = Table(name, {})
    return Reading(seen.case.node, devices={name: Device(name, empty, seen.table)})


def _lines(piece: Piece, name: str) -> list[Line]:
    return [ln for ln, _ in piece.find(rf"(?:^|[\s\"]){re.escape(name)}\"?:")][:1]


def _growth(old: _Seen, new: _Seen) -> Iterator[Growth]:
    both = span(_reading(old), _reading(new))
    name = old.name or "IF"
    if old.case.piece.kind is not Kind.ETHTOOL_STATS:
        yield from function_growth(both, name)
        return
    done: set[str] = set()
    for priority in PRIORITIES:
        for one in port_growth(both, name, priority):
            if one.name not in done:
                done.add(one.name)
                yield one


def _between(old: _Seen, new: _Seen) -> Iterator[Finding]:
    piece, case = new.case.piece, new.case
    subject = case.function(new.name)
    if isinstance(old.table.values, Unreadable) or isinstance(new.table.values, Unreadable):
        seen = old.table.values if isinstance(old.table.values, Unreadable) else new.table.values
        assert isinstance(seen, Unreadable)
        yield quoted(About(Code.UNREADABLE, subject, "counters.table", "").unknown(seen, "counters"), piece, piece.lines[:1])
        return
    back = [g for g in _growth(old, new) if isinstance(g.moved, Invalid)]
    grew = [(g, g.moved.value) for g in _growth(old, new) if isinstance(g.moved, Value) and g.moved.value]
    for g in back[:1]:
        assert isinstance(g.moved, Invalid)
        reset = About(Code.COUNTERS_INVALID, subject, "counters.reset", "").fail(
            f"{g.name} went back", "counters that only grow", f"{g.moved.why}; or the two readings are not in the order of time",
            status=Status.UNKNOWN, remedy="take two new readings, the earlier one first")
        yield quoted(reset, piece, _lines(piece, g.name))
        return
    for g, by in grew:
        if g.watched.kind is Meaning.CONGESTION:
            continue
        about = About(Code.PACKET_LOSS, subject, f"counters.{g.name}", "")
        faulty = g.watched.kind is Meaning.DAMAGE or (g.watched.kind is Meaning.LOSS and not _lossy(case))
        make = about.fail if faulty else about.warn
        grown = make(f"{g.name} grew by {by}", "0", g.watched.meaning, remedy=_remedy(g.watched.kind))
        pair = quoted(grown, piece, _lines(piece, g.name))
        yield _both(pair, old.case.piece, g.name)
    yield from _pauses(old, new)
    if not any(g.watched.kind in (Meaning.LOSS, Meaning.DAMAGE) for g, _ in grew):
        watched = sum(1 for _ in _growth(old, new))
        if watched:
            yield About(Code.PACKET_LOSS, subject, "counters.loss", "").ok(f"{watched} counters of loss and damage: none grew")
        else:
            yield About(Code.PACKET_LOSS, subject, "counters.loss", "").unknown(
                Unreadable(Reason.EMPTY, "none of the counters of loss that are known is in both readings"), "counters of loss")


def _lossy(case: Case) -> bool:
    """Whether the spec says that no switch has PFC: then some loss is the design."""
    return case.want is not None and bool(case.want.switches) and all(isinstance(s.pfc, str) for s in case.want.switches.values())


def _both(f: Finding, old: Piece, name: str) -> Finding:
    return replace(f, lines=(*(old.quote(ln) for ln in _lines(old, name)), *f.lines))


def _remedy(kind: Meaning) -> str:
    return {
        Meaning.LOSS: "compare PFC, trust and DSCP map on both ends and the switch (`mlnx_qos -i IF`); then MTU along the path",
        Meaning.DAMAGE: "clean or change cable and transceiver; look at the switch port's own error counters",
        Meaning.HINT: "the receiving program posts too few buffers, or its CPU is too slow: not the fabric",
    }.get(kind, "")


def _pauses(old: _Seen, new: _Seen) -> Iterator[Finding]:
    """Growth of pause is congestion at work; of global pause beside PFC's it is a contradiction."""
    told: dict[str, int] = {}
    for name in sorted(old.table.names & new.table.names):
        m = _PAUSE.fullmatch(name)
        before, after = old.table.get(name), new.table.get(name)
        if m is None or name.endswith(("_duration", "_transition")) or not isinstance(before, Value) or not isinstance(after, Value):
            continue
        if after.value > before.value:
            told[name] = after.value - before.value
    piece, subject = new.case.piece, new.case.function(new.name)
    for name, by in told.items():
        about = About(Code.QOS_GLOBAL_PAUSE if "global" in name else Code.PACKET_LOSS, subject, f"counters.{name}", "")
        sent = name.startswith("tx")
        if "global" in name:
            stopped = about.fail(f"{name} grew by {by}", "0", "global pause stops all priorities at once, and excludes PFC",
                                 remedy="ethtool -A IF rx off tx off, on both ends; then PFC on the priority of RoCE")
            yield _both(quoted(stopped, piece, _lines(piece, name)), old.case.piece, name)
        else:
            how = "this host could not take packets fast enough and told the switch to wait" if sent else \
                "the switch told this host to wait: congestion on the way"
            slow = about.warn(f"{name} grew by {by}", "few", f"PFC is at work: {how}",
                              remedy="no loss by itself; if it grows all the time look for the slow receiver, and at ECN")
            yield _both(quoted(slow, piece, _lines(piece, name)), old.case.piece, name)


def _once(seen: _Seen) -> Iterator[Finding]:
    """A single reading proves no growth. What was lost since the port came up is told, and no fault."""
    piece, case = seen.case.piece, seen.case
    subject = case.function(seen.name)
    if isinstance(seen.table.values, Unreadable):
        yield quoted(About(Code.UNREADABLE, subject, "counters.table", "").unknown(seen.table.values, "counters"), piece, piece.lines[:1])
        return
    since = [(g, g.moved.value) for g in _growth(_zero(seen), seen) if isinstance(g.moved, Value) and g.moved.value]
    for g, count in since:
        if g.watched.kind in (Meaning.LOSS, Meaning.DAMAGE):
            about = About(Code.PACKET_LOSS, subject, f"counters.{g.name}", "")
            told = about.warn(f"{g.name} is {count}", "0", f"{g.watched.meaning}; since the driver was loaded, perhaps long ago",
                              remedy="read it again under load: only growth tells of now")
            yield quoted(told, piece, _lines(piece, g.name))
    if not any(g.watched.kind in (Meaning.LOSS, Meaning.DAMAGE) for g, _ in since):
        watched = sum(1 for _ in _growth(_zero(seen), seen))
        if watched:
            yield About(Code.PACKET_LOSS, subject, "counters.loss", "").ok(f"{watched} counters of loss and damage: all 0")


def _zero(seen: _Seen) -> _Seen:
    return _Seen(seen.case, seen.name, Table(seen.table.what, dict.fromkeys(seen.table.names, 0)))
