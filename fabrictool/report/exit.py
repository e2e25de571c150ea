"""The exit status of a report: the rule that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from fabrictool.exits import Exit, worst
from fabrictool.model import Code, Finding, Report, Status


class Mode(StrEnum):
    """What the report is for. PLAN is drift too; APPLY is what is left after apply; DIAGNOSE is about pasted text, and no node."""

    PLAN = "plan"
    CHECK = "check"
    APPLY = "apply"
    DIAGNOSE = "diagnose"


def _of(finding: Finding, mode: Mode, strict: bool) -> Exit:
    if finding.code is Code.BUG:
        return Exit.BUG
    if finding.status is Status.FAIL:
        return Exit.DRIFT if mode is Mode.PLAN and finding.steps else Exit.FAILED
    if finding.status is Status.UNKNOWN:
        return Exit.NO_VERDICT
    return Exit.FAILED if finding.status is Status.WARN and strict else Exit.OK


def _all(report: Report, mode: Mode, strict: bool) -> Iterator[Exit]:
    if not report.results:
        yield Exit.NO_VERDICT  # nothing was looked at
    for result in report.results:
        yield from (_of(f, mode, strict) for f in result.findings)
        if not any(f.status is result.status for f in result.findings):  # a status without its finding counts by itself
            yield {Status.FAIL: Exit.FAILED, Status.UNKNOWN: Exit.NO_VERDICT}.get(result.status, Exit.OK)


def exit_of(report: Report, mode: Mode, strict: bool = False) -> Exit:
    """PLAN: 2 when every failing finding has steps, 1 when one has none. All others: 1 for any failing finding.

    Always: 3 when something is unknown, 70 when a room raised, 0 for warnings (`strict`: 1), and the worst of them wins.
    """
    return worst(_all(report, mode, strict))
