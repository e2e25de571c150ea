"""The check `allreduce`: healthy fleets pass with numbers; each single fault flips them to its code and names what it is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictool.check import Check, Listed
from fabrictool.model import Code, Finding, Reason, Result, Status, SubjectKind, Unreadable
from fabrictool.prove import Case, allreduce
from fabrictool.snapshot import Captured, Recording, Snapshot
from fabrictool.verdict import assemble, judged
from tests.prove import faulty
from tests.prove.fleets import B, h20s, sparks
from tests.prove.recordings import Fleet, noisy
from tests.report.reports import INFO

LISTED = Listed("allreduce", "", "", Check(probes=("allreduce",), judge=allreduce.judge))
FIRST, SECOND, THIRD = "spark01", "spark02", "spark03"


def result(made: Case) -> Result:
    said = judged(LISTED, made)
    return assemble(INFO, {"allreduce": ()}, dict.fromkeys(made.wants, ()), judged={"allreduce": said}).results[0]


def worse(got: Result, *statuses: Status) -> list[Finding]:
    return [f for f in got.findings if f.status in (statuses or (Status.FAIL, Status.UNKNOWN, Status.WARN))]


@pytest.mark.parametrize("fleet", [sparks(2), sparks(3), sparks(4), sparks(8), h20s()], ids=lambda f: f"{f.facts.program}-{len(f.hosts)}")
def test_healthy_fleets_pass_with_numbers(fleet: Fleet) -> None:
    got = result(fleet.case())
    assert (got.status, worse(got)) == (Status.PASS, [])
    assert all(f.path.startswith("allreduce.") for f in got.findings)
    assert len({f.id for f in got.findings}) == len(got.findings)
    busbw, line_rate = (22.88, 25.0) if fleet.facts.launcher == "direct" else (360.0, 400.0)
    assert got.evidence["busbw_gbytes_per_s"] == got.evidence["busbw_min_gbytes_per_s"] == busbw
    assert got.evidence["line_rate_gbytes_per_s"] == line_rate
    assert (got.evidence["runs"], got.evidence["size_bytes"]) == (3, fleet.facts.size_bytes)
    assert all(f.status is Status.PASS for f in got.findings if f.path in ("allreduce.busbw", "allreduce.transport.overall"))


@pytest.mark.parametrize("seed", range(20))
def test_noise_fails_nobody(seed: int) -> None:
    for fleet in (sparks(4), h20s()):
        made = noisy(fleet, seed)
        for i, run in enumerate(made.phases):
            factor = 1 + 0.05 * ((seed * 7 + i * 13) % 21 - 10) / 10  # -5 % to +5 %, another for each run
            healthy = 22.9 if made.facts.launcher == "direct" else 360
            made.rows[run] = faulty.row(made.facts.size_bytes, made.facts.ranks, healthy * factor)
        assert worse(result(made.case())) == []


Fault = Callable[[], Fleet]
FAULTS: list[tuple[str, Fault, Code, SubjectKind, tuple[str, ...]]] = [
    ("TCP with a bandwidth that looks well", lambda: faulty.fallback(sparks(4)), Code.TCP_FALLBACK, SubjectKind.FLEET, sparks(4).hosts),
    ("TCP between two nodes", lambda: faulty.fallback(sparks(2)), Code.TCP_FALLBACK, SubjectKind.PAIR, (FIRST,)),
    ("TCP in one run of three", lambda: faulty.fallback(sparks(4), ("run2",)), Code.TCP_FALLBACK, SubjectKind.FLEET, sparks(4).hosts),
    ("RDMA in the logs, flat counters", lambda: faulty.no_traffic(sparks(4)), Code.COUNTERS_FLAT, SubjectKind.NODE, (FIRST,)),
    ("one rail of a node idle", lambda: faulty.one_rail(sparks(4), THIRD), Code.SINGLE_RAIL, SubjectKind.FUNCTION, (THIRD,)),
    ("slow", lambda: faulty.slow(sparks(4)), Code.LOW_BUSBW, SubjectKind.FLEET, sparks(4).hosts),
    ("wrong numbers", lambda: faulty.wrong(sparks(4)), Code.WRONG_RESULT, SubjectKind.FLEET, sparks(4).hosts),
    ("wrong numbers by NCCL's own choice", lambda: faulty.wrong(sparks(4), ("default",)), Code.WRONG_RESULT, SubjectKind.FLEET,
     sparks(4).hosts),
    ("a rank killed", lambda: faulty.died(sparks(4), 2), Code.RANK_DIED, SubjectKind.NODE, (THIRD,)),
    ("a rank with an error of its own", lambda: faulty.died(sparks(4), 1, rc=139), Code.RANK_DIED, SubjectKind.NODE, (SECOND,)),
    ("no start", lambda: faulty.hangs_in_init(sparks(4)), Code.INIT_HANG, SubjectKind.FLEET, sparks(4).hosts),
    ("a node that nobody reaches", lambda: faulty.cut_off(sparks(4), 2), Code.INIT_HANG, SubjectKind.FLEET, (FIRST, SECOND, "spark04")),
    ("no closing line", lambda: faulty.printed(sparks(4), faulty.before("# Out of bounds")), Code.NO_RESULT, SubjectKind.FLEET,
     sparks(4).hosts),
    ("a queue pair that gave up, before the ranks did", lambda: faulty.gave_up(sparks(4), 1), Code.RDMA_RETRY_EXCEEDED, SubjectKind.NODE,
     (SECOND,)),
    ("a smaller size", lambda: faulty.reduced(sparks(4)), Code.SIZE_REDUCED, SubjectKind.FLEET, sparks(4).hosts),
    ("a variable that a node lacks", lambda: faulty.logged(sparks(4), faulty.lacks("NCCL_IB_TC"), (SECOND,)), Code.ENV_NOT_PROPAGATED,
     SubjectKind.NODE, (SECOND,)),
    ("another algorithm than was pinned", lambda: faulty.logged(sparks(4), faulty.lacks("NCCL_ALGO"), (SECOND,)), Code.ENV_NOT_PROPAGATED,
     SubjectKind.NODE, (SECOND,)),
    ("a device that NCCL left out", lambda: faulty.logged(sparks(4), faulty.one_device, (THIRD,)), Code.SINGLE_RAIL, SubjectKind.NODE,
     (THIRD,)),
    ("another bootstrap interface", lambda: faulty.logged(sparks(4), faulty.by_docker, (SECOND,)), Code.NCCL_WRONG_INTERFACE,
     SubjectKind.NODE, (SECOND,)),
    ("no GPUDirect where it is required", lambda: faulty.logged(h20s(), lambda t: t.replace("/GDRDMA", "")), Code.GDR_MISSING,
     SubjectKind.NODE, ("gpu01",)),
    ("a node that takes sockets while the others take RDMA", lambda: faulty.mixed(sparks(4), SECOND), Code.NCCL_MIXED, SubjectKind.NODE,
     (SECOND,)),
    ("a process left behind", lambda: faulty.left_behind(sparks(4), SECOND), Code.LEFT_BEHIND, SubjectKind.NODE, (SECOND,)),
]


@pytest.mark.parametrize(("fault", "code", "kind", "nodes"), [f[1:] for f in FAULTS], ids=[f[0].replace(" ", "-") for f in FAULTS])
def test_each_fault_fails_with_its_code_and_names_what_it_is_about(
        fault: Fault, code: Code, kind: SubjectKind, nodes: tuple[str, ...]) -> None:
    got = result(fault().case())
    assert (got.status, got.code) == (Status.FAIL, code)
    first = next(f for f in got.findings if f.status is Status.FAIL)
    assert (first.subject.kind, first.subject.nodes) == (kind, nodes)
    assert first.why
    assert first.remedy


def test_without_a_consumer_nobody_is_sent_to_mpirun_for_a_variable() -> None:
    remedies = []
    for consumer in ("docker:vllm-1", ""):
        fleet = faulty.logged(sparks(4), faulty.lacks("NCCL_IB_TC"), (SECOND,))
        fleet.facts = replace(fleet.facts, consumer=consumer)
        (one,) = {f.remedy for f in worse(result(fleet.case())) if f.code is Code.ENV_NOT_PROPAGATED}
        remedies.append(one)
    assert "mpirun" in remedies[0]
    assert "fabrictool plan" in remedies[1]


UNKNOWN: list[tuple[str, Fault, Code]] = [
    ("an old result file", lambda: faulty.stale(sparks(4)), Code.RESULT_STALE),
    ("a host's log is missing", lambda: faulty.unlogged(sparks(4), (SECOND,)), Code.LOG_MISSING),
    ("no log at all", lambda: faulty.unlogged(sparks(4), sparks(4).hosts), Code.LOG_MISSING),
    ("nothing of rank 0", lambda: faulty.without(sparks(4), FIRST, "rank[0]"), Code.UNREADABLE),
    ("nothing of another rank", lambda: faulty.without(sparks(4), THIRD, "rank[2]"), Code.UNREADABLE),
    ("nobody looked what was left", lambda: faulty.without(sparks(4), THIRD, "left"), Code.UNREADABLE),
    ("no counters of a node", lambda: faulty.uncounted(sparks(4), THIRD), Code.UNREADABLE),
    ("somebody else's traffic", lambda: faulty.foreign(sparks(4), SECOND), Code.FOREIGN_TRAFFIC),
    ("more than the ports carry", lambda: faulty.slow(sparks(4), 31.0), Code.LOW_BUSBW),
    ("cut rows", lambda: faulty.printed(sparks(4), faulty.cut), Code.RESULT_UNPARSED),
]


@pytest.mark.parametrize(("fault", "code"), [f[1:] for f in UNKNOWN], ids=[f[0].replace(" ", "-") for f in UNKNOWN])
def test_what_was_not_seen_is_no_pass(fault: Fault, code: Code) -> None:
    got = result(fault().case())
    assert got.status is Status.UNKNOWN
    assert code in {f.code for f in worse(got, Status.UNKNOWN)}


def test_a_table_that_others_wrote_into_is_no_matter_where_the_file_holds_it() -> None:
    fleet = sparks(4)
    for run in fleet.facts.runs:
        got = fleet.recording().at(run, FIRST).sections["rank[0]"]
        fleet.put(run, FIRST, "rank[0]", replace(got, out=faulty.cut(got.out)))
    assert result(fleet.case()).status is Status.PASS


def test_some_runs_are_named_where_not_all_show_it() -> None:
    got = result(faulty.fallback(sparks(4), ("run2",)).case())
    assert all("in run2" in f.why for f in worse(got, Status.FAIL))
    assert not any("in run" in f.why for f in worse(result(faulty.fallback(sparks(4)).case())))


def test_one_cause_is_few_findings() -> None:
    assert [f.code for f in worse(result(faulty.died(sparks(4), 2).case()))] == [Code.RANK_DIED]
    fell = worse(result(faulty.fallback(sparks(4)).case()))
    assert [f.code for f in fell] == [Code.TCP_FALLBACK, *[Code.COUNTERS_FLAT] * 4]
    idle = worse(result(faulty.one_rail(sparks(4), THIRD).case()))
    assert [(f.code, f.subject.function) for f in idle] == [(Code.SINGLE_RAIL, "enP2p1s0f0np0"), (Code.LOW_BUSBW, "")]
    assert "one rail alone" in idle[1].why


def test_one_node_shows_nothing_of_the_fabric() -> None:
    fleet = sparks(2)
    fleet.facts, fleet.hosts = replace(fleet.facts, rank_nodes=(FIRST, FIRST)), (FIRST, FIRST)
    got = result(fleet.case())
    assert got.status is Status.UNKNOWN
    assert {f.code for f in worse(got)} >= {Code.SINGLE_NODE}
    assert [f.status for f in got.findings if f.path == "allreduce.busbw"] == [Status.SKIP]


def test_nothing_was_run() -> None:
    case = sparks(2).case()
    for made in (Recording("allreduce"), Recording("allreduce", error=Unreadable(Reason.BLOCKED, "GPUs are busy")),
                 Recording("allreduce", facts={"run": "{}"})):
        got = result(replace(case, recordings={"allreduce": made}))
        assert (got.status, len(got.findings)) == (Status.UNKNOWN, 1)
    assert result(replace(case, recordings={})).status is Status.UNKNOWN
    fleet = sparks(2)
    fleet.facts = replace(fleet.facts, runs=())
    assert result(fleet.case()).status is Status.UNKNOWN


def test_the_run_with_nccls_own_choice_is_told_and_not_gated() -> None:
    fleet = sparks(2)
    fleet.rows["default"] = faulty.row(fleet.facts.size_bytes, 2, 41.0)  # over two nodes a tree may exceed the ports
    got = result(fleet.case())
    assert got.status is Status.PASS
    assert got.evidence["busbw_default_algorithm_gbytes_per_s"] == pytest.approx(41.0, abs=0.1)
    fleet.put("default", FIRST, "rank[0]", Captured(1, "nothing"))
    assert result(fleet.case()).status is Status.WARN


def test_the_rate_is_read_and_not_believed() -> None:
    fleet = sparks(4)
    fleet.snaps[SECOND] = Snapshot(SECOND, {k: v for k, v in fleet.snaps[SECOND].sections.items() if k != "ports.net"})
    got = result(fleet.case())
    assert any(f.path == "allreduce.busbw" and f.status is Status.UNKNOWN for f in got.findings)
    slow = sparks(4)
    net = slow.snaps[THIRD].sections["ports.net"]
    changed = {**slow.snaps[THIRD].sections, "ports.net": replace(net, out=net.out.replace("speed:200000", "speed:100000"))}
    slow.snaps[THIRD] = replace(slow.snaps[THIRD], sections=changed)
    slow.row = faulty.row(slow.facts.size_bytes, 4, 11.4)
    (bar,) = [f for f in result(slow.case()).findings if f.path == "allreduce.busbw"]
    assert bar.status is Status.PASS
    assert "spark03's" in bar.want
    assert B not in bar.want


def test_the_slowest_process_is_told_where_times_per_process_are_there() -> None:
    """nccl-tests -I: a row of times for each process, and the third is 20 % behind."""
    fleet = sparks(4)
    made = fleet.recording()
    for run in fleet.facts.runs:
        doc = json.loads(made.at(run, FIRST).sections["result.json"].out)
        for which in ("out_of_place", "in_place"):
            times = [17600.0, 17600.0, 21120.0, 17600.0]
            doc["results"][0][f"{which}_per_iter"] = {
                "min_us": 17600.0, "max_us": 21120.0, "avg_us": 18480.0, "p50_us": 17600.0, "p95_us": 21120.0, "p99_us": 21120.0,
                "stdev_us": 10.0, "cv_pct": 0.1, "times_us": [21120.0] * 2, "per_process_max_times_us": [[t, t] for t in times]}
        fleet.put(run, FIRST, "result.json", Captured(0, json.dumps(doc)))
    got = result(fleet.case())
    assert (got.evidence["slowest_process_host"], got.evidence["slowest_process_behind_share"]) == (THIRD, 0.2)
    assert got.status is Status.PASS
    assert "slowest_process_host" not in result(sparks(4).case()).evidence


def test_what_kept_it_from_being_run_is_said_once_and_is_no_verdict() -> None:
    case = sparks(2).case()
    busy = Recording("allreduce", facts={"refused": json.dumps({"code": "GPU_BUSY", "nodes": [SECOND]})},
                     error=Unreadable(Reason.BLOCKED, "GPUs are busy: spark02: python3 (4711)"))
    got = result(replace(case, recordings={"allreduce": busy}))
    assert (got.status, got.code) == (Status.UNKNOWN, Code.GPU_BUSY)
    assert [f.subject.nodes for f in got.findings] == [(SECOND,)]


def test_a_program_that_could_not_be_started_is_named_with_its_node() -> None:
    fleet = sparks(3)
    for run in fleet.facts.runs:
        fleet.put(run, SECOND, "rank[1]", Captured(127, "", "sh: 1: /opt/venv/bin/python: not found"))
        fleet.put(run, FIRST, "rank[0]", Captured(1, ""))
        fleet.put(run, FIRST, "result.json", None)
    got = result(fleet.case())
    assert (got.status, got.code) == (Status.FAIL, Code.LAUNCH_FAILED)
    first = next(f for f in got.findings if f.status is Status.FAIL)
    assert first.subject.nodes == (SECOND,)
    assert "not found" in first.got


def test_a_forced_run_and_a_smaller_buffer_are_something_to_look_at() -> None:
    fleet = sparks(2)
    fleet.put("look", FIRST, "run.apps", Captured(0, "4711, /usr/bin/python3\nend\n"))
    fleet.facts = replace(fleet.facts, asked_bytes=2**30, bound="spark01 has 3 GiB free")
    got = result(fleet.case())
    assert got.status is Status.WARN
    assert [f.code for f in worse(got)] == [Code.GPU_BUSY, Code.SIZE_REDUCED]


def test_what_is_left_at_the_very_end_fails() -> None:
    fleet = sparks(2)
    fleet.put("end", SECOND, "left", Captured(0, "process 4711 all_reduce_perf\nend\n"))
    got = result(fleet.case())
    assert (got.status, got.code) == (Status.FAIL, Code.LEFT_BEHIND)


def test_where_no_run_came_to_a_result_no_node_is_proven() -> None:
    """Started, idle, nothing left: all that stands for a node then."""
    case = sparks(2).case()
    assert allreduce.NOTHING not in list(allreduce.judge(case))
    broken = sparks(2)
    for run in broken.facts.runs:
        broken.put(run, "spark01", "rank[0]", Captured(137, ""))
        broken.put(run, "spark01", "result.json", None)
    assert allreduce.NOTHING in list(allreduce.judge(broken.case()))
    assert allreduce.NOTHING in list(allreduce.judge(replace(case, recordings={})))
