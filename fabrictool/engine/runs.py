"""The runs of one probe over its nodes: lock, folders, an idle window, run after run, and the end of everything, whatever happens.

Nothing is decided here about the fabric: texts and counters go into the recording as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import gevent
from pyinfra.api.host import Host

from fabrictool import counters
from fabrictool.engine import onnode
from fabrictool.engine.task import Task
from fabrictool.model import Code, Reason
from fabrictool.ops.collect import read
from fabrictool.probes import stage
from fabrictool.probes.launch import Start, exports
from fabrictool.probes.limits import GUARD_S
from fabrictool.probes.plan import Plan
from fabrictool.probes.ready import Refusal
from fabrictool.prove import look
from fabrictool.prove.facts import END, IDLE, moments
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.spec import CollectiveSpec

T = TypeVar("T")
SETTLE_S = 1.0  # mlx5 renews the interfaces' counters in the background, at most once a second
GRACE_S = 12  # ranks that a dead one has left alone may still say what they saw; ranks.sh gives those beside it 10 s
ARRIVE_S = 5  # one command, on a loaded node
Takes = dict[str, dict[str, Snapshot]]


class Runs:
    """One probe's runs. `takes` fills as it goes; `made`: the runs that were begun."""

    def __init__(self, task: Task, plan: Plan, seen: Mapping[str, Snapshot]) -> None:
        self._task, self.plan = task, plan
        self._settle_s = max(SETTLE_S, *(look.lifespan_s(s) + 0.1 for s in seen.values()))
        self._hosts: dict[str, Host] = {s.node: task.conn.hosts[s.node] for s in plan.job.seats}
        self.takes: Takes = {}
        self.made: tuple[str, ...] = ()

    def _all(self, work: Callable[[Host], T], nodes: Sequence[str] | None = None) -> dict[str, T]:
        """Side by side on these nodes (all by default). On Ctrl-C what is on its way may arrive, so that it can be ended."""
        chosen = self._hosts if nodes is None else {n: self._hosts[n] for n in nodes}
        jobs = {name: gevent.spawn(work, host) for name, host in chosen.items()}
        try:
            gevent.joinall(list(jobs.values()))
        except KeyboardInterrupt:
            gevent.joinall(list(jobs.values()), timeout=ARRIVE_S)
            raise
        finally:
            gevent.killall(list(jobs.values()), block=False)
        return {name: job.get() for name, job in jobs.items()}

    def _take(self, moment: str, work: Callable[[Host], Snapshot]) -> None:
        self.takes[moment] = self._all(work)

    # -- before ----------------------------------------------------------------------------------------------------

    def open(self) -> Refusal | None:
        """One run at a time on a node; and a folder on each, the same everywhere."""
        self._task.progress.phase("prepare", len(self._hosts))
        for name, got in self._all(lambda host: onnode.make(host, self._program(host.name))).items():
            if isinstance(got, str):
                return _not_made(name, got)
            if got.folder != self.plan.job.folder:
                return Refusal(Code.NEEDS_ROOT, Reason.NEEDS_ROOT, f"{name}: only root can make the run's folder {self.plan.job.folder}",
                               (name,))
        # After the guard: it frees the lock when we cannot.
        for name, why in self._all(lambda host: onnode.lock(host, self.plan, "take")).items():
            if why:
                return _not_locked(name, why)
            self._task.progress.node(name, "ok")
        self._task.progress.done()
        self._task.progress.line(f"each run ends within {self.plan.job.limits.node_s} s, or is ended")
        return None

    def _program(self, node: str) -> str:
        """What makes the node's folder."""
        plan, want = self.plan, self._task.wants[node]
        added = {run: exports(plan.added[node].variables(run, run in plan.gated)) for run in plan.runs}
        alive = plan.idle_s + GUARD_S + onnode.STAGE_S
        return stage.program(plan.job.run_id, alive, plan.launcher.files(plan.job), added,
                             look.consumers(want, want.collective or CollectiveSpec()))

    # -- runs ------------------------------------------------------------------------------------------------------

    def counters(self, moment: str) -> None:
        gevent.sleep(self._settle_s)
        self._take(moment, lambda host: read(host, counters.SECTIONS))

    def idle(self) -> None:
        """The fabric at rest, for about as long as a run."""
        before, after = IDLE
        self._task.progress.phase("idle", len(self._hosts))
        self.counters(before)
        gevent.sleep(self.plan.idle_s)
        self.counters(after)
        for node in self._hosts:
            self._task.progress.node(node, "ok")
        self._task.progress.done()

    def run(self, name: str) -> bool:
        """One run with its counters. False when it failed: another one would fail alike."""
        before, during, after = moments(name)
        self._task.progress.phase(name, len(self._hosts))
        self.counters(before)
        alive = self.plan.job.limits.guard_s
        lost = {n: why for n, why in self._all(lambda host: onnode.mark(host, self.plan.job.folder, alive, name)).items() if why}
        if lost:
            self._task.progress.line(f"{name}: not begun: {'; '.join(f'{n}: {why}' for n, why in lost.items())}"[:300])
            self._task.progress.done()
            return False
        self.made = (*self.made, name)
        answers = self._start(name)
        self._take(during, lambda host: onnode.collect(host, self.plan, name))
        for node, answer in answers.items():
            take = self.takes[during][node]
            if answer.rc != 0 and not take.error:
                sections = {**take.sections, "start": answer}
                self.takes[during][node] = Snapshot(node, sections, taken=take.taken, ssh=take.ssh, uid=take.uid, notes=take.notes)
        self.counters(after)
        good = not any(onnode.failed(a) for a in answers.values())
        for node in self._hosts:
            self._task.progress.node(node, "ok" if node not in answers or not onnode.failed(answers[node]) else "failed")
        self._task.progress.done()
        return good

    def _start(self, name: str) -> dict[str, Captured]:
        """All starts side by side. When one has failed, the others get a while, and are then ended: they would wait for it."""
        starts: dict[str, Start] = {s.node: s for s in self.plan.launcher.starts(self.plan.job, name)}
        jobs = {node: gevent.spawn(onnode.start, self._hosts[node], self.plan, name, what) for node, what in starts.items()}
        try:
            for job in gevent.iwait(list(jobs.values())):
                if onnode.failed(job.get()):
                    break
            gevent.joinall(list(jobs.values()), timeout=GRACE_S)
            waiting = [node for node, job in jobs.items() if not job.ready()]
            if waiting:
                self._all(lambda host: onnode.sweep(host, self.plan.job.run_id), waiting)
            gevent.joinall(list(jobs.values()), timeout=onnode.SWEEP_S)
        finally:
            gevent.killall(list(jobs.values()), block=False)
        late = Captured(124, "", "no answer")
        return {node: job.get() if job.successful() else late for node, job in jobs.items()}

    # -- after -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Nothing of the run stays on any node, however far it came. A node that cannot be reached ends it by itself. Each step here acts
        on this run's id only, so it does no harm where there is nothing."""
        self._task.progress.phase("end", len(self._hosts))
        self._take(END, lambda host: onnode.close(host, self.plan))
        for name, why in self._all(lambda host: onnode.lock(host, self.plan, "drop")).items():
            self._task.progress.node(name, "ok" if not why else "locked still")
        self._task.progress.done()


def _not_locked(node: str, why: str) -> Refusal:
    """`why`: the last line of lock.sh."""
    if why.startswith("locked by run "):
        return Refusal(Code.LOCKED, Reason.BLOCKED, f"{node}: {why}", (node,))
    return _not_made(node, why)


def _not_made(node: str, why: str) -> Refusal:
    """`why`: what the node said last, or sudo."""
    why = why[:300]
    if "password is required" in why or "a terminal is required" in why or "not in the sudoers" in why:
        return Refusal(Code.NEEDS_ROOT, Reason.NEEDS_ROOT, f"{node}: {why}", (node,))
    return Refusal(Code.LAUNCH_FAILED, Reason.FAILED, f"{node}: {why}", (node,))
