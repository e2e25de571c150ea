"""Parsers of counters. A line counts when it ended; a value counts when it is a number that 64 bits can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from fabrictool.counters.model import Clock, Table
from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Captured

LONGEST = 512  # a line of a counter has some 60 characters
MAX64 = 2**64 - 1
HEAD = "NIC statistics:"
NUMBER = re.compile(r"[0-9]{1,20}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\[\] -]{0,126}")
UPTIME = re.compile(r"([0-9]{1,12}\.[0-9]{1,4}) [0-9]{1,15}\.[0-9]{1,4}")
EPOCH = re.compile(r"([0-9]{1,12})(\.[0-9]{1,9})?(\.%N)?")  # busybox's date knows no %N
BOOT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def number(text: str) -> int | None:
    """A whole number of 64 bits, or None for anything else."""
    value = int(text) if NUMBER.fullmatch(text) else MAX64 + 1
    return value if value <= MAX64 else None


def lines_of(text: str) -> list[str]:
    """Whole lines without trailing blanks; one that is too long to be a counter is an empty one."""
    return [ln.rstrip(" \t\r") if len(ln) <= LONGEST else "" for ln in text.split("\n")[:-1]]


def table(what: str, pairs: Iterable[tuple[str, str]]) -> Table:
    """Name and content of each counter. One that is told twice with two contents is none."""
    values: dict[str, int] = {}
    odd: dict[str, str] = {}
    for name, content in pairs:
        n = number(content.strip())
        if n is None or (name in values and values[name] != n):
            odd[name] = content.strip()
        else:
            values[name] = n
    return Table(what, {k: v for k, v in values.items() if k not in odd}, odd)


def ethtool(got: Captured | Unreadable, interface: str) -> Table:
    """`ethtool -S IF`: a head, then `     name: value`. Exit statuses differ with ethtool's version, so any but 0 is a failure."""
    what = f"ethtool -S {interface}"
    if isinstance(got, Unreadable):
        return Table(what, got)
    if got.rc != 0:
        return Table(what, Unreadable(Reason.FAILED, f"{what}: exit status {got.rc}: {got.tail or 'no message'}"))
    lines = lines_of(got.out)
    if HEAD not in lines:
        return Table(what, Unreadable(Reason.GARBLED if got.out.strip() else Reason.EMPTY, f"{what}: the line {HEAD!r} is missing"))
    rows = (ln.rpartition(":") for ln in lines[lines.index(HEAD) + 1:])
    return table(what, ((name.strip(), content) for name, colon, content in rows if colon and NAME.fullmatch(name.strip())))


def files(got: Mapping[str, str] | Unreadable, what: str, folder: str) -> Table:
    """The files right below `folder` (which ends in a slash) of a sysfs section."""
    if isinstance(got, Unreadable):
        return Table(what, got)
    below = ((path.removeprefix(folder), content) for path, content in got.items() if path.startswith(folder))
    return table(what, ((name, content) for name, content in below if "/" not in name and name != "lifespan"))


def statistic(got: Captured | Unreadable) -> Mapping[str, Table] | Unreadable:
    """`rdma -j statistic show`: hw_counters of port 1 by device. A row that is not understood is left out, its device is not known."""
    if isinstance(got, Unreadable):
        return got
    if got.rc != 0:
        return Unreadable(Reason.FAILED, f"rdma -j statistic: exit status {got.rc}: {got.tail or 'no message'}")
    try:
        rows = json.loads(got.out)
    except (ValueError, RecursionError):
        return Unreadable(Reason.GARBLED, f"rdma -j statistic: not JSON: {got.out[:60]!r}")
    if not isinstance(rows, list):
        return Unreadable(Reason.GARBLED, "rdma -j statistic: a list of objects was expected")
    out: dict[str, Table] = {}
    for row in rows:
        name = row.get("ifname") if isinstance(row, dict) else None
        if isinstance(name, str) and row.get("port") == 1:
            what = f"rdma statistic {name}"
            pairs = table(what, ((k, str(v)) for k, v in row.items() if k not in ("ifindex", "ifname", "port")))
            out[name] = Table(what, Unreadable(Reason.GARBLED, f"{what}: two rows")) if name in out else pairs
    return out


def clock(got: Captured | Unreadable) -> Clock:
    """The lines of /proc/uptime, `date +%s.%N` and the boot id, in this order."""
    if isinstance(got, Unreadable):
        return Clock(got, got, got)
    lines = [*lines_of(got.out), "", "", ""]
    uptime, epoch, boot = UPTIME.fullmatch(lines[0]), EPOCH.fullmatch(lines[1]), BOOT.fullmatch(lines[2])
    return Clock(
        Value(float(uptime[1])) if uptime else _no("uptime", lines[0]),
        Value(float(f"{epoch[1]}{epoch[2] or ''}")) if epoch else _no("date", lines[1]),
        Value(lines[2]) if boot else _no("boot id", lines[2]))


def stamp(got: Captured | Unreadable) -> Observed[float]:
    """One line of `date +%s.%N`, in seconds since 1970."""
    if isinstance(got, Unreadable):
        return got
    epoch = EPOCH.fullmatch(got.out.strip())
    return Value(float(f"{epoch[1]}{epoch[2] or ''}")) if epoch else _no("date", got.out.strip())


def _no(what: str, line: str) -> Unreadable:
    return Unreadable(Reason.GARBLED if line else Reason.EMPTY, f"counters.clock: {what}: {line[:40]!r}")
