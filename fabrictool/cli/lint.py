"""`fabrictool lint`: every problem of a spec, at its place."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fabrictool.cli import options
from fabrictool.exits import Exit
from fabrictool.spec.problems import Problem, SpecError, count, errors, render
from fabrictool.spec.resolve import Examined, examine

SCHEMA_VERSION = 1


@click.command("lint")
@options.inventory
@click.option("--strict", is_flag=True, help="Warnings count as errors (exit 78).")
@click.option("-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", help="text, or json for programs.")
def command(inventory: Path, strict: bool, form: str) -> Exit:
    """Check a spec and name every problem with file:line:column. Nothing touches the network.

    Exit 0: it can be used. 78: it cannot (with --strict: nor with warnings).
    """
    try:
        seen = examine(inventory)
    except SpecError as e:
        seen = Examined(None, e.problems)
    bad = seen.problems if strict else errors(seen.problems)
    click.echo(as_json(seen) if form == "json" else as_text(seen))
    return Exit.SPEC if bad or seen.site is None else Exit.OK


def as_text(seen: Examined) -> str:
    """The problems, then what the site is."""
    if seen.site is None:
        return render(seen.problems)
    site = seen.site
    groups = f"{len(site.groups)} group{'s' * (len(site.groups) != 1)}"
    what = f"{site.path}: site {site.name}, {len(site.nodes)} nodes in {groups}: {count(seen.problems)}"
    return "\n".join([*(p.text for p in seen.problems), what])


def as_json(seen: Examined) -> str:
    """`{schema_version, usable, site, nodes, problems[{file, line, col, severity, what, why, do}]}`; line 0 = the whole file."""
    site = seen.site
    return json.dumps({"schema_version": SCHEMA_VERSION, "usable": site is not None, "site": site.name if site else None,
                       "nodes": list(site.names) if site else [], "problems": [_json(p) for p in seen.problems]}, indent=2)


def _json(p: Problem) -> dict[str, str | int]:
    return {"file": p.file, "line": p.line, "col": p.col, "severity": str(p.severity), "what": p.what, "why": p.why, "do": p.do}
