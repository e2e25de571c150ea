"""The probe `hang`: looks at the processes of consumers that the spec names, once. Read only: it starts nothing that outlives the look,
enters no container and sends no signal. py-spy and gdb stop a process for the moment in which they read its stack."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fabrictool.engine.captured import utc_now
from fabrictool.engine.sidebyside import side_by_side
from fabrictool.engine.task import Task
from fabrictool.ops.collect import read
from fabrictool.prove.hang_job import PROBE, to_look_at
from fabrictool.snapshot import Recording, Snapshot
from fabrictool.system.hang_sections import MOMENT, Target, by_process, of_node


def _todo(task: Task) -> Iterator[tuple[str, tuple[Target, ...]]]:
    for node, want in task.wants.items():
        if node in task.conn.hosts and node in task.snaps:
            mine = to_look_at(want, task.snaps[node])
            if mine:
                yield node, mine


def probe(task: Task) -> Recording:
    """Never raises for a node. A node on which no consumer runs has no take."""
    started = utc_now()
    todo = dict(_todo(task))

    def look(node: str) -> Snapshot:
        return by_process(read(task.conn.hosts[node], of_node(todo[node])))

    task.progress.phase("look at processes", len(todo))
    takes: dict[str, Snapshot] = {}
    for node, (got,) in side_by_side({n: [functools.partial(look, n)] for n in todo}):
        takes[node] = got
        task.progress.node(node, "lost" if got.error else "ok")
    task.progress.done()
    return Recording(PROBE, task.run_id, started, utc_now(), takes={MOMENT: takes})
