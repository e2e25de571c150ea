"""The environment as each rank's NCCL saw it. What it does not print it may not have needed: only then is there no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.collective.expect import NOTHING, Expect
from fabrictool.collective.logmodel import NcclLog, Process
from fabrictool.collective.membership import members
from fabrictool.model import Code, Finding, Reason, Subject, SubjectKind, Unreadable
from fabrictool.room import About

# Variables that must be the same for all ranks of a job. Interfaces and devices may differ from node to node.
COMMON = ("NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS",
          "NCCL_IB_DISABLE", "NCCL_NET", "NCCL_ALGO", "NCCL_PROTO", "NCCL_CROSS_NIC", "NCCL_IB_MERGE_NICS")
ON_NODE = (*COMMON, "NCCL_SOCKET_IFNAME", "NCCL_IB_GID_INDEX")
# Read only when a queue pair is made: without RDMA their absence says nothing.
WITH_RDMA = ("NCCL_IB_", "NCCL_NET_")
REMEDY = "the variable did not reach the ranks: mpirun needs -x NAME, containers -e or --env-file, units Environment="
OTHER = "see who sets it: the environment of the job (it wins), ~/.nccl.conf, then /etc/nccl.conf; `fabrictool check env -i INVENTORY`"


def _values(process: Process, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.value for e in process.env if e.name == name))


def same(a: str, b: str) -> bool:
    """NCCL prints numbers in decimal, however they were written."""
    if a == b:
        return True
    try:
        return int(a, 0) == int(b, 0)
    except ValueError:
        return False


def judge_environment(log: NcclLog, nodes: tuple[str, ...], wants: Mapping[str, Expect], path: str) -> Iterator[Finding]:
    ranked = {m.process for m in members(log) if m.completed}
    for node in nodes:
        mine = [p for p in log.processes if p.key.node == node and p.key in ranked]
        want = wants.get(node, NOTHING)
        for name in sorted(n for n in want.env if n.startswith("NCCL_")):
            yield _wanted(node, mine, name, want, f"{path}.env.{name}")
        yield from _one_node(node, mine, [n for n in ON_NODE if n not in want.env], path)
    yield from _across([p for p in log.processes if p.key in ranked], nodes, wants, path)


def _wanted(node: str, mine: list[Process], name: str, want: Expect, where: str) -> Finding:
    value = want.env[name]
    about = About(Code.ENV_NOT_PROPAGATED, Subject(SubjectKind.NODE, (node,)), where, "")
    wanted = f"{name}={value}"
    other = next((v for p in mine for v in _values(p, name) if not same(v, value)), None)
    if other is not None:
        return about.fail(f"{name}={other[:200]}", wanted, "a rank saw another value", remedy=OTHER)
    without = [p for p in mine if not _values(p, name)]
    if mine and not without:
        return about.ok(wanted)
    logged = want.env_shown or all(any(e.parameter for e in p.env) for p in without)
    by_rdma = any(e.via.name.casefold() != "socket" and e.via.index is not None for p in without for e in p.edges)
    if mine and logged and (by_rdma or not name.startswith(WITH_RDMA)):
        return about.fail("not set", wanted, f"{len(without)} of {len(mine)} ranks' processes did not see it", remedy=REMEDY)
    return about.unknown(Unreadable(Reason.NOT_COLLECTED, f"{name}: the log does not show it; NCCL prints a variable when it first needs "
                                                          "it, with ENV in NCCL_DEBUG_SUBSYS"), wanted)


def _one_node(node: str, mine: list[Process], names: list[str], path: str) -> Iterator[Finding]:
    """Ranks of one node that saw different values, where the spec does not say which is right."""
    for name in names:
        values = {v for p in mine for v in _values(p, name)}
        if len(values) > 1:
            yield About(Code.ENV_NOT_PROPAGATED, Subject(SubjectKind.NODE, (node,)), f"{path}.env.{name}", "").warn(
                ", ".join(f"{name}={v[:80]}" for v in sorted(values)), "one value for all ranks of a node", "ranks saw different values",
                remedy=REMEDY)


def _across(ranked: list[Process], nodes: tuple[str, ...], wants: Mapping[str, Expect], path: str) -> Iterator[Finding]:
    """Variables that must be the same everywhere, and are not, or that only some nodes saw."""
    if len(nodes) < 2:
        return
    for name in COMMON:
        if any(name in wants.get(n, NOTHING).env for n in nodes):
            continue
        by_node = {n: frozenset(v for p in ranked if p.key.node == n for v in _values(p, name)) for n in nodes}
        values = {v for got in by_node.values() for v in got}
        silent = [n for n in nodes if not by_node[n] and any(p.key.node == n for p in ranked)]
        if len(values) > 1 or (values and silent):
            shown = "; ".join(f"{n}: {', '.join(sorted(v)) or 'not set'}" for n, v in by_node.items() if v or n in silent)
            yield About(Code.ENV_NOT_PROPAGATED, Subject(SubjectKind.FLEET, nodes), f"{path}.env.{name}", "").warn(
                shown[:300], f"one {name} for all nodes", "nodes saw different values", remedy=REMEDY)
