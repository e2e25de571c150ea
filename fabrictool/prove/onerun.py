"""Everything about one gated run of an AllReduce, in the order in which an admin needs it: the cause first, and only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabrictool.model import Code, Finding, Status
from fabrictool.prove import ranks, transports
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce
from fabrictool.prove.results import RunResult
from fabrictool.snapshot import Recording

FOLLOWS = (Code.NO_RESULT, Code.RANK_DIED)  # what a run ends with, whatever it broke of


def judge(case: Case, made: Recording, facts: AllReduce, run: RunResult, path: str) -> Iterator[Finding]:
    """`path`: CHECK.RUN. Wrong numbers come first, then who was killed, then what the logs call the cause."""
    ended = list(ranks.judge(made, facts, run.name, path))
    symptoms = list(transports.symptoms(made, facts, run.name, path, good=run.good))
    carried = list(transports.judge(case, made, facts, run.name, path))
    killed = [f for f in ended if f.path.endswith(".ranks_killed")]
    causes = [f for f in symptoms if f.path.endswith(".cause")]
    wrong = [f for f in run.findings if f.path == f"{path}.result"]
    printed = [f for f in run.findings if f not in wrong]
    others = [f for f in ended if f not in killed]
    if run.ended:
        yield from wrong
        yield from killed
        yield from causes
        yield from printed
        yield from (f for f in others if f.status is not Status.FAIL)  # what statuses mean after a result is said of the result
        yield from (f for f in symptoms if f not in causes)
        yield from _carried(carried)
        return
    # It came to no result: what it should have shown is not known, and only what stands against it is told.
    fails = [f for f in carried if f.status is Status.FAIL]
    held = any(f.status is Status.FAIL and f.code is Code.INIT_HANG for f in symptoms)  # the logs say who hangs, the program only that
    others = list(_without_followers(others, symptoms, known=held or bool(killed or causes or fails)))
    explained = held or any(f.status is Status.FAIL for f in (*killed, *others, *causes, *fails))
    yield from (f for f in wrong if f.status is Status.FAIL)
    yield from killed
    yield from causes
    yield from fails
    yield from (f for f in printed if not (explained and f.bad and f.code in FOLLOWS) and not (held and f.code is Code.INIT_HANG))
    yield from others
    yield from (f for f in symptoms if f not in causes and not (explained and f.status is Status.UNKNOWN))


def _without_followers(ended: Sequence[Finding], symptoms: Sequence[Finding], *, known: bool) -> Iterator[Finding]:
    """How ranks ended, without those whose own words show only that others were gone first. `known`: something else is the cause."""
    followers = {f.subject.nodes for f in symptoms if f.path.endswith(".consequence")}
    first = known or any(f.status is Status.FAIL and f.subject.nodes not in followers for f in ended)
    for f in ended:
        if not (first and f.status is Status.FAIL and f.subject.nodes in followers):
            yield f


def _carried(found: Sequence[Finding]) -> Iterator[Finding]:
    """Without what could not be read for a reason that was told: over sockets NCCL logs nothing of RDMA, and a log that is missing
    shows nothing."""
    sockets = any(f.code is Code.TCP_FALLBACK and f.status is Status.FAIL for f in found)
    blind = {f.subject.nodes for f in found if f.code is Code.LOG_MISSING and f.bad}
    for f in found:
        if not (f.code is Code.UNREADABLE and (sockets or f.subject.nodes in blind)):
            yield f
