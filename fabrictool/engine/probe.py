"""Running probes: what makes traffic or looks into running processes, each once for all checks that need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fabrictool.engine.connect import Connection
from fabrictool.engine.progress import Progress
from fabrictool.model import Reason, Unreadable
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

PROBES: Mapping[str, Probe] = {}
"""Every probe by its name, in the order in which they are run: cheap and harmless ones first."""


def record(names: Iterable[str], task: Task, probes: Mapping[str, Probe] | None = None) -> dict[str, Recording]:
    """The recordings of the probes called `names`. One that raises is a recording with `error`: no verdict, and not the end of the run."""
    known = PROBES if probes is None else probes
    wanted = set(names)
    out: dict[str, Recording] = {}
    for name, probe in known.items():
        if name in wanted:
            try:
                out[name] = probe(task)
            except Exception as error:  # noqa: BLE001 - a bug in one probe must not hide what others recorded
                why = f"fabrictool itself failed in the probe {name}: {type(error).__name__}: {error}"[:300]
                out[name] = Recording(name, task.run_id, error=Unreadable(Reason.FAILED, why))
    return out
