"""`fabrictool apply`: show the plan, ask, set it, read it back, report what is left."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictool.cli import options
from fabrictool.exits import Exit, Stop
from fabrictool.report import Output

if TYPE_CHECKING:
    from fabrictool.cli.look import Look
    from fabrictool.engine.apply import Applied
    from fabrictool.model import Finding

FOUND = Mapping[str, Sequence["Finding"]]


def _consent(found: FOUND, yes: bool, allow: Sequence[str]) -> tuple[bool, bool]:
    """(go, flap allowed). -y alone never covers a link flap."""
    from fabrictool.engine.apply import flaps
    from fabrictool.report.fold import node_names

    flappy = [n for n, f in found.items() if flaps(f)]
    if yes:
        if flappy and "flap" not in allow:
            click.echo(f"link flaps on {node_names(flappy)} are left out: -y alone does not cover them (-y --allow flap does)", err=True)
        return True, "flap" in allow
    if not click.confirm("Run these steps?", default=False, err=True):
        return False, False
    if not flappy or "flap" in allow:
        return True, True
    return True, click.confirm(f"Links on {node_names(flappy)} go down for a moment, node by node. Do that too?", default=False, err=True)


def _applied_findings(applied: Applied, nodes: Sequence[str], interrupted: bool) -> dict[str, tuple[Finding, ...]]:
    """What apply itself has to report, one or more findings a node."""
    from fabrictool.model import Code, Finding, Status, Subject, SubjectKind

    out: dict[str, tuple[Finding, ...]] = {}
    for name in nodes:
        own = tuple(p for p in applied.problems if name in p.subject.nodes)
        steps = sum(len(f.steps) for f in applied.done.get(name, ()))
        if not own:
            subject = Subject(SubjectKind.NODE, (name,))
            status = Status.PASS if steps else Status.SKIP
            why = "" if steps else "nothing to run"
            own = (Finding(Code.APPLY_FAILED, subject, "apply.run", "", f"{steps} steps run", "all steps run", why, status),)
            if interrupted and name in applied.done:
                got = f"{steps} steps begun" if steps else "not touched"
                own = (Finding(Code.INTERRUPTED, subject, "apply.run", "", got, "all steps run", "interrupted", Status.UNKNOWN,
                               remedy="run plan: it shows what is left to do"),)
        out[name] = own
    return out


def _report_left(got: Look, applied: Applied, found: FOUND, outputs: Sequence[Output], selection: options.Selection, verbose: int,
                 strict: bool) -> Exit:
    from fabrictool import rooms
    from fabrictool.cli.whatnext import next_line
    from fabrictool.ops.session import run_id
    from fabrictool.report import Mode, Show, emit
    from fabrictool.report.files import texts_by_digest
    from fabrictool.verdict import assemble

    own = _applied_findings(applied, list(got.wants), got.interrupted)
    both = {n: (*own[n], *found[n]) for n in got.wants}
    checks = {"apply": ("apply",)} | {room.name: (room.name,) for room in rooms.ROOMS}
    notes = [*(f"unproven: {u}" for u in applied.unproven), *([applied.stopped] if applied.stopped else []), *got.notes()]
    report = assemble(got.info("apply", run_id()), checks, both, got.wants.values(), notes=notes)
    line = next_line(report, Mode.APPLY, selection)
    show = Show(Mode.APPLY, bool(verbose), strict, line, texts_by_digest(got.snaps.values()))
    return emit(report, outputs, show)


@click.command("apply")
@options.common(options.inventory, options.limit, options.outputs, options.verbose, options.strict, options.ask_sudo, options.yes,
                options.allow)
@click.option("--deploy", "file", default=None, metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The deploy file to run instead of deploys/site.py.")
def command(inventory: Path, limit: str, outputs: tuple[Output, ...], verbose: int, strict: bool, ask_sudo: bool, yes: bool,
            allow: tuple[str, ...], file: Path | None) -> Exit:
    """Set what plan shows: ask, run, read back, report what is left.

    Executes only what it showed. Steps that take a link down run node by node and stop at the first that does not read back; -y alone
    does not cover them. With nothing to do no operation is started. Exit 0: all as wanted. 1: something is left. 3: no verdict.
    """
    from fabrictool.bundled import folder
    from fabrictool.cli.look import look, room_report
    from fabrictool.cli.whatnext import next_line
    from fabrictool.ops.session import run_id
    from fabrictool.report import Mode, Show, emit
    from fabrictool.report.files import texts_by_digest

    selection = options.Selection(inventory, limit, ask_sudo)
    with ExitStack() as stack:
        got = look(stack, inventory, limit, None, ask_sudo)
        found = got.findings()
        report = room_report(got, "plan", run_id(), found)
        todo = any(f.steps for each in found.values() for f in each)
        if got.interrupted or not todo:
            code = emit(report, outputs, Show(Mode.APPLY, bool(verbose), strict, next_line(report, Mode.APPLY, selection), {}))
            return Exit.INTERRUPTED if got.interrupted else code
        machine = any(o.path is None and o.format != "text" for o in outputs)  # stdout then holds one document and nothing else
        with redirect_stdout(sys.stderr) if machine else nullcontext():
            emit(report, (Output("text"),), Show(Mode.PLAN, bool(verbose), strict, "", texts_by_digest(got.snaps.values())))
        go, allow_flap = _consent(found, yes, allow)
        if not go:
            raise Stop(Exit.DRIFT, "nothing was changed")
        return _run(got, found, file or folder("deploys") / "site.py", allow_flap, outputs, selection, verbose, strict)


def _run(got: Look, found: FOUND, file: Path, allow_flap: bool, outputs: Sequence[Output], selection: options.Selection, verbose: int,
         strict: bool) -> Exit:
    from fabrictool.cli.progress import Shown
    from fabrictool.engine.apply import Applied, apply
    from fabrictool.engine.connect import Interrupted
    from fabrictool.engine.gather import gather, known

    assert got.conn is not None
    shown, applied = Shown(), Applied()
    try:
        apply(got.conn, got.wants, got.site.waves, found, file, allow_flap=allow_flap, progress=shown, out=applied)
        got.snaps = gather(got.conn, shown, fresh=True)
    except (KeyboardInterrupt, Interrupted):
        got.interrupted, got.snaps = True, known(got.conn)
    got.note_lost()
    code = _report_left(got, applied, got.findings(), outputs, selection, verbose, strict)
    return Exit.INTERRUPTED if got.interrupted else code
