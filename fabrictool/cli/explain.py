"""`fabrictool explain NAME`: the manual page of a check, the text of a code, or the exit codes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictool.cli import options
from fabrictool.exits import Exit, Stop

if TYPE_CHECKING:
    from fabrictool.report.page import Page


def _index(paths: tuple[Path, ...], page: Page) -> None:
    from fabrictool.catalog import checks
    from fabrictool.report.codes import texts

    page.line(("Checks", "bold"))
    for c in checks(paths):
        page.field(f"{c.name:<8}", c.title, indent=2)
    page.line()
    page.line(("Codes", "bold"))
    for code, text in texts().items():
        page.field(f"{code:<24}", re.split(r"[.:] ", text.why)[0].rstrip("."), indent=2)
    page.line()
    page.line("And: fabrictool explain exit")


def _text(name: str, paths: tuple[Path, ...]) -> str:
    from fabrictool.bundled import folder
    from fabrictool.catalog import checks, nearest
    from fabrictool.report.codes import texts

    found = {c.name: c for c in checks(paths)}
    if name in found:
        return f"{name}: {found[name].page}\n\nRun it: fabrictool check {name} -i INVENTORY"
    if name.isdigit() and int(name) not in tuple(Exit):
        raise Stop(Exit.USAGE, f"fabrictool never exits with {name}; {nearest(name, [str(int(e)) for e in Exit])}")
    if name.isdigit() or name.lower() in ("exit", "exits", "exit-codes"):
        return (folder("docs") / "exit-codes.md").read_text(encoding="utf-8").strip()
    codes = texts()
    if name.upper() in codes:
        text = codes[name.upper()]
        why = f"Why: {text.matters}\n\n" if text.matters != text.when else ""
        return f"{name.upper()}\n\nWhen: {text.when}\n\n{why}Fix: {text.fix}"
    known = list(codes) if name.isupper() or "_" in name else [*found, "exit"]
    raise Stop(Exit.USAGE, f"there is no check or code {name!r}; {nearest(name.upper() if '_' in name else name, known)}")


def _codes(form: str, page: Page) -> None:
    """Every code with when it is raised, why it matters and what to do; as JSON for runbooks and chat bots."""
    from fabrictool.report.codes import texts

    found = texts()
    if form == "json":
        rows = [{"code": c, "area": t.area, "when": t.when, "why": t.matters, "fix": t.fix} for c, t in found.items()]
        click.echo(json.dumps({"schema_version": "1", "codes": rows}, indent=2))
        return
    area = ""
    for code, text in found.items():
        if text.area != area:
            area = text.area
            page.line((area, "bold underline"))
            page.line()
        page.line((code, "bold"))
        page.field("when", text.when, indent=2)
        if text.matters != text.when:
            page.field("why", text.matters, indent=2)
        page.field("fix", text.fix, indent=2, style="green")
        page.line()


@click.command("explain")
@click.argument("name", required=False)
@click.option("--codes", is_flag=True, help="Every code: when it is raised, why it matters, what to do.")
@click.option("-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", help="With --codes: text or json.")
@options.paths
def command(name: str | None, codes: bool, form: str, paths: tuple[Path, ...]) -> Exit:
    """Print the manual page of a check (qos), the text of a code (QOS_TRUST), or the exit codes (exit, or a number).

    Without NAME: all there is. With --codes: the text of every code.
    """
    from fabrictool.report.page import Page

    if (name and codes) or (form != "text" and not codes):
        raise click.UsageError("explain NAME prints one page as text, explain --codes [-o json] all codes")
    page = Page(sys.stdout)
    if codes:
        _codes(form, page)
        return Exit.OK
    if name is None:
        _index(paths, page)
        return Exit.OK
    for at, paragraph in enumerate(_text(name, paths).split("\n\n")):
        if at:
            page.line()
        if paragraph.startswith("|"):
            _table(paragraph, page)
        elif paragraph.startswith("# "):
            page.line((paragraph.removeprefix("# "), "bold"))
        else:
            page.prose(" ".join(paragraph.split()))
    return Exit.OK


def _table(markdown: str, page: Page) -> None:
    """A table of a page of docs/, as columns."""
    head, _, *rows = ([cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in markdown.splitlines())
    page.table(head, rows)
