"""`fabrictool snapshot -o BUNDLE`: save the raw state of all nodes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import click

from fabrictool.cli import options
from fabrictool.exits import Exit, Stop


@click.command("snapshot")
@options.common(options.inventory, options.limit, options.ask_sudo, options.paths)
@click.option("-o", "--output", "target", required=True, metavar="BUNDLE", type=click.Path(dir_okay=False, path_type=Path),
              help="The bundle to write, *.tar.gz.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(inventory: Path, limit: str, ask_sudo: bool, paths: tuple[Path, ...], target: Path, force: bool) -> Exit:
    """Save what every node says, raw, in one file that plan, drift and check judge with --from.

    It holds what all read-only checks need, the kernel's log included; traffic is recorded by `check NAMES --save`. Secrets are
    scrubbed; verdicts are not in it. Exit 3: at least one node could not be read (the others are in the bundle).
    """
    from fabrictool import __version__
    from fabrictool.catalog import choose
    from fabrictool.cli.look import look
    from fabrictool.cli.progress import wrote
    from fabrictool.snapshot import bundle

    if target.exists() and not target.is_file():
        raise Stop(Exit.USAGE, f"-o {target}: is a device or a pipe, and would be replaced: name a plain file")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):  # before any node is read
        raise Stop(Exit.USAGE, f"-o {target}: cannot write into {target.parent}: make the folder first, or name another")
    if target.exists() and not force:
        raise Stop(Exit.USAGE, f"-o {target}: exists already; --force replaces it")
    with ExitStack() as stack:
        got = look(stack, inventory, limit, None, ask_sudo, [c for c in choose((), paths) if not c.check.probes])
        try:
            bundle.write(target, got.snaps.values(), bundle.Meta(__version__, got.started, got.site.digest), force=force)
        except (OSError, bundle.BundleError) as error:
            raise Stop(Exit.FAILED, f"-o {target}: {error}") from error
        lost = sorted(got.reach)
        wrote(target, f"{len(got.snaps) - len(lost)} of {len(got.wants)} nodes")
        for name in lost:
            click.echo(f"  {name}: {got.reach[name].why}", err=True)
        if got.interrupted:
            return Exit.INTERRUPTED
        return Exit.NO_VERDICT if lost else Exit.OK
