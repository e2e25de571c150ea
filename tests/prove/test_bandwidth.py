"""The gate on bandwidth, and the fleet's own baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.model import Code, Evidence, Finding, Reason, Said, Status, Unreadable
from fabrictool.prove import allreduce
from fabrictool.snapshot import Recording
from tests.prove import faulty
from tests.prove.fleets import h20s, sparks
from tests.prove.recordings import Fleet


def said(fleet: Fleet, baseline: Recording | None = None) -> list[Said]:
    return list(allreduce.judge(replace(fleet.case(), baselines={"allreduce": baseline} if baseline else {})))


def about(found: list[Said], path: str) -> list[Finding]:
    return [f for f in found if isinstance(f, Finding) and f.path == path]


def numbers(found: list[Said]) -> dict[str, str | int | float]:
    return {e.key: e.value for e in found if isinstance(e, Evidence)}


def figures(fleet: Fleet, *busbw: float) -> Fleet:
    for run, figure in zip(fleet.facts.runs, busbw, strict=True):
        fleet.rows[run] = faulty.row(fleet.facts.size_bytes, fleet.facts.ranks, figure)
    return fleet


def test_the_median_of_the_runs_is_gated_and_all_are_shown() -> None:
    found = said(figures(sparks(4), 20.0, 22.5, 21.4))
    (gate,) = about(found, "allreduce.busbw")
    assert (gate.status, gate.got) == (Status.PASS, "21.40 GB/s (median of 3 runs, 20.00..22.50)")
    assert gate.want == "at least 21.25 GB/s: 0.85 of 25.0 GB/s (1 port, 2 rails)"
    assert {k: v for k, v in numbers(found).items() if k.startswith("busbw_m")} == {
        "busbw_min_gbytes_per_s": 20.0, "busbw_max_gbytes_per_s": 22.5}
    (gate,) = about(said(figures(sparks(4), 20.0, 22.5, 21.2)), "allreduce.busbw")
    assert (gate.code, gate.status) == (Code.LOW_BUSBW, Status.FAIL)


@pytest.mark.parametrize(("busbw", "words"), [(11.4, "one rail alone"), (4.0, "TCP gives about this much"), (16.0, "neither TCP nor")])
def test_a_band_explains(busbw: float, words: str) -> None:
    (gate,) = about(said(faulty.slow(sparks(4), busbw)), "allreduce.busbw")
    assert gate.status is Status.FAIL
    assert words in gate.why


def test_a_band_decides_nothing() -> None:
    """What TCP and one rail give fail by the bar alone, and only with the codes of a low bandwidth; a good figure passes nothing."""
    for busbw in (11.4, 4.0):
        assert [f.code for f in said(faulty.slow(sparks(4), busbw)) if isinstance(f, Finding) and f.bad] == [Code.LOW_BUSBW]
    assert {f.code for f in said(faulty.fallback(sparks(4))) if isinstance(f, Finding) and f.bad} == {Code.TCP_FALLBACK, Code.COUNTERS_FLAT}


def test_the_share_is_the_specs() -> None:
    strict = {"launcher": "direct", "min_share_of_line_rate": 0.95}
    assert about(said(sparks(4, collective=strict)), "allreduce.busbw")[0].status is Status.FAIL
    low = {"launcher": "direct", "min_share_of_line_rate": 0.4}
    assert about(said(faulty.slow(sparks(4, collective=low), 11.4)), "allreduce.busbw")[0].status is Status.PASS


def test_a_run_without_a_figure_leaves_no_verdict_or_has_failed() -> None:
    fleet = sparks(4)
    fleet.put("run2", "spark01", "rank[0]", None)
    assert [f.status for f in about(said(fleet), "allreduce.busbw")] == [Status.UNKNOWN]
    assert [f.status for f in about(said(faulty.died(sparks(4), 2)), "allreduce.busbw")] == [Status.SKIP]


def test_worse_than_the_fleets_own_baseline() -> None:
    then = sparks(4).recording()  # 22.88
    (found,) = about(said(faulty.slow(sparks(4), 21.6), then), "allreduce.baseline")
    assert (found.code, found.status) == (Code.BASELINE_LOW, Status.WARN)
    assert "21.74 GB/s: 0.95 of the baseline's 22.88" in found.want
    good = said(faulty.slow(sparks(4), 21.8), then)
    assert about(good, "allreduce.baseline")[0].status is Status.PASS
    assert numbers(good)["baseline_busbw_gbytes_per_s"] == 22.88
    assert about(said(sparks(4)), "allreduce.baseline") == []


def test_without_a_figure_the_baseline_names_what_stands_in_the_way() -> None:
    then = sparks(4).recording()
    (found,) = about(said(faulty.died(sparks(4), 2), then), "allreduce.baseline")
    assert (found.code, found.status) == (Code.BLOCKED, Status.UNKNOWN)
    assert found.why == "run1 failed (RANK_DIED), so there is no figure to compare"
    assert found.remedy == "mend RANK_DIED, which is told above (`fabrictool explain RANK_DIED`), then run again"
    lost = sparks(4)
    for run in lost.facts.runs:
        lost.put(run, "spark01", "rank[0]", None)
    (found,) = about(said(lost, then), "allreduce.baseline")
    assert found.why.startswith("run1 gave no figure to compare: ")
    assert "run1" in found.remedy


def test_a_baseline_that_cannot_be_compared_with_is_unknown() -> None:
    unlike = {
        "nodes": sparks(3).recording(), "h20": h20s().recording(), "error": Recording("allreduce", error=Unreadable(Reason.FAILED, "x")),
        "nothing": Recording("allreduce"), "broken": faulty.died(sparks(4), 2).recording()}
    size = sparks(4)
    size.facts = replace(size.facts, size_bytes=2**30)
    tree = sparks(4)
    tree.facts = replace(tree.facts, algorithm="")
    for then in (*unlike.values(), size.recording(), tree.recording()):
        (found,) = about(said(sparks(4), then), "allreduce.baseline")
        assert found.status is Status.UNKNOWN
        assert found.why
