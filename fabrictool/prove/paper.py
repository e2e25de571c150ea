"""The way of a RoCE packet through a node on paper: traffic class -> DSCP -> priority -> traffic class of the port, buffer -> PFC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fabrictool import qos, rdma
from fabrictool.model import Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.case import Case
from fabrictool.prove.wire import Member
from fabrictool.qos.model import Interface
from fabrictool.room import About
from fabrictool.values import Dscp

NAME = "lossless_priority"
PATH = f"{NAME}.paper"
NEEDED = ("qos.trust", "qos.map", "qos.pfc", "qos.tc.shared")  # without a pass of each there is no chain
CHAIN = (*NEEDED, "qos.interface", "qos.pause", "qos.tc.buffer", "rdma.traffic_class")


@dataclass(frozen=True, slots=True)
class Closed:
    """What one node's chain came to. `findings`: for every interface; `closed`: all of it is as the spec says; `asks`: whether the spec
    asks for such a priority here."""

    findings: tuple[Finding, ...]
    closed: bool
    asks: bool = True


def chain(case: Case, me: Member) -> Closed:
    """The node's chain, by the same comparisons that plan and apply use."""
    fabric = me.want.fabric
    about = About(Code.QOS_PFC_WRONG_PRIORITY, me.subject, PATH, "")
    if not me.want.ports or fabric.traffic_class is None or fabric.qos is None or not fabric.qos.pfc:
        return Closed((about.skip("the spec asks for no lossless priority here (ports, traffic_class, qos.pfc)"),), False, False)
    dscp = Dscp.from_tc(fabric.traffic_class)
    if me.priority is None:
        why = Unreadable(Reason.BLOCKED, "the spec trusts the VLAN tag: the traffic class says nothing of the priority")
        return Closed((about.unknown(why, "trust: dscp"),), False)
    if me.priority not in fabric.qos.pfc:
        wrong = about.fail(f"class {fabric.traffic_class} is DSCP {dscp}, priority {me.priority}", f"priority {fabric.qos.pfc[0]}",
                           "the spec itself sends RoCE to a priority that it does not protect", remedy="correct dscp_to_priority or pfc")
        return Closed((wrong,), False)
    snap = case.snap(me.want.name)
    got = qos.read(snap)
    every = (*qos.judge(me.want, got, case.fleet), *rdma.judge(me.want, rdma.read(snap), case.fleet))
    found = _by_interface(every, dscp)
    if not found:
        nothing = Unreadable(Reason.EMPTY, "no interface of the spec was judged")
        return Closed((about.unknown(nothing, "every interface of the spec"),), False)
    said = tuple(f for subject, own in found.items() for f in _interface(me, subject, own, got.interface(subject.function), dscp))
    return Closed(said, all(f.status is Status.PASS for f in said))


def _by_interface(every: Iterable[Finding], dscp: Dscp) -> Mapping[Subject, list[Finding]]:
    """What the rooms compared along the chain."""
    out: dict[Subject, list[Finding]] = {}
    for f in every:
        if f.subject.kind is SubjectKind.FUNCTION and (f.path in CHAIN or f.path == f"qos.map.{dscp}"):
            out.setdefault(f.subject, []).append(f)
    return out


def _interface(me: Member, subject: Subject, found: list[Finding], nic: Interface, dscp: Dscp) -> Iterator[Finding]:
    bad = [f for f in found if f.bad]
    for f in bad:
        yield replace(f, path=f"{NAME}.{f.path}", aspect="", steps=(), remedy=f.remedy or "`fabrictool plan` shows how it is set")
    # A LAG's own interface has an RDMA device and no QoS: its members have that.
    if bad or all(f.path.startswith("rdma.") for f in found):
        return
    about = About(Code.QOS_PFC_WRONG_PRIORITY, subject, PATH, "")
    want = f"class {dscp.tc} -> DSCP {dscp} -> priority {me.priority} -> a class and a buffer of its own -> PFC"
    passed = [f.path for f in found if f.status is Status.PASS]
    missing = [n for n in NEEDED if not any(p == n or p.startswith(f"{n}.") for p in passed)]
    if missing:
        yield about.unknown(Unreadable(Reason.EMPTY, f"nothing was compared for {', '.join(missing)}"), want)
    else:
        yield about.ok(f"class {dscp.tc} -> DSCP {dscp} -> priority {me.priority}{_place(nic, me.priority)} -> PFC", want)


def _place(nic: Interface, priority: int | None) -> str:
    """Traffic class and buffer of the priority, as far as the node tells."""
    if priority is None:
        return ""
    tcs, buffers, sizes = nic.prio_tc.value, nic.prio_buffer.value, nic.buffer_bytes.value
    text = f" -> traffic class {tcs.value[priority]}" if isinstance(tcs, Value) else ""
    if isinstance(buffers, Value) and isinstance(sizes, Value):
        text += f", buffer {buffers.value[priority]} of {sizes.value[buffers.value[priority]]} bytes"
    return text


def agreement(members: tuple[Member, ...]) -> Finding:
    """Whether all nodes send RoCE to one priority; each node's own chain is closed already."""
    by_priority: dict[int | None, list[str]] = {}
    for me in members:
        by_priority.setdefault(me.priority, []).append(me.want.name)
    everyone = Subject(SubjectKind.FLEET, tuple(me.want.name for me in members))
    about = About(Code.QOS_PFC_WRONG_PRIORITY, everyone, f"{NAME}.agreed", "")
    got = "; ".join(f"priority {p} on {', '.join(nodes)}" for p, nodes in by_priority.items())
    if len(by_priority) == 1:
        return about.ok(got, "one priority on all nodes")
    return about.fail(got, "one priority on all nodes", "a packet changes its priority between two nodes, so PFC of one end does not hold "
                      "back the other", remedy="give all groups of the spec one traffic_class and one map")
