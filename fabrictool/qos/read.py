"""From a snapshot to `Qos`."""

from __future__ import annotations

import re

from fabrictool import ports
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.qos import dcb, mlnx_qos, owners
from fabrictool.qos.model import Ecn, Interface, Pause, Qos
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.snapshot.whole import whole_files

PAUSE = re.compile(r"(RX|TX):\s+(on|off)")


def read(snap: Snapshot) -> Qos:
    """Everything the room knows of one node."""
    names = sorted({*snap.items("qos.mlnx_qos"), *snap.items("qos.dcb"), *snap.items("qos.pause")})
    missing = snap.error or Unreadable(Reason.NOT_COLLECTED, "the snapshot does not hold this interface")
    units = owners.units(snap.raw("qos.units"))
    return Qos(
        ports=ports.read(snap),
        interfaces={name: interface(snap, name) for name in names},
        missing=missing,
        daemons=owners.daemons(snap.sysfs("qos.processes")),
        writers=owners.writers(snap.raw("qos.writers"), units),
        files=whole_files(snap, "qos.files"),
        units=units,
    )


def interface(snap: Snapshot, name: str) -> Interface:
    return Interface(
        name,
        mlnx_qos.parse(snap.raw("qos.mlnx_qos", name)),
        dcb.parse(snap.raw("qos.dcb", name)),
        pause(snap.raw("qos.pause", name)),
        ecn(snap, name),
    )


def pause(got: Captured | Unreadable) -> Observed[Pause]:
    """`ethtool -a IF`: the lines `RX:` and `TX:`; `RX negotiated:` is another thing."""
    if isinstance(got, Unreadable):
        return got
    said: dict[str, set[str]] = {"RX": set(), "TX": set()}
    for line in mlnx_qos.lines_of(got.out):
        if m := PAUSE.fullmatch(line):
            said[m[1]].add(m[2])
    if all(len(v) == 1 for v in said.values()):
        return Value(Pause(said["RX"] == {"on"}, said["TX"] == {"on"}))
    if got.rc != 0:
        reason = Reason.NEEDS_ROOT if "not permitted" in got.err + got.out else Reason.FAILED
        return Unreadable(reason, f"ethtool -a: exit status {got.rc}: {got.tail or 'no message'}")
    return Unreadable(Reason.CUT if got.out.strip() else Reason.EMPTY, "ethtool -a: the lines RX and TX are not both there")


def ecn(snap: Snapshot, name: str) -> Observed[Ecn]:
    """Only the vendor's driver offers these files."""
    got = snap.sysfs("qos.ecn", name)
    if isinstance(got, Unreadable):
        return got
    ends: dict[str, dict[int, bool]] = {"roce_np": {}, "roce_rp": {}}
    cnp: int | None = None
    for path, content in got.items():
        if path.endswith("/roce_np/cnp_dscp"):
            cnp = int(content) if re.fullmatch(r"[0-9]{1,2}", content) and int(content) <= 63 else None
        elif m := re.fullmatch(r".*/(roce_[nr]p)/enable/([0-7])", path):
            if content not in ("0", "1"):
                return Unreadable(Reason.GARBLED, f"{path}: {content[:40]!r}")
            ends[m[1]][int(m[2])] = content == "1"
    if not ends["roce_np"] and not ends["roce_rp"]:
        return Absent("ECN switches in sysfs (only the vendor's driver has them)")
    return Value(Ecn(tuple(sorted(ends["roce_np"].items())), tuple(sorted(ends["roce_rp"].items())), cnp))
