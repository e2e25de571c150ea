"""Running probes: what makes traffic or looks into running processes, each once for all checks that need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fabrictool.engine import bootstrap_tcp, path_mtu
from fabrictool.engine.task import Asked, Probe, Task
from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Recording

__all__ = ["PROBES", "Asked", "Probe", "Task", "record"]

PROBES: Mapping[str, Probe] = {
    "bootstrap_tcp": bootstrap_tcp.probe,
    "path_mtu": path_mtu.probe,
}
"""Every probe by its name, in the order in which they are run: cheap and harmless ones first. A probe's own file imports `Task` from
engine/task.py."""


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
