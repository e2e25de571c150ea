"""The probe `bootstrap_tcp`: a listener on a free port of each bootstrap address, for seconds, and a connection from the others to it.

A listener binds to the bootstrap address only, carries the run's name on its command line, ends by itself after LISTEN_S and is ended
by its number before that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

from fabrictool.engine.captured import answers, captured, utc_now
from fabrictool.engine.sidebyside import side_by_side
from fabrictool.engine.task import Task
from fabrictool.model import Unreadable, Value
from fabrictool.probes import tcp
from fabrictool.prove.addresses import bootstrap_address
from fabrictool.prove.bootstrap_tcp import CHECK, MOMENT
from fabrictool.prove.cover import cover
from fabrictool.snapshot import Captured, Recording
from fabrictool.snapshot.collector import resource

ANSWER_S = 6  # for each command; starting Python takes its share on a loaded node

Call = tuple[str, tuple[str, ...]]  # the section of its answer; the words for listen.py
Got = dict[str, dict[str, Captured | Unreadable]]


def probe(task: Task) -> Recording:
    """Never raises for a node. Ctrl-C passes through once the listeners are ended."""
    started, got = utc_now(), Got()
    there = {n: a.value for n, want in task.wants.items() if n in task.conn.hosts and n in task.snaps and want.bootstrap
             and isinstance(a := bootstrap_address(want, task.snaps[n]), Value)}
    task.progress.phase("connect", len(there))
    try:
        _all(task, got, {n: [("listen", tcp.listen(task.run_id, a))] for n, a in there.items()})
        ports = {n: p for n in there if (p := _runs(got.get(n)))}
        calls: dict[str, list[Call]] = {n: [] for n in there}
        for node, peer in cover(tuple(n for n, want in task.wants.items() if want.bootstrap)):
            if node in calls and peer in ports:
                calls[node].append((f"connect[{peer}]", tcp.connect(task.run_id, there[peer], ports[peer][0])))
        _all(task, got, calls)
    finally:
        ended = {n: [("stop", tcp.stop(task.run_id, p[1]))] for n in there if (p := _runs(got.get(n)))}
        _all(task, got, ended)
    _all(task, got, {n: [("left", tcp.left(task.run_id))] for n in there})
    takes = {n: answers(n, got[n]) for n in there}
    for node, take in takes.items():
        task.progress.node(node, "lost" if take.error else "ok")
    task.progress.done()
    return Recording(CHECK, task.run_id, started, utc_now(), takes={MOMENT: takes})


def _all(task: Task, got: Got, calls: Mapping[str, Iterable[Call]]) -> None:
    """Run listen.py on the nodes, and keep its answers."""
    todo = {n: list(mine) for n, mine in calls.items()}
    program = resource("listen.py")

    def one(node: str, words: tuple[str, ...]) -> Captured | Unreadable:
        return captured(task.conn.hosts[node], ("python3", "-", *words), ANSWER_S, program)

    def work() -> Iterator[tuple[str, list[Callable[[], Captured | Unreadable]]]]:
        for node, mine in todo.items():
            yield node, [functools.partial(one, node, words) for _, words in mine]

    for node, results in side_by_side(dict(work())):
        got.setdefault(node, {}).update({section: r for (section, _), r in zip(todo[node], results, strict=True)})


def _runs(answers: Mapping[str, Captured | Unreadable] | None) -> tuple[str, str] | None:
    """Port and process number of the node's listener."""
    got = (answers or {}).get("listen")
    return tcp.listening(got) if isinstance(got, Captured) else None
