"""Whether an AllReduce between the nodes proves the fabric: its logs say RDMA, the counters say RDMA, its bytes add up and its numbers are
right, and it was as fast as the ports. The judge of the check `allreduce`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from fabrictool.collective.slow import process_times
from fabrictool.model import Code, Evidence, Finding, Reason, Said, Status, Subject, SubjectKind, Unproven, Unreadable, Value
from fabrictool.prove import bandwidth, launch, left, onerun, ranks, rdma_counters, results
from fabrictool.prove.addresses import not_selected
from fabrictool.prove.bandwidth import CHECK
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce, all_reduce
from fabrictool.prove.overruns import both_ways, over_runs
from fabrictool.prove.results import RunResult
from fabrictool.room import About
from fabrictool.snapshot import Recording

WANT = "an AllReduce between the nodes"
NOTHING = Unproven("anything of nodes against which nothing stands here: no run came to a result", of_any_node=True)


def judge(case: Case) -> Iterator[Said]:
    """A pass needs all of it: a figure alone, log lines alone or counters alone prove nothing."""
    made = case.recording(CHECK)
    facts = all_reduce(made)
    launched = list(launch.judge(made, case.wants, CHECK))
    if isinstance(facts, Unreadable):
        if not any(f.bad for f in launched):
            yield About(Code.NO_RESULT, Subject(SubjectKind.FLEET, tuple(case.wants)), f"{CHECK}.run", "").unknown(facts, WANT)
        yield from launched
        yield NOTHING
        return
    everyone = Subject(SubjectKind.FLEET, facts.nodes)
    runs = [results.read(made, facts, name, CHECK) for name in facts.runs]
    default = results.read(made, facts, facts.default_run, CHECK) if facts.default_run else None
    if len(facts.nodes) < 2:
        yield About(Code.SINGLE_NODE, everyone, f"{CHECK}.nodes", "").fail(
            f"one node ({', '.join(facts.nodes) or 'none'})", "at least two", "within one node nothing goes over the fabric",
            status=Status.UNKNOWN, remedy="select two nodes or more")
    if not runs:
        yield About(Code.NO_RESULT, everyone, f"{CHECK}.run", "").unknown(Unreadable(Reason.EMPTY, "no gated run was made"), WANT)
    if not any(r.ended for r in runs):
        yield NOTHING
    started = {run: [f for f in launched if f.path == f"{CHECK}.{run}.start"] for run in (*facts.runs, facts.default_run)}
    said = {r.name: [*started[r.name], *onerun.judge(case, made, facts, r, f"{CHECK}.{r.name}")] for r in runs}
    failed = {name: codes for name, found in said.items() if (codes := [f.code for f in found if f.status is Status.FAIL])}
    yield from (f for f in launched if not any(f in findings for findings in started.values()))
    figures = list(bandwidth.judge(case, facts, runs, default, failed))
    yield from (f for f in figures if isinstance(f, Evidence))
    yield from over_runs(CHECK, said)
    if default is not None:
        ended = ranks.judge(made, facts, default.name, f"{CHECK}.{default.name}")
        yield from (_told(f) for f in (*started[default.name], *default.findings, *ended))
    yield from _left(made, facts)
    yield from _counters(case, facts, failed)
    yield from (f for f in figures if not isinstance(f, Evidence))
    yield from _about(case, facts, runs)


def _told(f: Finding) -> Finding:
    """The run with NCCL's own choice of algorithm is not gated; but numbers that are wrong are wrong."""
    if f.code is Code.WRONG_RESULT and f.status is Status.FAIL:
        return f
    weaker = {Status.FAIL: Status.WARN, Status.UNKNOWN: Status.SKIP}.get(f.status, f.status)
    return replace(f, status=weaker, why="; ".join(w for w in (f.why, "with NCCL's own choice of algorithm, which is not gated") if w))


def _left(made: Recording, facts: AllReduce) -> Iterator[Finding]:
    """After every run nothing of it may be there."""
    runs = (*facts.runs, *([facts.default_run] if facts.default_run else []))
    for node in facts.nodes:
        yield left.judge(node, [made.at(name, node) for name in runs], f"{CHECK}.left", facts.launcher)


def _counters(case: Case, facts: AllReduce, failed: Collection[str]) -> Iterator[Said]:
    """What the counters say of the same recording, over all runs. That a run which failed cannot be counted was said of the run; and what
    the run with NCCL's own choice moved is told only where the gated ones are well."""
    by_run: dict[str, list[Finding]] = {run: [] for run in facts.runs}
    default: list[Finding] = []
    for said in rdma_counters.measured(case):
        if not isinstance(said, Finding):
            yield said
            continue
        words = said.path.split(".")
        run = next((w for w in words if w in by_run), "")
        if said.code is Code.SINGLE_NODE or (run in failed and said.code is Code.BLOCKED):
            continue
        if run:
            by_run[run].append(replace(said, path=".".join((CHECK, run, *(w for w in words if w != run)))))
        elif facts.default_run and facts.default_run in words:
            default.append(replace(said, path=f"{CHECK}.{said.path}"))
        else:
            yield replace(said, path=f"{CHECK}.{said.path}")
    short = {f.subject.nodes for found in by_run.values() for f in found if f.status is Status.FAIL}
    yield from both_ways(over_runs(CHECK, by_run))
    yield from (f for f in default if not (f.bad and f.subject.nodes in short))


def _about(case: Case, facts: AllReduce, runs: Iterable[RunResult]) -> Iterator[Said]:
    yield Evidence("runs", len(facts.runs))
    yield Evidence("ranks", facts.ranks)
    yield Evidence("size_bytes", facts.size_bytes)
    yield Evidence("launcher", facts.launcher)
    yield Evidence("program", facts.program)
    yield Evidence("consumer", facts.consumer or "none")
    library = next((r.run.nccl.value for r in runs if isinstance(r.run.nccl, Value)), None)
    if library:
        yield Evidence("nccl_version", library)
    slowest = max((t for r in runs if r.json and isinstance(times := process_times(r.json), Value) for t in times.value),
                  key=lambda t: t.behind, default=None)
    if slowest is not None:  # told, not gated: in a collective every rank waits for the slowest
        yield Evidence("slowest_process_host", slowest.host)
        yield Evidence("slowest_process_behind_share", round(slowest.behind, 3))
    if not facts.consumer:
        yield Unproven("that a job has the same environment: the ranks got nobody's but the node's own files")
    for text in (not_selected(case),):
        if text:
            yield Unproven(text)
