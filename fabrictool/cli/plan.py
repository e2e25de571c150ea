"""`fabrictool plan`: what differs from the spec, and the steps that would set it. Never runs an operation."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from fabrictool.cli import options
from fabrictool.exits import Exit
from fabrictool.report import Output


def differences(name: str, inventory: Path, limit: str, bundle: Path | None, outputs: tuple[Output, ...], verbose: int, strict: bool,
                ask_sudo: bool) -> Exit:
    """plan and drift: read, judge, show."""
    from fabrictool.cli.look import look, room_report
    from fabrictool.cli.whatnext import next_line
    from fabrictool.ops.session import run_id
    from fabrictool.report import Mode, Show, emit
    from fabrictool.report.files import texts_by_digest

    with ExitStack() as stack:
        got = look(stack, inventory, limit, bundle, ask_sudo)
        found = got.findings()
        report = room_report(got, name, run_id(), found)
        chosen = options.Selection(inventory, limit, ask_sudo)
        line = next_line(report, Mode.PLAN, chosen, offline=bundle is not None)
        show = Show(Mode.PLAN, bool(verbose), strict, line, texts_by_digest(got.snaps.values()))
        code = emit(report, outputs, show)
        return Exit.INTERRUPTED if got.interrupted else code


@click.command("plan")
@options.common(options.inventory, options.limit, options.bundle, options.outputs, options.verbose, options.strict, options.ask_sudo)
def command(inventory: Path, limit: str, bundle: Path | None, outputs: tuple[Output, ...], verbose: int, strict: bool,
            ask_sudo: bool) -> Exit:
    """Show what differs from the spec, and the exact steps that `apply` would run.

    Reads every node once and changes nothing. Exit 0: nothing to do. 2: nodes differ, apply can set all of it. 1: something differs that
    apply cannot set. 3: something could not be read.
    """
    return differences("plan", inventory, limit, bundle, outputs, verbose, strict, ask_sudo)
