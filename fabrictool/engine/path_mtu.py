"""The probe `path_mtu`: DF pings that fill the MTU, with a small one as control, on every rail over a covering set of pairs.

ICMP between the rail addresses of the selected nodes only. Nothing is started that outlives its own ping.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from fabrictool.engine.captured import answers, captured, utc_now
from fabrictool.engine.sidebyside import side_by_side
from fabrictool.engine.task import Task
from fabrictool.model import Run, Unreadable, Value
from fabrictool.probes.path import control_ping, df_ping
from fabrictool.prove.addresses import rail_addresses, rail_nodes
from fabrictool.prove.cover import cover
from fabrictool.prove.path_mtu import CHECK, MOMENT
from fabrictool.snapshot import Captured, Recording


@dataclass(frozen=True, slots=True)
class Job:
    """One ping: from which node, and under which name its answer is kept."""

    node: str
    section: str
    step: Run


def jobs(task: Task) -> Iterator[Job]:
    """Every ping, between addresses that were read. What cannot be pinged has no section: its judge sees the snapshots too."""
    addresses = {n: rail_addresses(want, task.snaps[n]) for n, want in task.wants.items() if n in task.snaps}
    for rail, nodes in rail_nodes(task.wants).items():
        mtu = min((m for n in nodes if (m := task.wants[n].fabric.mtu) is not None), default=0)
        for node, peer in cover(nodes) if mtu else ():
            source, target = addresses.get(node, {}).get(rail), addresses.get(peer, {}).get(rail)
            if isinstance(source, Value) and isinstance(target, Value):
                yield Job(node, f"large[{rail} {peer}]", df_ping(mtu, source.value, target.value, quick=True))
                yield Job(node, f"small[{rail} {peer}]", control_ping(source.value, target.value, quick=True))


def probe(task: Task) -> Recording:
    """Never raises for a node. A node whose connection broke has an `error` in place of its pings."""
    started = utc_now()
    mine: dict[str, list[Job]] = {n: [] for n in task.wants if n in task.conn.hosts}
    for job in jobs(task):
        if job.node in mine:
            mine[job.node].append(job)

    def ping(job: Job) -> Captured | Unreadable:
        return captured(task.conn.hosts[job.node], job.step.argv, job.step.timeout_s)

    task.progress.phase("ping", len(mine))
    takes = {}
    for node, got in side_by_side({n: [functools.partial(ping, job) for job in todo] for n, todo in mine.items()}):
        takes[node] = answers(node, {job.section: one for job, one in zip(mine[node], got, strict=True)})
        task.progress.node(node, "lost" if takes[node].error else "ok")
    task.progress.done()
    return Recording(CHECK, task.run_id, started, utc_now(), takes={MOMENT: takes})
