"""`fabrictool drift`: plan, for a schedule."""

from __future__ import annotations

from pathlib import Path

import click

from fabrictool.cli import options
from fabrictool.cli.plan import differences
from fabrictool.exits import Exit
from fabrictool.report import Output


@click.command("drift")
@options.common(options.inventory, options.limit, options.bundle, options.outputs, options.verbose, options.strict, options.ask_sudo)
def command(inventory: Path, limit: str, bundle: Path | None, outputs: tuple[Output, ...], verbose: int, strict: bool,
            ask_sudo: bool) -> Exit:
    """Say whether nodes still are as the spec says. Changes nothing.

    Exit 0: no drift. 2: drift that apply can set back. 1: drift that it cannot. 3: no verdict for something.
    """
    return differences("drift", inventory, limit, bundle, outputs, verbose, strict, ask_sudo)
