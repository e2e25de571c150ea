"""Many small commands on many nodes: all nodes at the same time, a few commands at a time on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import gevent
from gevent.pool import Pool

T = TypeVar("T")
AT_ONCE = 4  # on one node: sshd takes ten sessions a connection (MaxSessions), and others use it too


def side_by_side(work: Mapping[str, Sequence[Callable[[], T]]], at_once: int = AT_ONCE) -> Iterator[tuple[str, tuple[T, ...]]]:
    """Node -> what its calls gave, in their order; nodes come as they are done. On Ctrl-C nothing more is begun, and it passes through."""
    jobs = {gevent.spawn(_node, calls, at_once): node for node, calls in work.items()}
    try:
        for job in gevent.iwait(list(jobs)):
            yield jobs[job], job.get()
    finally:
        gevent.killall(list(jobs), block=False)


def _node(calls: Sequence[Callable[[], T]], at_once: int) -> tuple[T, ...]:
    pool = Pool(at_once)
    try:
        return tuple(pool.map(_call, calls))
    finally:
        pool.kill(block=False)


def _call(what: Callable[[], T]) -> T:
    return what()
