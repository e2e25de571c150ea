"""Simulated nodes as pyinfra hosts, so that the product's own converge, collect and undo run unchanged, in process.

Redirected: how a snapshot is taken (ops.collect.take), how a command runs on the node (remote.run, StringCommand.execute), and which
host pyinfra says is the current one. What decides what is written, in which order, and when to stop is the product's own code.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from pyinfra.api.command import FunctionCommand, QuoteString

from fabrictool import ports
from fabrictool.engine.apply import approved
from fabrictool.lab.plan import node_plan
from fabrictool.model import Finding
from fabrictool.ops import collect
from fabrictool.ops.remote import Ran
from fabrictool.ops.session import session
from fabrictool.ports import Ports
from fabrictool.rooms import ROOMS, sections
from fabrictool.snapshot import Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.spec.schema import NODE
from tests.property.cases import SHAPES, Case, bare
from tests.property.root import Root
from tests.property.show import snapshot
from tests.property.sim import Sim, at_home
from tests.property.wants import draw_spec

# By name: each package offers a function called like the module.
ops: Any = importlib.import_module("fabrictool.ops.converge")
engine_undo: Any = importlib.import_module("fabrictool.engine.undo")

DEPLOYS = Path(__file__).parents[2] / "deploys"
ROOM = {room.name: room for room in ROOMS}


def site_order() -> tuple[tuple[str, str], ...]:
    """(room, aspect) in the order in which deploys/site.py sets them."""
    out: list[tuple[str, str]] = []
    for name in re.findall(r'here\.with_name\("(\w+\.py)"\)', (DEPLOYS / "site.py").read_text()):
        out += re.findall(r'converge\(.*room=(\w+)\.ROOM, aspect="(\w+)"', (DEPLOYS / name).read_text())
    return tuple(out)


ORDER = site_order()


class Host:
    """What ops ask of a pyinfra host. `said`: what it logged."""

    def __init__(self, want: NodeSpec, sim: Sim, peers: Sequence[Host] = ()) -> None:
        self.name, self.sim, self.spec = want.name, sim, want
        self.data = SimpleNamespace(fabric=NODE.dump_python(want, mode="json"))
        self.connector_data: dict[str, Any] = {}
        self.state: Any = SimpleNamespace(ops={self: {}}, is_executing=False, failed_hosts=set(), active_hosts={self},
                                          inventory=[self, *peers], is_host_in_limit=lambda _: True)
        for peer in peers:
            self.state.ops[peer] = {}
            peer.state = self.state
        self.said: list[str] = []
        self.order: list[tuple[str, str]] = []  # the aspect of every command that ran, as (room, aspect)

    def noop(self, why: str) -> None:
        self.said.append(why)

    def log_styled(self, text: str, **_: object) -> None:
        self.said.append(text)


def _take(host: Host, rooms: Iterable[str] | None = None) -> Snapshot:
    return snapshot(host.sim, sections(rooms), host.spec.nodes)


def _run(host: Host, argv: tuple[str, ...], timeout_s: int, stdin: str | None = None) -> Ran:
    rc, err = host.sim.execute(argv)
    return Ran(rc == 0, "", err)


def _once(read: Callable[[Snapshot], Ports]) -> Callable[[Snapshot], Ports]:
    """Every room reads the ports of the same snapshot anew: here once, or that alone would be half of the time."""
    held: dict[int, tuple[Snapshot, Ports]] = {}

    def once(snap: Snapshot) -> Ports:
        if id(snap) not in held:
            held[id(snap)] = snap, read(snap)
        return held[id(snap)][1]

    return once


@contextmanager
def connected(host: Host) -> Iterator[Host]:
    with ExitStack() as stack:
        stack.enter_context(at_home(host.sim))
        stack.enter_context(mock.patch.object(collect, "take", _take))
        for module in (ops, engine_undo):
            stack.enter_context(mock.patch.object(module, "run", _run))
        stack.enter_context(mock.patch.object(ops, "current", host))
        stack.enter_context(mock.patch.object(ports, "read", _once(ports.read)))
        yield host


def judged(host: Host) -> tuple[Finding, ...]:
    """As plan does: everything, on a new snapshot."""
    session(host).fresh = frozenset()  # type: ignore[arg-type]
    return ops.judged(host, collect.snapshot(host))  # type: ignore[arg-type]


def converge(host: Host, room: str, aspect: str) -> bool:
    """One line of a deploy, run to its end as pyinfra runs it: a command that fails ends the operation."""
    meta = SimpleNamespace(executed=False)
    host.state.ops[host][len(host.state.ops[host])] = SimpleNamespace(operation_meta=meta)
    ok = True
    for command in ops.converge._inner(ROOM[room], aspect):  # type: ignore[attr-defined]
        meta_after = True
        if isinstance(command, FunctionCommand):
            ok = bool(command.function(host.state, host, *command.args, **command.kwargs))
        else:
            assert isinstance(command, ops.Write)
            words = tuple(b.obj for b in command.bits if isinstance(b, QuoteString) and isinstance(b.obj, str))
            assert len(words) == len(command.bits)
            host.order.append((room, aspect))
            command.ok = host.sim.execute(words)[0] == 0  # as Write.execute: evidence, and pyinfra is told that it worked
        meta.executed = meta_after
        if not ok:
            break
    return ok


def apply(host: Host, managed: bool, flaps: bool = True) -> bool:
    """The whole site, aspect by aspect. `managed`: as `fabrictool apply` does, only what the plan showed; else as plain pyinfra, which
    leaves a host alone once an operation failed there. True: nothing failed."""
    mine = session(host)  # type: ignore[arg-type]
    mine.managed = managed
    mine.approved = approved(judged(host), flaps) if managed else None
    mine.done.clear()
    mine.refused.clear()
    if managed and not mine.approved:
        return True
    host.state.is_executing = True
    try:
        for room, aspect in ORDER:
            if not converge(host, room, aspect):
                host.state.failed_hosts.add(host)
                return False
        return True
    finally:
        host.state.is_executing = False

@functools.cache
def _peer(name: str, top: Path) -> tuple[NodeSpec, Snapshot]:
    """The other node of the site, as delivered, read once: only its addresses matter."""
    profile = next(p for p in SHAPES if p.name == name)
    sim, plan = bare(profile, 2, Root(top))
    raw = draw_spec(Random(0), profile, plan, node_plan(profile, 1).name) | {"bootstrap": profile.bootstrap}
    return NODE.validate_json(json.dumps(raw)), snapshot(sim, sections(("ports",)), ())


def with_peer(c: Case, folder: Path) -> Host:
    """The case's node as a host of a site of two; of every seventh the other could not be read."""
    want, snap = _peer(c.plan.name.rstrip("0123456789").replace("gpu", "h20").replace("node", "plain"), folder)
    want = NODE.validate_python(dataclasses.replace(want, bootstrap=c.want.bootstrap))
    peer = Host(want, c.sim)
    session(peer).snapshot = None if c.seed % 7 == 0 else snap  # type: ignore[arg-type]
    return Host(c.want, c.sim, [peer])
