"""A recording: what one probe gave, raw. Kept in bundles beside the snapshots, judged by every check that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class Recording:
    """`takes`: moment -> node -> what was read there at that moment, in the order in which they were taken. A node that gave nothing
    at a moment has a snapshot with `error`, or is not there at all.

    `probe`: its name. `facts`: what the probe itself knows of its run (sizes, counts, command lines), as text by name; each probe's own
    types in `fabrictool.prove` write and read them. `started`, `ended`: the workstation's UTC time, ISO 8601. `error`: the probe could
    not be run at all.
    """

    probe: str
    run_id: str = ""
    started: str = ""
    ended: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    takes: Mapping[str, Mapping[str, Snapshot]] = field(default_factory=dict)
    error: Unreadable | None = None

    def at(self, moment: str, node: str) -> Snapshot:
        """What `node` gave at `moment`; a snapshot with `error` when there is nothing."""
        got = self.takes.get(moment, {}).get(node)
        if got is not None:
            return got
        return Snapshot(node, error=self.error or Unreadable(Reason.NOT_COLLECTED, f"{self.probe}: nothing of {node} at {moment}"))
