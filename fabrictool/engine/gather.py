"""Read every node once, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import gevent
from pyinfra.api.host import Host
from pyinfra.context import ctx_config, ctx_host, ctx_state

from fabrictool.engine.connect import Connection, Interrupted
from fabrictool.engine.progress import Progress
from fabrictool.model import Reason, Unreadable
from fabrictool.ops import collect
from fabrictool.ops.session import session, want
from fabrictool.snapshot import Section, Snapshot
from fabrictool.spec import NodeSpec

Extra = Callable[[NodeSpec], tuple[Section, ...]]


def _one(conn: Connection, host: Host, fresh: bool, extra: Extra | None) -> Snapshot:
    with ctx_state.use(conn.state), ctx_config.use(conn.state.config.copy()), ctx_host.use(host):
        session(host).managed = True
        if extra is not None:
            session(host).extra = extra(want(host))
        if fresh:
            session(host).fresh = frozenset()
        return collect.snapshot(host)


def gather(conn: Connection, progress: Progress, only: Iterable[str] | None = None, fresh: bool = False,
           extra: Extra | None = None) -> dict[str, Snapshot]:
    """Node -> snapshot, for every node of the connection: one that could not be reached has `Snapshot.error`.

    `fresh`: read again even where nothing is known to have changed. `extra`: what to collect of a node besides all rooms, now and
    whenever this connection reads all of it. Raises `Interrupted` on Ctrl-C, with what is known so far held in
    each host's session.
    """
    chosen = set(conn.hosts) if only is None else set(only) & set(conn.hosts)
    progress.phase("read", len(chosen))
    jobs = {gevent.spawn(_one, conn, conn.hosts[name], fresh, extra): name for name in sorted(chosen)}
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
