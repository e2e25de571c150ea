"""What systemd's services may lock (section `system.units`)."""

from __future__ import annotations

from collections.abc import Mapping

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections
from fabrictool.system.processes import Locked, limit


def locked(snap: Snapshot) -> Mapping[str, Locked] | Unreadable:
    """Unit -> LimitMEMLOCK, of the services that systemd has loaded."""
    text = snap.text(sections.UNITS.name)
    if isinstance(text, Unreadable):
        return text
    body = text.value.replace("\r\n", "\n")
    if not body.endswith("\nend\n"):
        return Unreadable(Reason.CUT, f"{sections.UNITS.name}: the end is missing")
    found: dict[str, Locked] = {}
    for block in body.removesuffix("end\n").split("\n\n"):
        pairs = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
        got = limit(pairs.get("LimitMEMLOCK", ""), pairs.get("LimitMEMLOCK", ""), 1)
        if pairs.get("Id") and got is not None:
            found[pairs["Id"]] = got
    return found
