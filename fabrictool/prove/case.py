"""All that a judge over a fleet may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.model import Reason, Unreadable
from fabrictool.room import Fleet
from fabrictool.snapshot import Recording, Snapshot
from fabrictool.spec import NodeSpec


@dataclass(frozen=True, slots=True)
class Case:
    """`wants`: the selected nodes, in the spec's order; `snaps`: what each said (one that could not be read has `error`);
    `recordings`: by the probe's name; `baselines`: likewise, of the same fleet when it was well."""

    wants: Mapping[str, NodeSpec]
    snaps: Mapping[str, Snapshot] = field(default_factory=dict)
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    fleet: Fleet = field(default_factory=Fleet)
    baselines: Mapping[str, Recording] = field(default_factory=dict)

    def snap(self, node: str) -> Snapshot:
        return self.snaps.get(node) or Snapshot(node, error=Unreadable(Reason.NOT_COLLECTED, f"{node}: no snapshot"))

    def recording(self, probe: str) -> Recording:
        """The recording of `probe`; one with `error` when it was not run."""
        return self.recordings.get(probe) or Recording(probe, error=Unreadable(Reason.NOT_COLLECTED, f"the probe {probe} was not run"))
