"""Parsers of the RDMA readers. A line counts when it ended; what is missing is unreadable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.rdma.model import NO_STACK, GidEntry, PortState, RdmaLink
from fabrictool.snapshot import Captured
from fabrictool.values import Gid, Rate

LONGEST = 2048
NO_NETLINK = "Failed to open NETLINK_RDMA socket"
GID_LINE = re.compile(r"gid (\d{1,5}) ([0-9a-fA-F:]{39}) ndev=(\S*) type=(.*)")
ACTIVE_MTU = re.compile(r"\s+active_mtu:\s+(\d{1,9}) \((\d)\)")
MTU_OF_CODE = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}  # enum ibv_mtu
TCLASS = re.compile(r"Global tclass=(\d{1,3})")


def lines_of(text: str) -> list[str]:
    return [ln.rstrip(" \t\r") if len(ln) <= LONGEST else "" for ln in text.split("\n")[:-1]]


def links(got: Captured | Unreadable) -> Mapping[str, RdmaLink] | Unreadable | Absent:
    """`rdma -j link`: device -> its port 1. Absent: the kernel has no RDMA core."""
    if isinstance(got, Unreadable):
        return got
    if got.rc != 0:
        if NO_NETLINK in got.err + got.out:
            return NO_STACK
        return Unreadable(Reason.FAILED, f"rdma -j link: exit status {got.rc}: {got.tail or 'no message'}")
    if not got.out.strip():
        return Unreadable(Reason.EMPTY, "rdma -j link: exit status 0 and no output")
    try:
        rows = json.loads(got.out)
    except (ValueError, RecursionError):
        return Unreadable(Reason.GARBLED, f"rdma -j link: not JSON: {got.out[:60]!r}")
    out: dict[str, RdmaLink] = {}
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, dict) or not isinstance(row.get("ifname"), str):
            return Unreadable(Reason.GARBLED, f"rdma -j link: not a link: {str(row)[:60]}")
        if row.get("port") == 1:
            words = [str(row.get(k, "")) for k in ("state", "physical_state", "netdev")]
            out[row["ifname"]] = RdmaLink(words[0], words[1], words[2])
    return out


def numbered(files: Mapping[str, str] | Unreadable, name: str) -> Observed[tuple[int, str]]:
    """`4: ACTIVE` -> (4, "ACTIVE")."""
    text = _file(files, name)
    if not isinstance(text, Value):
        return text
    m = re.fullmatch(r"(\d): ?(\w+)", text.value.strip())
    return Value((int(m[1]), m[2])) if m else Unreadable(Reason.GARBLED, f"{name}: {text.value[:40]!r}")


def state(files: Mapping[str, str] | Unreadable) -> Observed[PortState]:
    got = numbered(files, "state")
    if not isinstance(got, Value):
        return got
    number, word = got.value
    if number not in set(PortState) or PortState(number).name != word:
        return Unreadable(Reason.GARBLED, f"state: {number}: {word}")
    return Value(PortState(number))


def rate(files: Mapping[str, str] | Unreadable) -> Observed[Rate]:
    text = _file(files, "rate")
    if not isinstance(text, Value):
        return text
    if "Gb/sec" not in text.value:
        return Unreadable(Reason.GARBLED, f"rate: {text.value[:40]!r}")
    try:
        return Value(Rate.parse(text.value))
    except ValueError as e:
        return Unreadable(Reason.GARBLED, f"rate: {e}")


def link_layer(files: Mapping[str, str] | Unreadable) -> Observed[str]:
    text = _file(files, "link_layer")
    if isinstance(text, Value) and text.value.strip() not in ("Ethernet", "InfiniBand"):
        return Unreadable(Reason.GARBLED, f"link_layer: {text.value[:40]!r}")
    return Value(text.value.strip()) if isinstance(text, Value) else text


def _file(files: Mapping[str, str] | Unreadable, name: str) -> Observed[str]:
    if isinstance(files, Unreadable):
        return files
    found = [text for path, text in files.items() if path.endswith(f"/{name}")]
    return Value(found[0]) if len(found) == 1 else Unreadable(Reason.EMPTY, f"sysfs shows no {name} of port 1")


def gids(got: Captured | Unreadable) -> Observed[tuple[GidEntry, ...]]:
    """The table is known only when its end was seen and every line of it understood."""
    if isinstance(got, Unreadable):
        return got
    lines = lines_of(got.out)
    if got.rc != 0:
        return Unreadable(Reason.FAILED, f"GIDs: exit status {got.rc}: {got.tail or 'no message'}")
    if not lines or lines[-1] != "end of GIDs":
        return Unreadable(Reason.CUT, "GIDs: the table has no end")
    out = []
    for line in lines[:-1]:
        m = GID_LINE.fullmatch(line)
        if not m:
            return Unreadable(Reason.GARBLED, f"GIDs: {line[:60]!r}")
        try:
            gid = Gid.parse(m[2])
        except ValueError as e:
            return Unreadable(Reason.GARBLED, f"GIDs: {e}")
        out.append(GidEntry(int(m[1]), gid, _said(m[4], f"type of GID {m[1]}"), _said(m[3], f"interface of GID {m[1]}")))
    return Value(tuple(sorted(out, key=lambda e: e.index)))


def _said(text: str, what: str) -> Observed[str]:
    return Value(text) if text else Unreadable(Reason.EMPTY, f"{what} could not be read")


def active_mtu(got: Captured | Unreadable) -> Observed[int]:
    """`ibv_devinfo -d DEV -i 1`. Size and code must agree."""
    if isinstance(got, Unreadable):
        return got
    found = {(int(m[1]), int(m[2])) for ln in lines_of(got.out) if (m := ACTIVE_MTU.fullmatch(ln))}
    if not found:
        why = f"exit status {got.rc}: {got.tail or 'no message'}" if got.rc else "no active_mtu line"
        return Unreadable(Reason.FAILED if got.rc else Reason.CUT, f"ibv_devinfo: {why}")
    if len(found) > 1:
        return Unreadable(Reason.GARBLED, "ibv_devinfo: several values of active_mtu")
    size, code = found.pop()
    if MTU_OF_CODE.get(code) != size:
        return Unreadable(Reason.GARBLED, f"ibv_devinfo: active_mtu {size} with code {code}")
    return Value(size)


def override(got: Captured | Unreadable) -> Observed[int]:
    """The traffic class in force for all queue pairs of the device; absent when none is set or the driver has no such thing."""
    if isinstance(got, Unreadable):
        return got
    lines = lines_of(got.out)
    if got.rc != 0 or not lines:
        reason = Reason.NEEDS_ROOT if "denied" in got.err else Reason.FAILED if got.rc else Reason.EMPTY
        return Unreadable(reason, f"traffic_class: exit status {got.rc}: {got.tail or 'no message'}")
    if lines == ["no such file"]:
        return Absent("global traffic class (this driver has none)")
    if lines[0] != "file" or lines[-1] != "end of file":
        return Unreadable(Reason.CUT, f"traffic_class: no end of the file: {lines[-1][:60]!r}")
    rest = [ln for ln in lines[1:-1] if ln]
    if not rest:
        return Absent("global traffic class (none is set)")
    values = {int(m[1]) for ln in rest if (m := TCLASS.fullmatch(ln))}
    if len(values) > 1 or any(v > 255 for v in values):
        return Unreadable(Reason.GARBLED, f"traffic_class: {', '.join(rest)[:60]!r}")
    if values:
        return Value(values.pop())
    return Unreadable(Reason.GARBLED, f"traffic_class: only rules for some destinations: {rest[0][:60]!r}")
