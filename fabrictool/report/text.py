"""The report for people: what differs, what would be done about it, what could not be seen, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from fabrictool.model import Finding, Report, Result, Risk, Run, Status, WriteFile
from fabrictool.report import diagnosis, files, fold, totals
from fabrictool.report.clean import argv_line, excerpt, scrubbed, step_line
from fabrictool.report.exit import Mode, exit_of
from fabrictool.report.numbers import spell
from fabrictool.report.page import Page
from fabrictool.report.show import Show
from fabrictool.verdict import COUNTS

FLAP = "the link goes down and up, or its channels are re-opened: RDMA connections on it break"
_SIGN = {Status.PASS: "✓", Status.FAIL: "✗", Status.UNKNOWN: "?", Status.WARN: "!", Status.SKIP: "-"}
_NOTHING = frozenset({"", "absent", "none", "unset", "not set", "missing", "no", "off"})


def sign(f: Finding) -> tuple[str, str]:
    """The sign and the word of a finding. `+ ~ -` stand only before what apply sets."""
    if f.status is Status.FAIL and f.steps:
        new = all(isinstance(s, WriteFile) and not s.before for s in f.steps)
        if new or (f.got.lower() in _NOTHING and f.want.lower() not in _NOTHING):
            return "+", "add"
        if f.want.lower() in _NOTHING and f.got.lower() not in _NOTHING:
            return "-", "remove"
        return "~", "change"
    return _SIGN[f.status], str(f.status)


def _steps(page: Page, folded: fold.Folded, show: Show, bodies: files.Bodies) -> None:
    for step in folded.finding.steps:
        page.line("      ", (f"{'write' if isinstance(step, WriteFile) else 'run':<5} ", "dim"),
                  step_line(step).removeprefix("write "))
        if isinstance(step, WriteFile):
            rows = [row[:1] + scrubbed(row[1:]) for row in files.change(step, show.texts)]
            again = "" if show.verbose else bodies.seen(f"{step.path} of {fold.node_names(folded.nodes)}", rows)
            if again:
                page.prose(again, indent=8, style="dim")
                continue
            for row in rows if show.verbose else files.cut(rows, new=not step.before):
                page.line("        ", (row, {"+": "green", "-": "red"}.get(row[:1], "dim")))
        elif isinstance(step, Run) and step.undo and show.verbose:
            page.line("      ", ("undo  ", "dim"), argv_line(step.undo))


def _finding(page: Page, folded: fold.Folded, show: Show, bodies: files.Bodies) -> None:
    f = folded.finding
    mark, word = sign(f)
    head = f"  {mark} {word:<7} "
    got, want = scrubbed(f.got), scrubbed(f.want)
    if f.status is Status.UNKNOWN:
        page.line((head, totals.STYLE[f.status]), (str(f.code), "bold"), f"  {excerpt(got, 120)}")
        page.field("what", ", ".join(folded.paths))
    else:
        said = got if got == want or f.status is Status.SKIP else f"{got or '(nothing)'} -> {want or '(nothing)'}"
        line = f"{f.code}  {said}"
        if len(head) + len(line) <= page.width and "\n" not in line:
            page.line((head, totals.STYLE[f.status]), (str(f.code), "bold"), f"  {said}")
        else:
            page.line((head, totals.STYLE[f.status]), (str(f.code), "bold"))
            page.field("got", got or "(nothing)")
            page.field("want", want or "(nothing)")
        if show.verbose:
            page.field("what", ", ".join(folded.paths))
    if f.status is Status.PASS:
        return
    if f.why:
        page.field("why", scrubbed(f.why))
    if f.risk is Risk.FLAP:
        page.field("risk", f"flap: {FLAP}", style="magenta")
    _steps(page, folded, show, bodies)
    if f.remedy:
        page.field("fix", scrubbed(f.remedy))


def _shown(result: Result, report: Report, show: Show) -> Sequence[Finding]:
    lost = fold.unreached(report)
    wanted = [f for f in result.findings if show.verbose or f.bad]
    return [f for f in wanted if show.verbose or not fold.said_by_reach(f, lost)]


def _result(page: Page, result: Result, report: Report, show: Show, bodies: files.Bodies) -> bool:
    """Whether anything was printed under the result's own line."""
    shown = _shown(result, report, show)
    if show.mode is not Mode.CHECK and not shown:
        return False
    head = f"{_SIGN[result.status]} {result.status:<7}  {result.check:<8}  "
    page.line((head, totals.STYLE[result.status]), result.summary)
    for where, members in fold.groups(fold.fold(shown)):
        page.line("  ", (where, "bold"))
        for folded in members:
            _finding(page, folded, show, bodies)
    numbers = {k: v for k, v in result.evidence.items() if show.verbose or (show.mode is Mode.CHECK and k not in COUNTS)}
    if numbers:
        page.field("seen", scrubbed(", ".join(spell(k, v) for k, v in numbers.items())), indent=2)
    if result.status is not Status.SKIP and (show.verbose or show.mode is Mode.CHECK):
        for text in result.unproven:
            page.field("note", f"not proven: {text}", indent=2, style="dim")
    if shown:
        page.line()
    return True


def verdict_line(report: Report, mode: Mode) -> str:
    """The whole report in one line."""
    found = [f for r in report.results for f in r.findings]
    fails = [f for f in found if f.status is Status.FAIL]
    nodes = fold.node_names(n for n in report.nodes if any(n in (*f.subject.nodes, f.subject.peer) for f in fails))
    bare = sum(1 for f in fails if not f.steps)
    unknown = sum(1 for f in found if f.status is Status.UNKNOWN)
    warn = sum(1 for f in found if f.status is Status.WARN)
    if not report.results or not found:
        return "no verdict: nothing was looked at"
    parts = []
    if fails:
        left = "left after apply" if mode is Mode.APPLY else "differ from the spec"
        settable = f"{len(fails)} {left} on {nodes}: {len(fails) - bare} can be set by apply, {bare} cannot"
        parts.append(f"{len(fails)} failed on {nodes}" if mode is Mode.CHECK and bare == len(fails) else settable)
    if unknown:
        parts.append(f"{unknown} without a verdict")
    if warn:
        parts.append(f"{warn} to look at")
    if parts:
        return "; ".join(parts)
    compared = sum(1 for f in found if f.status is Status.PASS)
    if not compared:
        return "the spec asks for nothing that was looked at"
    what = "all as the spec says" if mode is not Mode.CHECK else "all checks pass"
    return f"{what}: {compared} comparison{'' if compared == 1 else 's'} on {len(report.nodes)} node{'' if len(report.nodes) == 1 else 's'}"


def render(report: Report, stream: TextIO, show: Show) -> None:
    """Write the report to `stream`. Plan, drift and apply show what is not as wanted; check names every check."""
    if show.mode is Mode.DIAGNOSE:
        diagnosis.render(report, stream, show)
        return
    page = Page(stream)
    names = fold.node_names(report.nodes) if report.nodes else "no nodes"
    page.line((f"{report.command}: {names}", "bold"), (f"  (run {report.run_id}, {report.started})", "dim"))
    if report.simulated:
        page.line(("simulated: a lab with stand-ins, not hardware", "bold magenta"))
    page.line()
    order = sorted(report.results, key=lambda r: min((fold.rank(f) for f in r.findings), default=(9, 9)))
    bodies = files.Bodies()
    printed = [_result(page, r, report, show, bodies) for r in order]
    if show.mode is Mode.CHECK and any(printed) and not _shown(order[-1], report, show):  # else there is one already
        page.line()
    totals.show(report, page)
    page.line()
    for note in report.notes:
        page.field("note", note, indent=0)
    code = exit_of(report, show.mode, show.strict)
    page.prose(f"{verdict_line(report, show.mode)} (exit {int(code)})", style="bold")
    if show.next_line:
        page.line(("next: ", "dim"), show.next_line)
