"""The last table: nodes against checks, equal nodes folded into one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fabrictool.model import Finding, Report, Status
from fabrictool.report.fold import node_names
from fabrictool.report.page import Page
from fabrictool.verdict import worst_status

STYLE: Mapping[Status, str] = {Status.PASS: "green", Status.FAIL: "bold red", Status.UNKNOWN: "yellow",
                               Status.WARN: "yellow", Status.SKIP: "dim"}


def cell(findings: Sequence[Finding], proves: bool = True) -> tuple[str, Status]:
    """What one check says of one node, in a word and a number. `proves`: whether a node against which nothing stands is well by it."""
    if not findings:
        return "-", Status.SKIP
    status = worst_status(f.status for f in findings)
    if status is Status.PASS and not proves:
        return "unproven", Status.UNKNOWN
    count = Counter(f.status for f in findings)
    bare = sum(1 for f in findings if f.status is Status.FAIL and not f.steps)
    words = {Status.PASS: "ok", Status.SKIP: "skip", Status.WARN: f"{count[Status.WARN]} warn",
             Status.UNKNOWN: f"{count[Status.UNKNOWN]} unknown",
             Status.FAIL: f"{bare} fail" if bare else f"{count[Status.FAIL]} to set"}
    return words[status], status


def rows(report: Report) -> tuple[tuple[str, tuple[tuple[str, Status], ...]], ...]:
    """(folded nodes, one cell a result), worst nodes last as they stand next to the verdict; equal nodes in one row."""
    by_node: dict[str, list[list[Finding]]] = {n: [[] for _ in report.results] for n in report.nodes}
    for at, result in enumerate(report.results):
        for f in result.findings:
            for node in dict.fromkeys((*f.subject.nodes, f.subject.peer)):  # a pair is about both its ends
                if node in by_node:
                    by_node[node][at].append(f)
    folded: dict[tuple[tuple[str, Status], ...], list[str]] = {}
    for node, lists in by_node.items():
        cells = tuple(cell(fs, r.proves_nodes) for fs, r in zip(lists, report.results, strict=True))
        folded.setdefault(cells, []).append(node)
    return tuple((node_names(nodes), cells) for cells, nodes in folded.items())


def show(report: Report, page: Page) -> None:
    """The table, or one line a cell that is not ok where the table is wider than the page."""
    table = rows(report)
    if not table:
        return
    heads = [r.check for r in report.results]
    first = max(5, *(len(name) for name, _ in table))
    widths = [max(len(h), *(len(cells[i][0]) for _, cells in table)) for i, h in enumerate(heads)]
    if first + sum(w + 2 for w in widths) > page.width:
        for name, cells in table:
            page.field(name, "; ".join(f"{h} {c[0]}" for h, c in zip(heads, cells, strict=True)), indent=0)
        return
    page.line((f"{'nodes':<{first}}" + "".join(f"  {h:<{w}}" for h, w in zip(heads, widths, strict=True)), "bold"))
    for name, cells in table:
        page.line(f"{name:<{first}}", *((f"  {c[0]:<{w}}", STYLE[c[1]]) for c, w in zip(cells, widths, strict=True)))
