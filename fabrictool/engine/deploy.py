"""Run a deploy file through pyinfra on some nodes. The file is the one that plain pyinfra takes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pyinfra
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_inventory, ctx_state
from pyinfra_cli.util import load_deploy_file

from fabrictool.engine.connect import Connection


def prepare(conn: Connection, file: Path, nodes: Iterable[str]) -> None:
    """Load `file` for `nodes`, side by side. Reads nothing where the held snapshots are still true.

    `is_cli`: operation ids by stack position; without it pyinfra merges different operations of different hosts by their order.
    """
    state = conn.state
    pyinfra.is_cli = True
    state.cwd = str(file.parent)
    state.set_stage(StateStage.Prepare)
    state.active_hosts = {conn.hosts[n] for n in nodes}
    with _contexts(conn):
        load_deploy_file(state, str(file))
    state.set_stage(StateStage.Execute)


def execute(conn: Connection, nodes: Iterable[str]) -> dict[str, bool]:
    """Run the prepared operations on `nodes`; node -> whether none of them failed."""
    hosts = [conn.hosts[n] for n in nodes]
    state = conn.state
    state.active_hosts = set(hosts)
    with _contexts(conn):
        try:
            run_ops(state)
        except PyinfraError as error:  # "No hosts remaining!": every node of the wave failed, which failed_hosts says too
            if not state.failed_hosts:
                raise RuntimeError(f"pyinfra stopped: {error}") from error
    return {h.name: h not in state.failed_hosts for h in hosts}


def _contexts(conn: Connection) -> ExitStack:
    """pyinfra's `use()` has no try/finally: restore by hand, or an exception leaves the wrong host set."""
    stack = ExitStack()
    for ctx, value in ((ctx_state, conn.state), (ctx_inventory, conn.state.inventory), (ctx_config, conn.state.config.copy())):
        before = ctx.get()  # type: ignore[no-untyped-call]  # pyinfra leaves its contexts untyped
        ctx.set(value)  # type: ignore[no-untyped-call]
        stack.callback(ctx.set, before)
    return stack
