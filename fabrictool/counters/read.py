"""From a snapshot's counter sections to a `Reading`."""

from __future__ import annotations

from collections.abc import Mapping

from fabrictool.counters import parse
from fabrictool.counters.model import Device, Reading, Table
from fabrictool.counters.sections import NET, RDMA
from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports.sections import FILE_END
from fabrictool.snapshot import Snapshot


def read(snap: Snapshot) -> Reading:
    """Every counter of one node at one moment. Never raises on what a node says."""
    if snap.error:
        return Reading(snap.node, error=snap.error)
    if not any(key.startswith("counters.") for key in snap.sections):
        return Reading(snap.node, error=Unreadable(Reason.NOT_COLLECTED, f"{snap.node}: no counters were read at this moment"))
    second = parse.statistic(snap.raw("counters.stat"))
    return Reading(
        snap.node, parse.clock(snap.raw("counters.clock")),
        {name: _device(snap, name, second) for name in snap.items("counters.rdma")},
        {name: parse.files(whole(snap, "counters.net", name), name, f"{NET}{name}/statistics/") for name in snap.items("counters.net")},
        {name: parse.ethtool(snap.raw("counters.ethtool", name), name) for name in snap.items("counters.ethtool")})


def whole(snap: Snapshot, name: str, item: str) -> Mapping[str, str] | Unreadable:
    """A sysfs section that reached its end: what one that was cut lacks may be there."""
    got = snap.sysfs(name, item)
    if isinstance(got, Unreadable):
        return got
    raw = snap.raw(name, item)
    if FILE_END not in got or isinstance(raw, Unreadable) or not raw.out.endswith("\n"):
        return Unreadable(Reason.CUT, f"{name}[{item}]: the end is missing")
    return got


def _device(snap: Snapshot, name: str, second: Mapping[str, Table] | Unreadable) -> Device:
    got = whole(snap, "counters.rdma", name)
    at = f"{RDMA}{name}/ports/1/"
    hw = parse.files(got, f"{name} hw_counters", f"{at}hw_counters/")
    if not hw.names and not isinstance(second, Unreadable) and name in second:
        hw = second[name]
    return Device(name, parse.files(got, f"{name} counters", f"{at}counters/"), hw, _lifespan(got, f"{at}hw_counters/lifespan"))


def _lifespan(got: Mapping[str, str] | Unreadable, path: str) -> Observed[int]:
    if isinstance(got, Unreadable):
        return got
    n = parse.number(got.get(path, "").strip())
    return Value(n) if n is not None else Unreadable(Reason.EMPTY, f"{path}: not told")
