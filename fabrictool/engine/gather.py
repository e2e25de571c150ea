"""Read every node once, side by side."""

from __future__ import annotations

from collections.abc import Iterable

import gevent
from pyinfra.api.host import Host
from pyinfra.context import ctx_config, ctx_host, ctx_state

from fabrictool.engine.connect import Connection, Interrupted
from fabrictool.engine.progress import Progress
from fabrictool.model import Reason, Unreadable
from fabrictool.ops import collect
from fabrictool.ops.session import session
from fabrictool.snapshot import Snapshot


def _one(conn: Connection, host: Host, fresh: bool) -> Snapshot:
    with ctx_state.use(conn.state), ctx_config.use(conn.state.config.copy()), ctx_host.use(host):
        session(host).managed = True
        if fresh:
            session(host).fresh = frozenset()
        return collect.snapshot(host)


def gather(conn: Connection, progress: Progress, only: Iterable[str] | None = None, fresh: bool = False) -> dict[str, Snapshot]:
    """Node -> snapshot, for every node of the connection: one that could not be reached has `Snapshot.error`.

    `fresh`: read again even where nothing is known to have changed. Raises `Interrupted` on Ctrl-C, with what is known so far held in
    each host's session.
    """
    chosen = set(conn.hosts) if only is None else set(only) & set(conn.hosts)
    progress.phase("read", len(chosen))
    jobs = {gevent.spawn(_one, conn, conn.hosts[name], fresh): name for name in sorted(chosen)}
    out: dict[str, Snapshot] = {}
    try:
        for job in gevent.iwait(list(jobs)):
            name = jobs[job]
            out[name] = job.get()
            progress.node(name, "ok" if out[name].error is None else "unreadable")
    except KeyboardInterrupt:
        gevent.killall(list(jobs), block=False)
        progress.done()
        raise Interrupted(conn) from None
    progress.done()
    return out | {name: unreachable(conn, name) for name in conn.refused}


def known(conn: Connection) -> dict[str, Snapshot]:
    """What is held of every node without asking it: the state of knowledge after an interruption. A node on which something was
    written since it was read is not known."""
    out = {}
    for name, host in conn.hosts.items():
        mine = session(host)
        held = mine.snapshot
        if mine.done:
            held = Snapshot(name, error=Unreadable(Reason.UNREACHABLE, "interrupted while it was being changed; not read since"))
        out[name] = held or Snapshot(name, error=Unreadable(Reason.UNREACHABLE, "interrupted before the node was read"))
    return out | {name: unreachable(conn, name) for name in conn.refused}


def unreachable(conn: Connection, name: str) -> Snapshot:
    return Snapshot(name, error=Unreadable(Reason.UNREACHABLE, conn.refused[name].why))
