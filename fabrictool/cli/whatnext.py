"""The next command to type, as every report ends with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabrictool.cli.options import Selection
from fabrictool.model import Code, Report, Risk, Status
from fabrictool.report import Mode


def next_line(report: Report, mode: Mode, selection: Selection, offline: bool = False, names: Sequence[str] = ()) -> str:
    """One line to copy. `offline`: judged from a bundle, so the nodes themselves come next. `names`: the checks that were asked for.

    Where a person has to act first, it is the page that says how, and what to run after that."""
    def again(chosen: Selection) -> str:
        return chosen.line("check", *names) if mode is Mode.CHECK else chosen.line("plan")

    found = [f for r in report.results for f in r.findings]
    fails = [f for f in found if f.status is Status.FAIL]
    unknown = [f for f in found if f.status is Status.UNKNOWN]
    settable = [f for f in fails if f.steps]
    if offline and (fails or unknown):
        return f"{again(selection)}    # on the nodes as they are now"
    if settable and mode is Mode.PLAN:
        flaps = any(f.risk is Risk.FLAP for f in settable)
        line = selection.line("apply")
        return f"{line}    # asks first; some steps take a link down for a moment" if flaps else f"{line}    # asks first"
    if settable and mode is Mode.APPLY and all(f.risk is Risk.FLAP for f in settable):
        return f"{selection.line('apply', '--allow', 'flap')}    # {len(settable)} left out: they take a link down for a moment"
    if settable and mode is Mode.CHECK:
        return selection.line("plan")
    if any(f.code is Code.NEEDS_ROOT for f in unknown) and not selection.ask_sudo:
        return again(Selection(selection.inventory, selection.limit, True)) + "    # asks for the sudo password"
    if selection.limit and not fails and any(f.code is Code.SINGLE_NODE for f in unknown):  # the same selection would say the same again
        return f"{again(replace(selection, limit=''))}    # all nodes; or -l with two at least"
    worst = fails or unknown
    if worst:
        return f"fabrictool explain {worst[0].code}    # then: {again(selection)}"
    return selection.line("check") if mode is not Mode.CHECK else selection.line("snapshot", "-o", "bundle.tar.gz")
