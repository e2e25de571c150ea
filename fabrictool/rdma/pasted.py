"""Readers of what people paste: ibv_devinfo of all devices, ibstat, show_gids, ibdev2netdev and `rdma link` in words.

The snapshot collects the same things in forms that are safer to read. Only port 1 counts, as in the rest of the room. What a text does
not say stays unread.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.rdma.model import GidEntry, PortState, RdmaPort
from fabrictool.rdma.parse import LONGEST, MTU_OF_CODE
from fabrictool.values import Gid, Rate

_DEVICE = re.compile(r"hca_id:\s+([\w.-]{1,64})\s*")
_CA = re.compile(r"CA '([\w.-]{1,64})'\s*")
_PORT = re.compile(r"\s+(?:port:\s+|Port )(\d{1,3}):?\s*")
_FIELD = re.compile(r"\s+([A-Za-z][\w ]{0,40}?):\s+(\S.{0,200}?)\s*")
_NUMBERED = re.compile(r"(\w+) \((\d{1,3})\)")
_GID = re.compile(r"\s+GID\[ {0,3}(\d{1,5})\]:\s+([0-9a-fA-F:.]{2,45})(?:, (RoCE v[12]|IB/RoCE v1))?\s*")
_WIDTH = {"1X": 1, "2X": 2, "4X": 4, "8X": 8, "12X": 12}
_IBSTAT_STATE = {"Active": PortState.ACTIVE, "Down": PortState.DOWN, "Initializing": PortState.INIT, "Armed": PortState.ARMED}
_LINK = re.compile(r"(?:\d+/\d+: )?(?:link )?([\w.-]{1,64})/(\d{1,3}):? (.{0,400})")


@dataclass(frozen=True, slots=True)
class Seen:
    """One device. `first`, `last`: its lines in the text, from 0. `max_mtu` in bytes; `netdev`: "" = not told."""

    port: RdmaPort
    first: int
    last: int
    max_mtu: int | None = None
    netdev: str = ""


def devinfo(lines: list[str]) -> tuple[Seen, ...]:
    """`ibv_devinfo`, with or without -v. A fragment without `hca_id` is a device without a name."""
    return tuple(_device(name, at, rows) for name, at, rows in _blocks(lines, _DEVICE))


def ibstat(lines: list[str]) -> tuple[Seen, ...]:
    return tuple(_adapter(name, at, rows) for name, at, rows in _blocks(lines, _CA))


def _blocks(lines: list[str], head: re.Pattern[str]) -> Iterator[tuple[str, int, list[str]]]:
    """(device, index of its first line, its lines up to port 2)."""
    starts = [(i, m[1]) for i, ln in enumerate(lines) if len(ln) <= LONGEST and (m := head.fullmatch(ln))]
    if not starts or any(ln.strip() for ln in lines[:starts[0][0]]):
        starts = [(0, ""), *starts]
    if starts == [(0, "")]:  # fragments (`ibv_devinfo | grep state`): each state is another device, or another time
        again = [i for i, ln in enumerate(lines) if re.match(r"\s*state:\s", ln[:LONGEST], re.IGNORECASE)][1:]
        starts += [(i, "") for i in again]
    for (at, name), following in zip(starts, [*starts[1:], (len(lines), "")], strict=True):
        rows = lines[at:following[0]]
        second = next((i for i, ln in enumerate(rows) if (m := _PORT.fullmatch(ln[:LONGEST])) and m[1] != "1"), len(rows))
        yield name, at, rows[:second]


def _fields(rows: list[str]) -> Mapping[str, set[str]]:
    out: dict[str, set[str]] = {}
    for row in rows:
        m = _FIELD.fullmatch(row[:LONGEST])
        if m:
            out.setdefault(m[1], set()).add(m[2])
    return out


def _one(fields: Mapping[str, set[str]], name: str, what: str) -> Observed[str]:
    found = fields.get(name, set())
    if len(found) == 1:
        return Value(next(iter(found)))
    return Unreadable(Reason.GARBLED if found else Reason.EMPTY, f"{what}: {'several values of' if found else 'no'} {name}")


def _device(name: str, at: int, rows: list[str]) -> Seen:
    fields = _fields(rows)
    what = f"ibv_devinfo {name}".strip()
    port = RdmaPort(
        name, _state(_one(fields, "state", what)), _physical(_one(fields, "phys_state", what)), _speed(fields, what),
        _one(fields, "link_layer", what), _gids(rows), _mtu(_one(fields, "active_mtu", what)))
    most = _mtu(_one(fields, "max_mtu", what))
    return Seen(port, at, at + len(rows) - 1, most.value if isinstance(most, Value) else None)


def _state(seen: Observed[str]) -> Observed[PortState]:
    """`PORT_ACTIVE (4)`: word and number must agree."""
    if not isinstance(seen, Value):
        return seen
    m = _NUMBERED.fullmatch(seen.value)
    number = int(m[2]) if m else 0
    if m is None or number not in set(PortState) or m[1] != f"PORT_{PortState(number).name}":
        return Unreadable(Reason.GARBLED, f"state: {seen.value[:40]!r}")
    return Value(PortState(number))


def _physical(seen: Observed[str]) -> Observed[str]:
    """`LINK_UP (5)` -> `LinkUp`, as sysfs spells it."""
    if not isinstance(seen, Value):
        return seen
    m = _NUMBERED.fullmatch(seen.value)
    return Value("".join(w.capitalize() for w in m[1].split("_"))) if m else Unreadable(Reason.GARBLED, f"phys_state: {seen.value[:40]!r}")


def _mtu(seen: Observed[str]) -> Observed[int]:
    if not isinstance(seen, Value):
        return seen
    m = re.fullmatch(r"(\d{3,4}) \((\d)\)", seen.value)
    if m is None or MTU_OF_CODE.get(int(m[2])) != int(m[1]):
        return Unreadable(Reason.GARBLED, f"active_mtu: {seen.value[:40]!r}")
    return Value(int(m[1]))


def _speed(fields: Mapping[str, set[str]], what: str) -> Observed[Rate]:
    """`active_width` times `active_speed`, which is per lane."""
    width, speed = _one(fields, "active_width", what), _one(fields, "active_speed", what)
    if not isinstance(width, Value) or not isinstance(speed, Value):
        return width if not isinstance(width, Value) else Unreadable(Reason.EMPTY, f"{what}: no active_speed")
    m = re.match(r"(\d{1,4}(?:\.\d{1,2})?) Gbps", speed.value)
    lanes = _WIDTH.get(width.value.split(" ")[0])
    if m is None or lanes is None:
        return Unreadable(Reason.GARBLED, f"{what}: {width.value} of {speed.value}"[:80])
    return Value(Rate.gbit(float(m[1]) * lanes))


def _gids(rows: list[str]) -> Observed[tuple[GidEntry, ...]]:
    """Only `ibv_devinfo -v` lists them."""
    out = []
    for row in rows:
        m = _GID.fullmatch(row[:LONGEST])
        if not m:
            continue
        try:
            gid = Gid(ipaddress.IPv6Address(m[2]))
        except ValueError:
            return Unreadable(Reason.GARBLED, f"GIDs: {row.strip()[:60]!r}")
        kind: Observed[str] = Value("RoCE v2" if m[3] == "RoCE v2" else "IB/RoCE v1") if m[3] else Unreadable(Reason.EMPTY, "no type told")
        out.append(GidEntry(int(m[1]), gid, kind, Unreadable(Reason.NOT_COLLECTED, "ibv_devinfo does not tell the interface")))
    return Value(tuple(out)) if out else Unreadable(Reason.NOT_COLLECTED, "no GIDs in this output (ibv_devinfo -v lists them)")


def _adapter(name: str, at: int, rows: list[str]) -> Seen:
    fields = _fields(rows)
    what = f"ibstat {name}"
    said, physical, rate = (_one(fields, f, what) for f in ("State", "Physical state", "Rate"))
    state: Observed[PortState] = said if not isinstance(said, Value) else (
        Value(_IBSTAT_STATE[said.value]) if said.value in _IBSTAT_STATE else Unreadable(Reason.GARBLED, f"State: {said.value[:40]!r}"))
    number = rate.value if isinstance(rate, Value) and re.fullmatch(r"\d{1,4}(?:\.\d)?", rate.value) else ""
    gbit: Observed[Rate] = Value(Rate.gbit(float(number))) if number else Unreadable(Reason.EMPTY, f"{what}: no rate")
    return Seen(RdmaPort(name, state, physical, gbit, _one(fields, "Link layer", what)), at, at + len(rows) - 1)


def gid_table(lines: list[str]) -> Mapping[str, tuple[tuple[GidEntry, int], ...]] | Unreadable:
    """`show_gids`: device -> its entries of port 1, each with the index of its line. A row that is not understood makes the table
    unreadable; one without its last line `n_gids_found=N`, or with another count of rows, was cut.

    The columns IPv4, VER and DEV shift where an entry has no IPv4 address, so the last two words count.
    """
    out: dict[str, list[tuple[GidEntry, int]]] = {}
    rows = 0
    for at, line in enumerate(lines):
        words = line.split()
        if not words or words[0] == "DEV" or set(line.strip()) <= {"-", " ", "\t"}:
            continue
        end = re.fullmatch(r"n_gids_found=(\d{1,5})", line.strip())
        if end:
            counted = int(end[1]) == rows
            return {d: tuple(e) for d, e in out.items()} if counted else Unreadable(Reason.CUT, f"show_gids: {rows} rows of {end[1]}")
        try:
            gid = Gid.parse(words[3])
            entry = GidEntry(int(words[2]), gid, Value({"v1": "IB/RoCE v1", "v2": "RoCE v2"}[words[-2]]), Value(words[-1]))
        except (IndexError, ValueError, KeyError):
            return Unreadable(Reason.GARBLED, f"show_gids: {line.strip()[:60]!r}")
        rows += 1
        if words[1] == "1":
            out.setdefault(words[0], []).append((entry, at))
    return Unreadable(Reason.CUT, "show_gids: its last line, n_gids_found, is missing")


def links(lines: list[str]) -> tuple[Seen, ...]:
    """`rdma link` in words, and `ibdev2netdev`."""
    out = []
    for at, line in enumerate(lines):
        m = _LINK.match(line[:LONGEST])
        words = m[3].split() if m and m[2] == "1" else []
        said = dict(zip(words[::2], words[1::2], strict=False))
        if m and "state" in said:
            state: Observed[PortState] = Value(PortState[said["state"]]) if said["state"] in PortState.__members__ else \
                Unreadable(Reason.GARBLED, f"state {said['state'][:40]!r}")
            physical = said.get("physical_state", "")
            port = RdmaPort(m[1], state, Value("".join(w.capitalize() for w in physical.split("_"))))
            out.append(Seen(port, at, at, netdev=said.get("netdev", "")))
            continue
        pair = re.fullmatch(r"([\w.-]{1,64}) port 1 ==> (\S{1,40}) \((Up|Down|NA)\)\s*", line[:LONGEST])
        if pair:
            seen = {"Up": Value(PortState.ACTIVE), "Down": Value(PortState.DOWN)}
            unknown: Observed[PortState] = Unreadable(Reason.EMPTY, "the state is not told")
            out.append(Seen(replace(RdmaPort(pair[1]), state=seen.get(pair[3], unknown)), at, at, netdev=pair[2]))
    return tuple(out)
