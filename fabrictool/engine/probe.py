"""Running probes: what makes traffic or looks into running processes, each once for all checks that need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fabrictool.engine import allreduce, bootstrap_tcp, hang, path_mtu
from fabrictool.engine.interrupt import heard
from fabrictool.engine.task import Asked, Probe, Task
from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Recording

__all__ = ["PROBES", "Asked", "Probe", "Task", "record"]

PROBES: Mapping[str, Probe] = {
    "hang": hang.probe,
    "bootstrap_tcp": bootstrap_tcp.probe,
    "path_mtu": path_mtu.probe,
    "allreduce": allreduce.probe,
    "control": allreduce.control,
}
"""Every probe by its name, in the order in which they are run: cheap and harmless ones first. A probe's own file imports `Task` from
engine/task.py."""


class Stopped(Exception):
    """Ctrl-C: carries what had been recorded. Nothing of the probe under way is left running."""

    def __init__(self, recordings: dict[str, Recording]) -> None:
        super().__init__("interrupted")
        self.recordings = recordings


def record(names: Iterable[str], task: Task, probes: Mapping[str, Probe] | None = None) -> dict[str, Recording]:
    """The recordings of the probes called `names`. One that raises is a recording with `error`: no verdict, and not the end of the run.

    Raises Stopped on Ctrl-C.
    """
    known = PROBES if probes is None else probes
    wanted = set(names)
    out: dict[str, Recording] = {}
    for name, probe in known.items():
        if name in wanted:
            try:
                with heard():
                    out[name] = probe(task)
            except KeyboardInterrupt:
                stopped = Unreadable(Reason.BLOCKED, "interrupted; what it had started was ended")
                raise Stopped({**out, **{n: Recording(n, task.run_id, error=stopped) for n in known if n in wanted - out.keys()}}) from None
            except Exception as error:  # noqa: BLE001 - a bug in one probe must not hide what others recorded
                why = f"fabrictool itself failed in the probe {name}: {type(error).__name__}: {error}"[:300]
                out[name] = Recording(name, task.run_id, error=Unreadable(Reason.FAILED, why))
    return out
