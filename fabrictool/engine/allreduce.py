"""The probes `allreduce` and `control`: an AllReduce over the selected nodes, with counters around each run.

`control` is one short run over sockets, pinned to a rail interface: RDMA counters that move in it prove nothing in the other.
"""

from __future__ import annotations

import json
from functools import partial

from fabrictool.engine.captured import utc_now
from fabrictool.engine.runs import Runs
from fabrictool.engine.sidebyside import side_by_side
from fabrictool.engine.task import Task
from fabrictool.ops.collect import read
from fabrictool.probes.plan import Plan, plan
from fabrictool.probes.ready import Refusal, spec_of
from fabrictool.prove import look
from fabrictool.prove.facts import REFUSED
from fabrictool.snapshot import Recording, Snapshot
from fabrictool.spec import NodeSpec

ALLREDUCE, CONTROL = "allreduce", "control"


def probe(task: Task) -> Recording:
    """Three gated runs (as the spec has it) and one with NCCL's own algorithm."""
    return _probe(task, ALLREDUCE)


def control(task: Task) -> Recording:
    """One run over sockets."""
    return _probe(task, CONTROL)


def _probe(task: Task, name: str) -> Recording:
    """Never raises for a node. On Ctrl-C everything that was started is ended before it passes through."""
    started = utc_now()
    wants = _reached(task)
    seen = _look(task, wants)
    takes = {look.MOMENT: seen} if seen else {}
    snaps = {node: task.snaps[node] for node in wants}
    made = plan(task.run_id, wants, snaps, seen, control=name == CONTROL, force=task.asked.force)
    if isinstance(made, Refusal):
        return refused(name, task.run_id, started, made, takes)
    return _runs(task, name, started, made, seen)


def _runs(task: Task, name: str, started: str, made: Plan, seen: dict[str, Snapshot]) -> Recording:
    runs = Runs(task, made, seen)
    refusal: Refusal | None = None
    try:
        refusal = runs.open()
        if refusal is None:
            runs.idle()
            for run in runs.plan.runs:
                if not runs.run(run):
                    break
    finally:
        runs.close()
    takes = {look.MOMENT: seen, **runs.takes}
    if refusal is not None:
        return refused(name, task.run_id, started, refusal, takes)
    return Recording(name, task.run_id, started, utc_now(), runs.plan.facts(runs.made).to_facts(), takes)


def refused(name: str, run_id: str, started: str, why: Refusal, takes: dict[str, dict[str, Snapshot]]) -> Recording:
    """A recording of why nothing was run."""
    told = json.dumps({"code": str(why.code), "nodes": list(why.nodes)})
    return Recording(name, run_id, started, utc_now(), {REFUSED: told}, takes, why.error)


def _reached(task: Task) -> dict[str, NodeSpec]:
    """The selected nodes that could be read, in the spec's order."""
    return {name: want for name, want in task.wants.items()
            if name in task.conn.hosts and name in task.snaps and task.snaps[name].error is None}


def _look(task: Task, wants: dict[str, NodeSpec]) -> dict[str, Snapshot]:
    """What every node has for a run, and what keeps it busy. {} where the nodes' settings are not one."""
    spec = spec_of(wants)
    if isinstance(spec, Refusal):
        return {}
    task.progress.phase("look", len(wants))
    calls = {name: [partial(read, task.conn.hosts[name], look.sections(want, spec))] for name, want in wants.items()}
    out: dict[str, Snapshot] = {}
    for name, got in side_by_side(calls):
        out[name] = got[0]
        task.progress.node(name, "ok" if got[0].error is None else "unreadable")
    task.progress.done()
    return {name: out[name] for name in wants}
