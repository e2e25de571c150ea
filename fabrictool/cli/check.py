"""`fabrictool check [NAMES]`: judge nodes by named checks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictool.cli import options
from fabrictool.exits import Exit, Stop
from fabrictool.report import Output

if TYPE_CHECKING:
    from fabrictool.check import Listed
    from fabrictool.cli.look import Look
    from fabrictool.snapshot import Recording

COMPARED = "allreduce"  # the check, and the recording, that a baseline is for


@click.command("check")
@click.argument("names", nargs=-1)
@options.common(options.inventory, options.limit, options.bundle, options.outputs, options.verbose, options.strict, options.ask_sudo,
                options.paths)
@click.option("--save", metavar="BUNDLE", default=None, type=click.Path(dir_okay=False, path_type=Path),
              help="Keep what was read and recorded in this bundle; --from BUNDLE judges it again.")
@click.option("--force", is_flag=True, help="Make traffic also where GPUs are busy. It will slow down whatever runs there.")
@click.option("--control", is_flag=True, help="Also a short run over TCP, pinned to a rail: RDMA counters must not move in it.")
@click.option("--baseline", metavar="BUNDLE", default=None, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Compare bandwidth with what --save kept in this bundle when the fleet was well.")
def command(names: tuple[str, ...], inventory: Path, limit: str, bundle: Path | None, outputs: tuple[Output, ...], verbose: int,
            strict: bool, ask_sudo: bool, paths: tuple[Path, ...], save: Path | None, force: bool, control: bool,
            baseline: Path | None) -> Exit:
    """Judge nodes by checks (all read-only ones without NAMES). Changes nothing.

    Checks that make traffic run only when they are named. `fabrictool explain NAME` prints a check's manual page. Exit 1: a check
    failed. 3: no verdict for something.
    """
    from fabrictool.catalog import choose, unknown_rooms
    from fabrictool.cli.look import look
    from fabrictool.cli.progress import wrote
    from fabrictool.cli.whatnext import next_line
    from fabrictool.ops.session import run_id
    from fabrictool.report import Mode, Show, emit
    from fabrictool.rooms import ROOMS
    from fabrictool.verdict import assemble

    every = choose(names, paths)
    checks = every if names else tuple(c for c in every if not c.check.probes)
    left = tuple(c for c in every if c not in checks)
    unknown_rooms(checks, [room.name for room in ROOMS])
    if control and not any("allreduce" in c.check.probes for c in checks):
        raise Stop(Exit.USAGE, "--control belongs to a check that makes traffic: name one of them, such as rdma_counters")
    if bundle is not None:
        _nothing_runs(save, force, control)
    if baseline is not None and not any(c.name == COMPARED for c in checks):
        raise Stop(Exit.USAGE, f"--baseline belongs to the check {COMPARED}: name it, or leave --baseline out")
    if save is not None:
        _writable(save)
    compared = _baselines(baseline) if baseline is not None else {}
    with ExitStack() as stack:
        begin = time.monotonic()
        got = look(stack, inventory, limit, bundle, ask_sudo, checks)
        found = got.findings()
        recordings = _recordings(got, checks, run_id(), force, control)
        got.baselines = compared
        judged = got.judged(checks, recordings)
        spent = {c.name: round(time.monotonic() - begin, 3) for c in checks}
        report = assemble(got.info("check", run_id()), {c.name: c.rooms for c in checks}, found, got.wants.values(), judged=judged,
                          durations_s=spent, notes=(*got.notes(), *_not_run(left)))
        if save is not None:
            _save(save, got, recordings.values())
        chosen = options.Selection(inventory, limit, ask_sudo)
        line = next_line(report, Mode.CHECK, chosen, offline=bundle is not None, names=names)
        code = emit(report, outputs, Show(Mode.CHECK, bool(verbose), strict, line))
        if save is not None:
            wrote(save, f"judge it again: {chosen.line('check', *names, '--from', str(save))}")
        return Exit.INTERRUPTED if got.interrupted else code


def _not_run(left: Iterable[Listed]) -> tuple[str, ...]:
    names = ", ".join(c.name for c in left)
    return (f"not run, because they make traffic or look into running jobs: {names}; name them to run them",) if names else ()


def _recordings(got: Look, checks: Iterable[Listed], run_id: str, force: bool, control: bool) -> Mapping[str, Recording]:
    """What the probes of `checks` gave: from the bundle, or by running them now on the nodes that could be read."""
    names = {probe for c in checks for probe in c.check.probes} | ({"control"} if control else set())
    if not names or got.conn is None or got.interrupted:
        return got.recordings
    from fabrictool.cli.progress import Shown
    from fabrictool.engine.probe import Asked, Stopped, Task, record

    try:
        return record(names, Task(got.conn, got.wants, got.snaps, Shown(), run_id, Asked(force)))
    except Stopped as stop:
        got.interrupted = True
        return stop.recordings


def _baselines(path: Path) -> Mapping[str, Recording]:
    from fabrictool.snapshot import bundle

    try:
        held = bundle.read(path)
    except bundle.BundleError as error:
        raise Stop(Exit.NO_VERDICT, f"--baseline {error}") from error
    if COMPARED not in held.recordings:
        raise Stop(Exit.USAGE, f"--baseline {path}: holds no recorded run of {COMPARED}; make one with "
                   "`fabrictool check allreduce --save FILE`")
    return held.recordings


def _nothing_runs(save: Path | None, force: bool, control: bool) -> None:
    """With --from nothing is run and nothing is read: what asks for that would be left undone without a word, and a bundle saved again
    would be one of today."""
    if force or control:
        raise Stop(Exit.USAGE, f"{'--control' if control else '--force'} is for a run on the nodes, and with --from nothing is run: leave"
                   " it out (a control that the bundle holds is judged anyhow)")
    if save is not None:
        raise Stop(Exit.USAGE, f"--save {save}: keeps what is read now, and with --from nothing is: copy the bundle itself")


def _writable(save: Path) -> None:
    if save.exists():
        raise Stop(Exit.USAGE, f"--save {save}: exists already; name another file, or remove it first")
    if not save.parent.is_dir():
        raise Stop(Exit.USAGE, f"--save {save}: there is no folder {save.parent}: make it first, or name another")


def _save(save: Path, got: Look, recordings: Iterable[Recording]) -> None:
    from fabrictool import __version__
    from fabrictool.snapshot import bundle

    try:
        bundle.write(save, got.snaps.values(), bundle.Meta(__version__, got.started, got.site.digest), recordings)
    except (OSError, bundle.BundleError) as error:
        raise Stop(Exit.FAILED, f"--save {save}: {error}") from error
