"""Jumbo frames between two nodes, both ways, on every rail they share: the proof that a raised MTU is not a hole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gevent
from pyinfra.api.host import Host

from fabrictool import ports
from fabrictool.engine.captured import captured
from fabrictool.engine.connect import Connection
from fabrictool.model import Code, Finding, Observed, Reason, Run, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.ops.collect import again
from fabrictool.ops.session import session
from fabrictool.probes.path import control_ping, df_ping
from fabrictool.prove.ping import Ping, judge_pair
from fabrictool.room import About
from fabrictool.spec import NodeSpec


def ready_peer(conn: Connection, wants: Mapping[str, NodeSpec], plan: Mapping[str, Sequence[Finding]], node: str) -> str | None:
    """A connected node on one of `node`'s rails whose interfaces had the wanted MTU all along."""
    rails = set(wants[node].fabric.rails)
    for name, findings in plan.items():
        mtu = [f for f in findings if f.code is Code.LINK_MTU_RUNNING]
        reachable = name != node and name in conn.hosts and bool(rails & set(wants[name].fabric.rails))
        if reachable and mtu and all(f.status is Status.PASS for f in mtu):
            return name
    return None


def prove(conn: Connection, wants: Mapping[str, NodeSpec], pair: tuple[str, str]) -> list[Finding]:
    """What stands against the path between the two nodes; [] when every ping of every shared rail proved it. Never empty for want of
    evidence: an address that cannot be read, or no shared rail at all, is a finding of its own."""
    one, two = pair
    here, there = _addresses(conn.hosts[one], wants[one]), _addresses(conn.hosts[two], wants[two])
    shared = sorted(set(here) & set(there))
    mtu = wants[one].fabric.mtu
    if not shared or mtu is None:
        about = About(Code.PATH_MTU_HOLE, Subject(SubjectKind.PAIR, (one,), peer=two), "apply.path", "")
        return [about.unknown(Unreadable(Reason.EMPTY, "the two nodes share no rail"), "a jumbo frame both ways")]
    jobs: list[gevent.Greenlet[..., Finding]] = []
    for rail in shared:
        jobs.append(gevent.spawn(_one, conn.hosts[one], two, rail, mtu, here[rail], there[rail]))
        jobs.append(gevent.spawn(_one, conn.hosts[two], one, rail, mtu, there[rail], here[rail]))
    gevent.joinall(jobs)
    return [f for f in (job.get() for job in jobs) if f.status is not Status.PASS]


def _addresses(host: Host, want: NodeSpec) -> dict[str, Observed[str]]:
    """Rail -> this node's address on it, read now: interfaces just changed."""
    seen = ports.read(again(host, ports.ROOM.name))
    session(host).fresh = frozenset()
    return {fn.want.rail: ports.rail_address(fn, want) for fn in ports.bind(want, seen)}


def _one(host: Host, peer: str, rail: str, mtu: int, source: Observed[str], target: Observed[str]) -> Finding:
    for seen in (source, target):
        if not isinstance(seen, Value):
            about = About(Code.PATH_MTU_HOLE, Subject(SubjectKind.PAIR, (host.name,), rail=rail, peer=peer), "apply.path", "")
            return about.unknown(seen, f"{mtu} bytes pass undivided")
    assert isinstance(source, Value)
    assert isinstance(target, Value)
    large = _ping(host, df_ping(mtu, source.value, target.value))
    small = _ping(host, control_ping(source.value, target.value))
    return judge_pair(host.name, peer, rail, mtu, large, small, "apply.path")


def _ping(host: Host, step: Run) -> Ping:
    got = captured(host, step.argv, step.timeout_s)
    return Ping(124, "", got.why) if isinstance(got, Unreadable) else Ping(got.rc, got.out, got.err)
