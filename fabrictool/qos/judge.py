"""The only comparison of wanted and found QoS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fabrictool import ports
from fabrictool.model import Absent, Code, Finding, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports import BoundFunction
from fabrictool.qos import settings
from fabrictool.qos.keep import files, kept
from fabrictool.qos.model import Qos
from fabrictool.qos.persist import SAFE_NAME
from fabrictool.qos.rivals import Rivals, rivals
from fabrictool.qos.target import Target
from fabrictool.room import About, Fleet
from fabrictool.spec import NodeSpec, QosSpec

# In the order of setting: pause goes off before PFC goes on (the vendor's guidance; the two exclude each other).
ASPECTS = ("dcbx", "trust", "map", "pause", "pfc", "tc", "ecn", "persist")
CODES: Mapping[str, Code] = {
    "dcbx": Code.QOS_FW_DCBX, "trust": Code.QOS_TRUST, "map": Code.QOS_DSCP_MAP, "pause": Code.QOS_GLOBAL_PAUSE,
    "pfc": Code.QOS_PFC_MASK, "tc": Code.QOS_SHARED_TC, "ecn": Code.QOS_ECN, "persist": Code.QOS_NOT_PERSISTED,
}


def judge(want: NodeSpec, got: Qos, fleet: Fleet) -> Iterator[Finding]:
    node = Subject(SubjectKind.NODE, (want.name,))
    qos = want.fabric.qos
    if qos is None or not want.ports:
        why = "the spec has no fabric.qos" if qos is None else "the spec names no port of this node"
        for aspect in ASPECTS:
            yield About(CODES[aspect], node, f"qos.{aspect}", aspect).skip(why)
        return
    bound = ports.bind(want, got.ports)
    names = frozenset(n for fn in bound for n in (*(fn.members or (fn.interface,)), *fn.twins))
    others = rivals(qos, got, node, names)
    yield from others.findings
    yield files(node, got, others.blocked(""))
    for fn in bound:
        yield from _function(want, qos, got, fn, others)


def _function(want: NodeSpec, qos: QosSpec, got: Qos, fn: BoundFunction, others: Rivals) -> Iterator[Finding]:
    subject = fn.subject(want)
    about = About(Code.QOS_UNSUPPORTED, subject, "qos.interface", "")
    if not isinstance(fn.netdev, Value):
        why = f"{fn.netdev.what} is not on the node" if isinstance(fn.netdev, Absent) else fn.netdev.why
        yield about.unknown(Unreadable(Reason.BLOCKED, why), "the interface of the spec")
        return
    netdev = fn.netdev.value
    if netdev.kind == "bond" or fn.members:
        if not fn.members:
            yield about.fail(f"{netdev.name} is a bond without members", "members with DCB", "a bond itself has no DCB",
                             remedy="name the bond's `members` in the spec: QoS is set on each")
        for member in fn.members:
            yield from _member(subject, qos, got, member, others)
        return
    if netdev.kind:
        below = f" ({netdev.parent})" if netdev.parent else ""
        yield about.fail(f"{netdev.name}: {netdev.kind}", "a physical function", f"a {netdev.kind} has no DCB of its own",
                         remedy=f"QoS belongs to the interface below it{below}: name that one in the spec")
        return
    if netdev.virtual_function:
        yield about.fail(f"{netdev.name}: a virtual function", "a physical function", "DCB belongs to the physical function",
                         remedy="set QoS on the physical function, on the host that owns it")
        return
    yield from _interface(subject, qos, got, netdev.name, others, fn.twins)


def _member(subject: Subject, qos: QosSpec, got: Qos, member: str, others: Rivals) -> Iterator[Finding]:
    place = Subject(SubjectKind.FUNCTION, subject.nodes, subject.port, member, subject.rail)
    seen = got.ports.netdev(member)
    if isinstance(seen, Value):
        yield from _interface(place, qos, got, seen.value.name, others)
        return
    why = f"{seen.what} is not on the node" if isinstance(seen, Absent) else seen.why
    yield About(Code.QOS_UNSUPPORTED, place, "qos.interface", "").unknown(Unreadable(Reason.BLOCKED, why), "the member of the spec")


def _interface(subject: Subject, qos: QosSpec, got: Qos, name: str, others: Rivals, twins: tuple[str, ...] = ()) -> Iterator[Finding]:
    """`twins`: interfaces that may share its registers; who sets theirs sets these."""
    target = Target(qos, subject, got.interface(name), others.blocked(name, *twins))
    about = About(Code.QOS_UNSUPPORTED, subject, "qos.interface", "")
    if not SAFE_NAME.fullmatch(name):
        odd = Unreadable(Reason.GARBLED, f"interface name {name[:40]!r} could be taken for an option or a command")
        yield about.unknown(odd, "a plain name")
        return
    supported = target.nic.supported
    if supported == Value(False):
        yield about.fail("no DCB on this interface", "DCB", "the driver answers that it has no QoS settings here",
                         remedy="use the physical function's driver with DCB built in; on a BlueField in DPU mode set QoS on its Arm side")
        return
    if isinstance(supported, Value):
        yield about.ok("DCB is there", "DCB")
    yield _writer(target)
    comparisons: Iterable[Iterator[Finding]] = (
        settings.dcbx(target), settings.trust(target), settings.dscp_map(target), settings.pause(target), settings.pfc(target),
        settings.tc(target), settings.ecn(target), kept(target, got))
    for findings in comparisons:
        yield from findings


def _writer(t: Target) -> Finding:
    """Whether the spec's writer works here. Without it the second reader still reads, but nothing can be set."""
    about = About(Code.TOOL_MISSING, t.subject, "qos.writer", "")
    mlnx = t.nic.mlnx.dcb
    if mlnx == Value(True):
        return about.ok("mlnx_qos answers", "mlnx_qos")
    why = mlnx if isinstance(mlnx, Unreadable) else Unreadable(Reason.FAILED, "mlnx_qos: not supported here, though dcb reads values")
    return about.unknown(why, "mlnx_qos")
