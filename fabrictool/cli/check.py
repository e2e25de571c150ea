"""`fabrictool check [NAMES]`: judge nodes by named checks."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import click

from fabrictool.cli import options
from fabrictool.exits import Exit
from fabrictool.report import Output


@click.command("check")
@click.argument("names", nargs=-1)
@options.common(options.inventory, options.limit, options.bundle, options.outputs, options.verbose, options.strict, options.ask_sudo,
                options.paths)
def command(names: tuple[str, ...], inventory: Path, limit: str, bundle: Path | None, outputs: tuple[Output, ...], verbose: int,
            strict: bool, ask_sudo: bool, paths: tuple[Path, ...]) -> Exit:
    """Judge nodes by checks (all read-only ones without NAMES). Changes nothing.

    `fabrictool explain NAME` prints a check's manual page. Exit 1: a check failed. 3: no verdict for something.
    """
    from fabrictool.catalog import choose, unknown_rooms
    from fabrictool.cli.look import look
    from fabrictool.cli.whatnext import next_line
    from fabrictool.ops.session import run_id
    from fabrictool.report import Mode, Show, emit
    from fabrictool.rooms import ROOMS
    from fabrictool.verdict import assemble

    checks = choose(names, paths)
    unknown_rooms(checks, [room.name for room in ROOMS])
    with ExitStack() as stack:
        begin = time.monotonic()
        got = look(stack, inventory, limit, bundle, ask_sudo)
        found = got.findings()
        spent = {c.name: round(time.monotonic() - begin, 3) for c in checks}
        report = assemble(got.info("check", run_id()), {c.name: c.rooms for c in checks}, found, got.wants.values(), durations_s=spent,
                          notes=got.notes())
        chosen = options.Selection(inventory, limit, ask_sudo)
        line = next_line(report, Mode.CHECK, chosen, offline=bundle is not None)
        code = emit(report, outputs, Show(Mode.CHECK, bool(verbose), strict, line))
        return Exit.INTERRUPTED if got.interrupted else code
