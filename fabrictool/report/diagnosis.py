"""A diagnosis for people: each piece of the input with its verdict, the lines that prove it, and what to do."""

from __future__ import annotations

import re
from typing import TextIO

from fabrictool.model import Code, Finding, Report, Result, Status
from fabrictool.report import totals
from fabrictool.report.clean import excerpt, scrubbed
from fabrictool.report.exit import exit_of
from fabrictool.report.fold import node_names
from fabrictool.report.page import Page
from fabrictool.report.show import Show

SIGN = {Status.PASS: "✓", Status.FAIL: "✗", Status.UNKNOWN: "?", Status.WARN: "!", Status.SKIP: "-"}
RANK = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)
# What is shown without -v: lines of proof, findings of one code, things that are well.
FEW, ALIKE, EVIDENCE = 4, 3, 8
LONG = 240  # characters of a line of proof
# What is no longer is said beside its line, where it is quicker to read; and by how much of it a line that is cut is known to say it.
SHORT, HEAD = 20, 60
_COUNT = re.compile(r" \((\d{1,9} lines)\)$")


def _once(got: str, lines: list[str]) -> tuple[bool, list[str]]:
    """Whether a line of proof holds all that was found; and the lines, without what `got` then says in full of a line that is cut."""
    said = " ".join(_COUNT.sub("", got).split())
    if len(said) <= SHORT:
        return False, lines
    if any(said in line for line in lines):
        return True, lines
    heads = [line.find(said[:HEAD]) for line in lines]
    return False, [f"{line[:at]}..." if at > 0 else line for line, at in zip(lines, heads, strict=True)]


def _said(page: Page, f: Finding, quoted: bool) -> None:
    """What was found and what should be; `quoted`: the first stands in the lines below."""
    got, want = scrubbed(f.got) or "(nothing)", scrubbed(f.want)
    count = _COUNT.search(got)
    if quoted:
        got = count[1] if count else ""
    if not want or want == got or f.status is Status.UNKNOWN:
        want = ""
    if got and want and len(got) + len(want) + 27 <= page.width:
        got, want = f"{got}  (should be: {want})", ""
    if got:
        page.field("got", got)
    if want:
        page.field("want", want)


def _finding(page: Page, f: Finding, show: Show) -> None:
    node = f.subject.nodes[0] if len(f.subject.nodes) == 1 else ""
    where = " ".join(w for w in (node, f.subject.place) if w)
    page.line((f"  {SIGN[f.status]} ", totals.STYLE[f.status]), (str(f.code), "bold"), f"  {where}" if where else "")
    shown = f.lines if show.verbose else f.lines[:FEW]
    quoted, rows = _once(scrubbed(f.got), [" ".join(excerpt(scrubbed(line), LONG).split()) for line in shown])
    _said(page, f, quoted)
    for at, row in enumerate(rows):
        page.field("seen" if at == 0 else "", row, style="cyan")
    if len(shown) < len(f.lines):
        page.line(" " * 12, (f"and {len(f.lines) - len(shown)} more lines", "dim"))
    if f.status is Status.PASS:
        return
    if f.why:
        page.field("why", scrubbed(f.why))
    if f.remedy:
        page.field("fix", scrubbed(f.remedy), style="green")


def _result(page: Page, result: Result, show: Show) -> None:
    where = str(result.evidence.get("where", ""))
    page.line((f"{SIGN[result.status]} {result.status:<7}  ", totals.STYLE[result.status]), (result.check, "bold"),
              f"  {result.summary}" if result.summary else "", (f"  {where}", "dim"))
    shown = sorted((f for f in result.findings if f.bad or show.verbose), key=lambda f: RANK.index(f.status))
    alike: dict[tuple[Status, Code], list[Finding]] = {}
    for f in shown:
        alike.setdefault((f.status, f.code), []).append(f)
    for (status, code), same in alike.items():
        for f in same if show.verbose else same[:ALIKE]:
            _finding(page, f, show)
        rest = [] if show.verbose else same[ALIKE:]
        if rest:
            nodes = node_names(n for f in rest for n in f.subject.nodes)
            page.line((f"  {SIGN[status]} ", totals.STYLE[status]), (str(code), "bold"), f"  {len(rest)} more, on {nodes} (-v shows all)")
    passed = tuple(dict.fromkeys(_evidence(f) for f in result.findings if f.status is Status.PASS))
    if not show.verbose and passed:
        more = f"; and {len(passed) - EVIDENCE} more (-v shows all)" if len(passed) > EVIDENCE else ""
        page.field("", scrubbed("; ".join(passed[:EVIDENCE])) + more, indent=5 if not shown else 0, style="dim")


def _evidence(f: Finding) -> str:
    """`trust: dscp`: what was looked at, and what it is."""
    return f.got if f.got[:1].isupper() or ":" in f.got or " " in f.got else f"{f.path.partition('.')[2]}: {f.got}"


def verdict_line(report: Report) -> str:
    """The whole diagnosis in one line."""
    found = [f for r in report.results for f in r.findings]
    fails = [f for f in found if f.status is Status.FAIL]
    unknown = [f for f in found if f.status is Status.UNKNOWN]
    warned = sum(1 for f in found if f.status is Status.WARN)
    parts = []
    if fails:
        codes = ", ".join(dict.fromkeys(str(f.code) for f in fails))
        parts.append(f"{len(fails)} fault{'s' * (len(fails) != 1)}: {codes}")
    if unknown:
        parts.append("nothing known found" if not fails and all(f.code is Code.NOTHING_KNOWN for f in unknown)
                     else f"{len(unknown)} without a verdict")
    if warned:
        parts.append(f"{warned} to look at")
    passed = sum(1 for f in found if f.status is Status.PASS)
    return "; ".join(parts) or f"no fault in what is shown ({passed} thing{'s' * (passed != 1)} looked at)"


def render(report: Report, stream: TextIO, show: Show) -> None:
    """Worst first."""
    page = Page(stream)
    pieces = sum(int(r.evidence.get("pieces", 1)) for r in report.results)
    page.line((f"{report.command}: {pieces} output{'s' * (pieces != 1)} recognised", "bold"), (f"  (run {report.run_id})", "dim"))
    page.line()
    ranked = sorted(report.results, key=lambda r: RANK.index(r.status))
    for at, result in enumerate(ranked):
        _result(page, result, show)
        if any(f.bad for f in result.findings) or show.verbose or at == len(ranked) - 1:
            page.line()
    for text in dict.fromkeys(text for r in ranked for text in r.unproven):
        page.field("note", f"not shown: {text}", indent=0, style="dim")
    for note in report.notes:
        page.field("note", note, indent=0, style="dim")
    code = exit_of(report, show.mode, show.strict)
    page.prose(f"{verdict_line(report)} (exit {int(code)})", style="bold")
    if show.next_line:
        page.line(("next: ", "dim"), show.next_line)
