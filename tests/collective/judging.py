"""Judging one run in tests."""

from __future__ import annotations

from fabrictool.collective import tests_text
from fabrictool.collective.model import Asked, Ending, TestRun
from fabrictool.collective.result import judge
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from tests.collective.samples import MIB256

FLEET = Subject(SubjectKind.FLEET, ("spark01", "spark02", "spark03", "spark04"))
NODES = {name: Subject(SubjectKind.NODE, (name,)) for name in FLEET.nodes}
ASKED = Asked(MIB256, 4, 4)
ANYTHING = Asked()


def judged(run: TestRun | str, asked: Asked = ASKED, rc: int | None = 0, took_s: float | None = None) -> tuple[Finding, ...]:
    parsed = tests_text.parse(run) if isinstance(run, str) else run
    return tuple(judge(parsed, asked, Ending(rc, took_s, 60.0 if took_s is not None else None), FLEET, "allreduce.run1", NODES))


def bad(findings: tuple[Finding, ...]) -> list[tuple[Code, Status]]:
    return [(f.code, f.status) for f in findings if f.bad and f.code is not Code.BLOCKED]


def passes(findings: tuple[Finding, ...]) -> set[tuple[Code, str]]:
    return {(f.code, f.path) for f in findings if f.status is Status.PASS}


def at(findings: tuple[Finding, ...], what: str) -> Finding:
    found = [f for f in findings if f.path == f"allreduce.run1.{what}"]
    assert len(found) == 1, (what, found)
    return found[0]
