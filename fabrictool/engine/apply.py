"""Apply a shown plan: in waves, link flaps node by node, stopping at the first thing that goes wrong.

Nothing here compares want and got: the operations do, with the rooms' judges. This file decides who is next and when to stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyinfra.api.host import Host

from fabrictool.engine import deploy, path
from fabrictool.engine.connect import Connection, reconnect
from fabrictool.engine.progress import Progress
from fabrictool.engine.undo import undo
from fabrictool.model import Code, Finding, Risk, Status, Subject, SubjectKind
from fabrictool.ops.converge import lock
from fabrictool.ops.session import session, spell
from fabrictool.spec import NodeSpec

Plan = Mapping[str, Sequence[Finding]]  # node -> everything its judges said


@dataclass
class Applied:
    """What happened. `done`: node -> findings whose steps ran; `problems`: what apply itself has to say, as findings."""

    done: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    stopped: str = ""


def approved(findings: Sequence[Finding], allow_flap: bool) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Finding id -> its steps, for all that may run."""
    return {f.id: tuple(spell(s) for s in f.steps) for f in findings
            if f.steps and f.status is Status.FAIL and (allow_flap or f.risk is not Risk.FLAP)}


def flaps(findings: Sequence[Finding]) -> bool:
    return any(f.steps and f.risk is Risk.FLAP and f.status is Status.FAIL for f in findings)


def problem(code: Code, node: str, why: str, *, got: str, status: Status = Status.FAIL, remedy: str = "") -> Finding:
    return Finding(code, Subject(SubjectKind.NODE, (node,)), "apply.run", "", got, "applied", why, status, remedy=remedy)


def no_lock(node: str, why: str, begun: bool) -> Finding:
    """`why`: the last line of lock.sh. Anything but another run's lock (a full disk, a lost connection) is a failure like others."""
    code = Code.LOCKED if why.startswith("locked by run ") else Code.APPLY_FAILED
    return problem(code, node, f"nothing{' more' if begun else ''} was written: {why}", got="no lock",
                   remedy=("wait until the other run has ended, then " if code is Code.LOCKED else "mend that, then ") + "run apply again")


def apply(conn: Connection, wants: Mapping[str, NodeSpec], waves: Sequence[Sequence[str]], plan: Plan, file: Path, *,
          allow_flap: bool, progress: Progress, out: Applied) -> None:
    """Run `file` on every node of `plan` that has something to do, wave after wave (`waves` covers all nodes, in order).

    `out` is filled as it goes, so that an interruption loses nothing of what is known."""
    todo: list[str] = []
    for name, host in conn.hosts.items():
        mine = session(host)
        mine.managed = True
        mine.approved = approved(plan.get(name, ()), allow_flap)
        if mine.approved:
            todo.append(name)
    if not todo:
        return
    deploy.prepare(conn, file, todo)
    run = _Run(conn, wants, plan, out, progress, allow_flap)
    try:
        for number, wave in enumerate(waves, 1):
            names = [n for n in wave if n in todo]
            if names:
                run.wave(f"apply {number}/{len(waves)}" if len(waves) > 1 else "apply", names)
            failed = sorted({n for p in out.problems if p.code is Code.APPLY_FAILED for n in p.subject.nodes})
            if failed and not out.stopped and number < len(waves):
                out.stopped = f"stopped after wave {number}: {', '.join(failed)} did not read back"
    except KeyboardInterrupt:
        conn.state.pool.kill(block=False)
        raise
    finally:
        for name in todo:
            out.done[name] = tuple(session(conn.hosts[name]).done)
            if session(conn.hosts[name]).locked:
                lock(conn.hosts[name], "drop")


@dataclass
class _Run:
    conn: Connection
    wants: Mapping[str, NodeSpec]
    plan: Plan
    out: Applied
    progress: Progress
    allow_flap: bool
    flapped: list[str] = field(default_factory=list)
    path_proven: bool = False

    def wave(self, title: str, names: list[str]) -> None:
        """Calm nodes side by side, then those whose links flap, one by one."""
        flappy = [n for n in names if self.allow_flap and flaps(self.plan[n])]
        calm = [n for n in names if n not in flappy]
        self.progress.phase(title, len(names))
        touched: set[str] = set()
        if calm and not self.out.stopped:
            touched |= set(calm)
            self._execute(calm)
        for name in flappy:
            if self.out.stopped:
                break
            self._flap(name)
        if self.out.stopped:
            for name in (n for n in names if n not in touched | set(self.flapped)):
                self.progress.node(name, "not touched")
                self.out.problems.append(problem(Code.APPLY_STOPPED, name, self.out.stopped, got="not touched", status=Status.UNKNOWN,
                                                 remedy="mend the node it stopped at, then run apply again"))
        self.progress.done()

    def _execute(self, names: list[str]) -> bool:
        result = deploy.execute(self.conn, names)
        for name, ok in result.items():
            held = session(self.conn.hosts[name]).lock_refused
            self.progress.node(name, "ok" if ok else "locked" if held else "failed")
            if held:
                self.out.problems.append(no_lock(name, held, bool(session(self.conn.hosts[name]).done)))
            elif not ok:
                said = session(self.conn.hosts[name]).said
                why = "a write did not read back; see the findings that are left" + (f"; it said: {said[-1]}" if said else "")
                self.out.problems.append(problem(Code.APPLY_FAILED, name, why, got="failed",
                                                 remedy="run the printed steps by hand on the node and read what they say"))
        return all(result.values())

    def _flap(self, name: str) -> None:
        host = self.conn.hosts[name]
        ok = self._execute([name])
        self.flapped.append(name)
        if session(host).lock_refused and not session(host).done:
            return  # untouched: no reason to stop on the next node
        if not ok:
            self.out.stopped = f"stopped after {name}: a link-flapping change there did not read back"
            return
        lost = reconnect(host)
        if lost:
            self.out.stopped = f"stopped after {name}: no new connection after its link flapped ({lost.why})"
            self.out.problems.append(problem(lost.code, name, lost.why, got="not reachable after the change", remedy=lost.remedy))
            return
        self._prove_path(host)

    def _prove_path(self, host: Host) -> None:
        """After the first two nodes with a raised MTU, jumbo frames must pass both ways on every rail; else both are put back."""
        if self.path_proven or not any(f.code is Code.LINK_MTU_RUNNING for f in session(host).done):
            return
        raised = [n for n in self.flapped if any(f.code is Code.LINK_MTU_RUNNING for f in session(self.conn.hosts[n]).done)]
        peer = raised[-2] if len(raised) > 1 else path.ready_peer(self.conn, self.wants, self.plan, host.name)
        if peer is None:
            last = not any(n not in self.flapped and flaps(self.plan[n]) for n in self.plan)
            if last:
                self.out.unproven.append(f"{host.name}: no second node has the new MTU, so no jumbo frame was sent")
            return
        holes = path.prove(self.conn, self.wants, (peer, host.name))
        if not holes:
            self.path_proven = True
            return
        self.out.problems.extend(holes)
        if any(h.code is Code.PATH_MTU_HOLE and h.status is Status.FAIL for h in holes):
            back = [n for n in (host.name, peer) if n in raised]
            for name in back:
                why = undo(self.conn.hosts[name], ("link",))
                self.progress.line(f"{name}: {'put back' if not why else f'could not be put back: {why}'}")
                if why:
                    self.out.problems.append(problem(Code.APPLY_FAILED, name, f"the old MTU could not be put back: {why}",
                                                     got="not put back", remedy="set the old MTU by hand"))
            self.out.stopped = f"stopped after {host.name}: frames of the new MTU do not pass between {peer} and {host.name}; put back"
        else:
            self.out.stopped = f"stopped after {host.name}: could not prove that frames of the new MTU pass to {peer}"
