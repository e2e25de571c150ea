"""The exit codes of reports: the whole table of docs/exit-codes.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.exits import WORST_FIRST, Exit, worst
from fabrictool.model import Code, Report, Result, Run, Status
from fabrictool.report.exit import Mode, exit_of
from tests.report.reports import drifted, finding, plan

STEPS = (Run(("true",)),)
PASS = finding(status=Status.PASS)
SKIP = finding(status=Status.SKIP)
WARN = finding(status=Status.WARN)
UNKNOWN = finding(status=Status.UNKNOWN)
BUG = finding(code=Code.BUG, status=Status.UNKNOWN)
SETTABLE = finding(steps=STEPS)
BARE = finding()

TABLE = [  # findings, plan, check, apply
    ((PASS,), 0, 0, 0), ((SKIP,), 0, 0, 0), ((PASS, SKIP), 0, 0, 0), ((PASS, WARN), 0, 0, 0),
    ((PASS, SETTABLE), 2, 1, 1), ((SETTABLE, SETTABLE), 2, 1, 1), ((SETTABLE, WARN), 2, 1, 1),
    ((SETTABLE, BARE), 1, 1, 1), ((BARE,), 1, 1, 1), ((BARE, UNKNOWN), 1, 1, 1),
    ((SETTABLE, UNKNOWN), 3, 1, 1), ((PASS, UNKNOWN), 3, 3, 3), ((UNKNOWN, WARN), 3, 3, 3),
    ((BUG, PASS), 70, 70, 70), ((BUG, BARE), 70, 70, 70),
]


def _report(*findings: object) -> Report:
    return plan({"spark01": findings})  # type: ignore[dict-item]


def _exit(findings: tuple[object, ...], mode: Mode, strict: bool = False) -> Exit:
    report = _report()
    result = Result("qos", Status.PASS, "", findings)  # type: ignore[arg-type]
    result = replace(result, status=next(s for s in (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)
                                         if any(f.status is s for f in result.findings)))
    return exit_of(replace(report, results=(result,)), mode, strict)


@pytest.mark.parametrize(("findings", "on_plan", "on_check", "on_apply"), TABLE)
def test_table(findings: tuple[object, ...], on_plan: int, on_check: int, on_apply: int) -> None:
    assert _exit(findings, Mode.PLAN) == on_plan
    assert _exit(findings, Mode.CHECK) == on_check
    assert _exit(findings, Mode.APPLY) == on_apply


@pytest.mark.parametrize("mode", list(Mode))
def test_strict_makes_a_warning_fail_and_nothing_else(mode: Mode) -> None:
    assert _exit((PASS, WARN), mode, strict=True) == 1
    assert _exit((PASS, SKIP), mode, strict=True) == 0
    assert _exit((UNKNOWN,), mode, strict=True) == 3


def test_nothing_looked_at_is_no_verdict() -> None:
    assert exit_of(replace(_report(), results=()), Mode.PLAN) == 3


@pytest.mark.parametrize(("status", "code"), [(Status.FAIL, 1), (Status.UNKNOWN, 3), (Status.PASS, 0), (Status.SKIP, 0)])
def test_a_result_counts_without_findings_too(status: Status, code: int) -> None:
    assert exit_of(replace(_report(), results=(Result("x", status, "", ()),)), Mode.CHECK) == code


def test_the_drifted_fleet_is_1_and_without_its_odd_node_2() -> None:
    assert exit_of(plan(), Mode.PLAN) == 1
    equal = {n: f for n, f in drifted().items() if n != "spark04"}
    assert exit_of(plan(equal), Mode.PLAN) == 2


def test_worst_wins_in_the_documented_order() -> None:
    order = [130, 70, 78, 64, 1, 3, 2, 0]
    assert [int(e) for e in WORST_FIRST] == order
    for at, winner in enumerate(WORST_FIRST):
        assert worst(WORST_FIRST[at:]) is winner
