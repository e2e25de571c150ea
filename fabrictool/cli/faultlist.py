"""`fabrictool lab fault --list`: the faults there are, and what plan and check then say."""

from __future__ import annotations

import sys

from fabrictool.lab.fault_kit import Fault, Outcome
from fabrictool.lab.faults import FAULTS
from fabrictool.lab.seen import Traffic
from fabrictool.report.page import Page

HEAD = ("fault", "what happens", "where", "plan says", "check says")
WIDE = 132  # columns, from which on a row needs no second line of its own for what happens
LEGEND = (
    "where: functions of NODE (all, or the one of --function), one function (its first, or that of --function), the node; a rail or "
    "the fleet: on all nodes.",
    "ok: nothing is said, of a node that is as the spec wants it. to set: apply can set it. A check named with a colon makes traffic, or "
    "judges what was made: it runs when it is named.",
)
_WORDS = {1: "fail", 2: "to set", 3: "unknown"}


def _word(outcome: Outcome) -> str:
    return _WORDS.get(outcome.exit) or ("warn" if outcome.codes else "ok")


def _traffic(traffic: Traffic) -> str:
    """What checks say that make traffic, each with its first code. What is only blocked by another check's fault is left out."""
    told = ((check, said.told[0]) for check, said in traffic.items() if said.codes != ("BLOCKED",))
    return ", ".join(f"{check}: {one.status} {one.code}" for check, one in told)


def check_says(fault: Fault) -> str:
    """Of check without names, and then of the checks that have to be named."""
    outcome = fault.expect["check"]
    plain = " ".join((_word(outcome), *outcome.codes))
    traffic = _traffic(fault.traffic) if fault.traffic else ""
    return "; ".join(text for text in (plain, traffic) if text)


def rows() -> list[tuple[str, ...]]:
    """One for each fault, under HEAD."""
    return [(f.name, f.summary, str(f.scope), _word(f.expect["plan"]), check_says(f)) for f in FAULTS]


def show() -> None:
    """A table as wide as the terminal. A narrow one gets two lines a fault; a file or a pipe one, however long, so that it can be
    searched."""
    page, whole = Page(sys.stdout), not sys.stdout.isatty()
    if whole or page.width >= WIDE:
        page.table(HEAD, rows(), whole=whole)
    else:
        _narrow(page)
    page.line()
    for text in LEGEND:
        page.prose(text)


def _narrow(page: Page) -> None:
    name, where, plan = (max(len(HEAD[i]), *(len(r[i]) for r in rows())) + 2 for i in (0, 2, 3))
    page.line((f"{HEAD[0]:<{name}}{HEAD[2]:<{where}}{HEAD[3]:<{plan}}{HEAD[4]}", "bold"))
    for row in rows():
        page.field(f"{row[0]:<{name}}{row[2]:<{where}}{row[3]:<{plan - 1}}", row[4], indent=0)
        page.prose(row[1], indent=2, style="dim")
