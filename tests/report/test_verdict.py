"""Assembling findings into results: evidence makes a pass, silence never does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrictool.check import Check, Listed
from fabrictool.model import Code, Evidence, Finding, Result, Said, Status, Subject, SubjectKind, Unproven
from fabrictool.prove import Case
from fabrictool.report.totals import rows
from fabrictool.verdict import assemble, each_room, judged, not_acted_on, reached
from tests.report.reports import INFO, finding, passing
from tests.specs import node_spec


def _unreached(node: str) -> Finding:
    return Finding(Code.UNREACHABLE, Subject(SubjectKind.NODE, (node,)), "reach.ssh", "", "no login", "a login", "no route",
                   Status.UNKNOWN)


def _one(by_node: dict[str, tuple[Finding, ...]], check: str = "qos") -> Result:
    report = assemble(INFO, each_room(("qos", "env")), by_node)
    return next(r for r in report.results if r.check == check)


def test_a_pass_needs_a_passing_finding_of_every_node() -> None:
    assert _one({"a": (passing("a", "qos.trust"),), "b": (passing("b", "qos.trust"),)}).status is Status.PASS
    silent = _one({"a": (passing("a", "qos.trust"),), "b": ()})
    assert silent.status is Status.UNKNOWN
    assert [(f.code, f.subject.nodes) for f in silent.findings if f.bad] == [(Code.NO_EVIDENCE, ("b",))]


def test_all_skip_is_skip_and_one_pass_beside_it_is_pass() -> None:
    skip = finding("a", status=Status.SKIP)
    assert _one({"a": (skip,)}).status is Status.SKIP
    assert _one({"a": (skip, passing("a", "qos.pfc"))}).status is Status.PASS


def test_the_worst_status_wins() -> None:
    fail, unknown, warn = finding("a"), finding("a", status=Status.UNKNOWN), finding("a", status=Status.WARN)
    good = passing("a", "qos.pfc")
    assert _one({"a": (good, warn)}).status is Status.WARN
    assert _one({"a": (good, warn, unknown)}).status is Status.UNKNOWN
    assert _one({"a": (good, warn, unknown, fail)}).status is Status.FAIL


def test_an_unreached_node_blocks_its_rooms_and_has_its_own_result_first() -> None:
    by_node = {"a": (passing("a", "qos.trust"), passing("a", "env.file")), "b": (_unreached("b"),)}
    report = assemble(INFO, each_room(("qos", "env")), by_node)
    assert [r.check for r in report.results] == ["reach", "qos", "env"]
    assert not reached(by_node["b"])
    assert reached(by_node["a"])
    assert report.results[0].code is Code.UNREACHABLE
    for result in report.results:
        assert result.status is Status.UNKNOWN
    assert [f.code for f in report.results[1].findings if f.bad] == [Code.BLOCKED]


def test_no_reach_result_where_every_node_was_reached() -> None:
    assert [r.check for r in assemble(INFO, each_room(("qos",)), {"a": (passing("a", "qos.trust"),)}).results] == ["qos"]


def test_a_check_composes_rooms_and_leaves_others_out() -> None:
    by_node = {"a": (passing("a", "qos.trust"), finding("a", path="link.mtu"), finding("a", path="env.file"))}
    report = assemble(INFO, {"fabric": ("qos", "link")}, by_node)
    assert [f.room for f in report.results[0].findings] == ["qos", "link"]
    assert report.results[0].evidence == {"compared": 2, "nodes": 1}
    assert any("switch" in u for u in report.results[0].unproven)


def test_sections_that_nothing_acts_on_are_named() -> None:
    with_them = node_spec(collective={"launcher": "direct"}, kernel_caches={
        "sglang": {"container": "sglang-*", "kinds": ["triton"], "host_path": "/nvme", "mounted_at": "/root/.cache"}})
    (note,) = not_acted_on([node_spec(), with_them])
    assert "SPEC_NOT_ACTED_ON" in note
    assert "NOT_ACTED_ON: kernel_caches: " in note
    assert "checkpoints" not in note
    assert not_acted_on([node_spec()]) == ()


def test_no_node_is_unknown() -> None:
    assert _one({}).status is Status.UNKNOWN


def _speaks(case: Case) -> Iterator[Said]:
    yield passing("a", "speaks.busbw")
    yield Evidence("busbw_gbytes_per_s", 22.9)
    yield Unproven("that b answers: it was not asked")


def test_a_judge_hands_over_numbers_and_what_it_did_not_show() -> None:
    said = judged(Listed("speaks", "", "", Check(judge=_speaks, unproven=("the switch",))), Case({"a": node_spec()}))
    (result,) = assemble(INFO, {"speaks": ()}, {"a": ()}, judged={"speaks": said}).results
    assert result.status is Status.PASS
    assert result.evidence == {"compared": 1, "nodes": 1, "busbw_gbytes_per_s": 22.9}
    assert result.unproven == ("the switch", "that b answers: it was not asked")


def test_a_judge_that_breaks_off_passes_nothing_and_hides_nothing() -> None:
    def breaks(case: Case) -> Iterator[Said]:
        yield passing("a", "breaks.first")
        yield finding("a", path="breaks.second")
        raise KeyError("x")

    said = judged(Listed("breaks", "", "", Check(judge=breaks)), Case({"a": node_spec()}))
    assert [f.status for f in said.findings] == [Status.PASS, Status.FAIL, Status.UNKNOWN]
    assert said.findings[-1].code is Code.BUG


@pytest.mark.parametrize("whole", [True, False])
def test_where_nothing_came_of_it_a_node_without_a_finding_is_not_ok(whole: bool) -> None:
    def stuck(case: Case) -> Iterator[Said]:
        yield passing("a", "stuck.start")
        yield finding("b", path="stuck.log")
        if not whole:
            yield Unproven("anything", of_any_node=True)

    check = Listed("stuck", "", "", Check(judge=stuck))
    report = assemble(INFO, {"stuck": ()}, {"a": (), "b": ()}, judged={"stuck": judged(check, Case({}))})
    words = {nodes: cells[0][0] for nodes, cells in rows(report)}
    assert words == {"a": "ok" if whole else "unproven", "b": "1 fail"}
