"""`hang`: where the ranks of named consumers stand, who waits for whom, and why.

A stack is a moment. What makes a hang of it is that ranks stand apart, that a phase of the start does not end, or that nothing moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fabrictool.model import Code, Evidence, Finding, Reason, Said, Status, Subject, SubjectKind, Unproven, Unreadable, Value
from fabrictool.prove.case import Case
from fabrictool.prove.hang_clues import about, blocked, differing, erring, loopback, missing, node_of
from fabrictool.prove.hang_job import PROBE, Job, jobs
from fabrictool.room import About
from fabrictool.system.phases import READINGS, Phase
from fabrictool.system.ranks import Rank

STARTED_S = 120  # a start takes seconds; engines load a model before it, which is no phase of it. NCCL itself gives up after about 60 s.
WANT = "no rank that waits for another one in vain"


def judge(case: Case) -> Iterator[Said]:
    recording, everyone = case.recording(PROBE), Subject(SubjectKind.FLEET, tuple(case.wants))
    if not any(w.env.consumers for w in case.wants.values()):
        yield About(Code.RANK_HANGS, everyone, "hang.consumers", "").skip("the spec names no consumers")
        return
    if recording.error:
        yield About(Code.RANK_HANGS, everyone, "hang.read", "").unknown(recording.error, WANT)
        return
    count = 0
    for job in jobs(case):
        count += len(job.everyone)
        yield from _job(job)
    yield Evidence("processes", count)
    if not count:
        yield Unproven("that no job hangs: no process of the spec's consumers was there to be looked at")


def _job(job: Job) -> Iterator[Said]:
    for node, why in job.lost.items():
        yield about(job, Code.RANK_HANGS, "read", Subject(SubjectKind.NODE, (node,))).unknown(why, WANT)
    if not job.views:
        if job.idle:
            yield about(job, Code.RANK_HANGS, "stand", Subject(SubjectKind.FLEET, job.idle)).ok("none is running", WANT)
        return
    clues = [f for clue in (loopback, blocked, missing, differing) for f in clue(job)]
    clues += erring(job, {f.code for f in clues})
    yield from clues
    told = any(f.status is Status.FAIL for f in clues)
    yield from _stacks(job, told)
    if not told:
        yield from _standing(job)
    yield Unproven("that ranks which stand alike make progress: a stack is a moment; look twice")


def _stacks(job: Job, told: bool) -> Iterator[Finding]:
    """Processes of which nothing is known. Where the cause was found without their stacks they are no gap."""
    for view in job.views.values():
        blind = [r for r in view.ranks if r.phase is Phase.UNKNOWN and not r.gone and r in job.ranks]
        if not blind or told:
            continue
        pids = ", ".join(str(r.pid) for r in blind[:8])
        spot = about(job, Code.RANK_HANGS, "stack", Subject(SubjectKind.NODE, (view.node,)))
        if any(r.tool == "kernel" for r in blind):
            why = f"neither py-spy nor gdb is on the node, or neither may look at {pids}"
            yield spot.unknown(Unreadable(Reason.TOOL_MISSING, why), WANT,
                               "install py-spy on the node (root's PATH); it changes nothing in the process")
        else:
            yield spot.unknown(Unreadable(Reason.FAILED, f"the stack of {pids} could not be read"), WANT)


def _standing(job: Job) -> Iterator[Finding]:
    """By where the ranks stand."""
    gone = [r for r in job.ranks if r.gone]
    known = [r for r in job.ranks if r.phase is not Phase.UNKNOWN]
    waits = [r for r in known if r.phase.waits]
    if gone and waits:
        for rank in gone:
            yield about(job, Code.RANK_HANGS, "stand", node_of(rank)).fail(
                f"{rank} ended while the nodes were looked at", WANT, f"{len(waits)} ranks wait: {_where(waits)}",
                remedy="look at the end of its log: one rank fails at once, the others wait for it")
        return
    if not known:
        if all(r.gone for r in job.ranks):  # of others it was said why nothing is known
            why = "all of it ended while the nodes were looked at" if gone else "none of its processes was found"
            yield about(job, Code.RANK_HANGS, "stand").unknown(Unreadable(Reason.EMPTY, why), WANT, "look again")
        return
    odd = _odd(known)
    if odd is not None:
        others = [r for r in known if r is not odd]
        yield about(job, Code.RANK_HANGS, "stand", node_of(odd)).fail(
            f"{odd}: {odd.stand}", WANT, f"it alone stands there; {len(others)} wait: {_where(others)}",
            remedy=f"{READINGS[odd.phase].do}; compare what it computes with the others (a branch that only it takes)")
    elif waits:
        yield from _alike(job, known, waits)
    else:
        yield about(job, Code.RANK_HANGS, "stand").ok(f"{len(known)} processes, none waits for another: {_where(known)}", WANT)


def _odd(known: Sequence[Rank]) -> Rank | None:
    """The one rank that stands apart while all others wait in one phase. Of two ranks, the one that does not wait."""
    if len(known) == 2:
        free = [r for r in known if not r.phase.waits]
        return free[0] if len(free) == 1 else None
    counts = Counter(r.phase for r in known)
    most, number = counts.most_common(1)[0]
    if number == len(known) - 1 and most.waits:
        return next(r for r in known if r.phase is not most)
    return None


def _where(ranks: Sequence[Rank]) -> str:
    counts = Counter(r.phase for r in ranks)
    return ", ".join(f"{n} in {phase}" for phase, n in counts.most_common())


def _alike(job: Job, known: Sequence[Rank], waits: Sequence[Rank]) -> Iterator[Finding]:
    phases = {r.phase for r in waits}
    first = waits[0]
    reading = READINGS[first.phase]
    got = f"{_where(known)}; {first}: {first.stand}"
    spot = about(job, Code.INIT_HANG if any(p.init for p in phases) else Code.RANK_HANGS, "stand")
    if any(p.init for p in phases):
        ages = [r.age_s.value for r in waits if isinstance(r.age_s, Value)]
        if ages and max(ages) < STARTED_S:
            why = f"the oldest of these ranks is {max(ages):.0f} s old, and a start takes a while"
            yield spot.unknown(Unreadable(Reason.BLOCKED, why), WANT, "look again in two minutes")
        else:
            yield spot.fail(got, WANT, reading.means, remedy=reading.do)
        return
    if len(known) > len(waits):
        free = [r for r in known if not r.phase.waits]
        yield spot.warn(got, WANT, f"{len(free)} processes do not wait: {', '.join(map(str, free[:4]))}",
                        remedy="look again: if they still stand there, these are the ones that the others wait for")
        return
    yield _flow(job, spot, got)


def _flow(job: Job, spot: About, got: str) -> Finding:
    """All wait in the data phase: running, or hanging together. Moving bytes tell."""
    moved = [v.moving.value for v in job.views.values() if isinstance(v.moving, Value)]
    if any(moved):
        return spot.ok(f"{got}; {sum(moved)} bytes of RDMA in 3 s", WANT)
    unread = next((v.moving for v in job.views.values() if isinstance(v.moving, Unreadable)), None)
    if not moved or unread is not None:
        return spot.unknown(unread or Unreadable(Reason.EMPTY, "whether RDMA data moves is not told"), WANT, "look again, and compare")
    reading = READINGS[Phase.DATA]
    return spot.warn(f"{got}; no byte of RDMA in 3 s", WANT, reading.means, remedy=reading.do)
