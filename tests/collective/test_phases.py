"""How far ranks came, and which of them hang in their start."""

from __future__ import annotations

import pytest

from fabrictool.collective.log import merge, parse
from fabrictool.collective.phases import Phase, phase
from fabrictool.collective.symptoms import diagnose
from fabrictool.collective.symptoms_judge import judge_symptoms
from fabrictool.model import Code, Finding, Status
from tests.collective.nccl_log import H20, SPARK, capture

ORDER = [SPARK.says(1, t) for t in SPARK.start(1)]


def until(needle: str) -> str:
    """Rank 1's log up to the line that holds `needle`, itself included."""
    lines = SPARK.rank(1)
    at = next(i for i, ln in enumerate(lines) if needle in ln)
    return "\n".join(lines[:at + 1]) + "\n"


def hangs(*texts: str, ended: bool = False) -> list[Finding]:
    log = merge(parse(t, source=f"log {i}") for i, t in enumerate(texts))
    return [f for f in judge_symptoms(diagnose(log), log, "x.symptoms", ended=ended) if f.bad]


@pytest.mark.parametrize(("needle", "want"), [
    ("Bootstrap: Using", Phase.LOADED), ("Using network", Phase.NETWORK), ("Init START", Phase.EXCHANGE), ("nNodes", Phase.TOPOLOGY),
    ("Init COMPLETE", Phase.READY), ("via NET/IB", Phase.CONNECT), ("Connected all", Phase.RUNNING), ("Destroy COMPLETE", Phase.DONE),
])
def test_phases(needle: str, want: Phase) -> None:
    (process,) = parse(until(needle)).processes
    assert phase(process) is want
    found = hangs(until(needle))
    assert [(f.status, f.code, f.subject.nodes) for f in found] == (
        [(Status.UNKNOWN, Code.INIT_HANG, ("node-b",))] if want.starting else [])
    if found:
        assert want.text in found[0].why
        assert "or the log was cut" in found[0].why
        assert "rank 1" in found[0].got or want < Phase.EXCHANGE


@pytest.mark.parametrize("needle", ["Init START", "nNodes", "via NET/IB"])
def test_a_rank_that_hangs_while_the_other_went_on(needle: str) -> None:
    """dgx-spark: the worker completed its start, the head stops while it connects."""
    (f,) = hangs(SPARK.log(0), until(needle))
    assert (f.status, f.code, f.subject.nodes) == (Status.FAIL, Code.INIT_HANG, ("node-b",))
    assert "or the log was cut" not in f.why
    assert f.path == "x.symptoms.start"
    assert hangs(SPARK.log(0), SPARK.log(1)) == []


def test_several_ranks_of_a_node_that_hang_are_one_finding() -> None:
    stopped = ["\n".join(H20.rank(r)[:at]) for r, at in ((8, 8), (9, 6), (10, 7))]
    (f,) = hangs(H20.log(*range(8)), *stopped)
    assert (f.status, f.subject.nodes, f.got.split(":")[0]) == (Status.FAIL, ("gpu02",), "ranks 8, 9, 10")


def test_a_run_that_was_over_hung() -> None:
    assert [f.status for f in hangs(until("Init START"), ended=True)] == [Status.FAIL]


def test_the_node_that_came_least_far_is_named_and_the_others_wait_for_it() -> None:
    zero = "\n".join(SPARK.rank(0)[:1 + next(i for i, ln in enumerate(SPARK.rank(0)) if "nNodes" in ln)]) + "\n"
    (f,) = hangs(zero, until("Init START"), ended=True)
    assert (f.status, f.subject.nodes) == (Status.FAIL, ("node-b",))
    assert "the others came further and wait: node-a" in f.why
    assert {g.subject.nodes for g in hangs(zero, until("Init START"))} == {("node-a",), ("node-b",)}  # other logs may have been cut


def test_nodes_that_came_equally_far_are_one_finding() -> None:
    (f,) = hangs(until("Init START").replace("node-b", "node-a").replace(" 1 ", " 0 "), until("Init START"), ended=True)
    assert (f.status, f.subject.nodes) == (Status.FAIL, ("node-a", "node-b"))
    assert "all 2 nodes came as far as this" in f.why


def test_one_text_that_was_cut_is_told_from_a_hang() -> None:
    """Interleaved ranks end at different lines: that alone is no hang."""
    parts = SPARK.interleaved().split("\n")
    at = max(i for i, ln in enumerate(parts) if "Init COMPLETE" in ln)
    assert {f.status for f in hangs("\n".join(parts[:at]))} == {Status.UNKNOWN}
    later = ("Init COMPLETE", "Channel", "Connected", "Destroy")
    waits = "\n".join(ln for ln in H20.interleaved().split("\n") if ":4103:" not in ln or not any(word in ln for word in later))
    (f,) = hangs(waits)
    assert (f.status, f.subject.nodes, "rank 3" in f.got) == (Status.FAIL, ("gpu01",), True)


def test_the_bootstrap_interface_that_may_be_the_reason() -> None:
    (f,) = hangs(until("Init START").replace("enp1s0f0np0", "docker0"))
    assert "docker0 192.0.2.2" in f.why
    assert "docker" not in hangs(until("Init START"))[0].why


def test_damaged_lines_make_no_hang() -> None:
    for text in ("P2P Chunksize set to 131072", "Bootstrap: Using eth0:192.0.2.1<0>", "Using network IB"):
        assert hangs(SPARK.log() + f"node-x:77:78 [0] NCCL INFO {text}\n") == []


@pytest.mark.parametrize("name", ["mpi_T.txt", "mpi_killed.txt", "nvlink.txt", "socket.txt"])
def test_captures_that_came_through_their_start(name: str) -> None:
    log = parse(capture(name))
    assert diagnose(log).stuck == ()
    cut = capture(name).split("Init COMPLETE")[0]
    assert {s.phase for s in diagnose(parse(cut)).stuck} == {Phase.TOPOLOGY}
