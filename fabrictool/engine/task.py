"""What a probe is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fabrictool.engine.connect import Connection
from fabrictool.engine.progress import Progress
from fabrictool.snapshot import Recording, Snapshot
from fabrictool.spec import NodeSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """What the admin said on the command line. `force`: also where GPUs are busy."""

    force: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """What a probe works with. `wants`: the selected nodes; `snaps`: what each said just now. `run_id` names everything that it starts."""

    conn: Connection
    wants: Mapping[str, NodeSpec]
    snaps: Mapping[str, Snapshot]
    progress: Progress
    run_id: str
    asked: Asked = field(default_factory=Asked)


Probe = Callable[[Task], Recording]
"""Never raises for a node: what went wrong stands in the recording. KeyboardInterrupt passes through once nothing is left running."""
