"""Others that set QoS on the node: findings about them, and which aspects may not be written because of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictool.model import Code, Finding, Subject, Unreadable
from fabrictool.qos.model import Qos, Writer
from fabrictool.room import About
from fabrictool.spec import QosSpec
from fabrictool.values import Dscp, Priorities

LLDPAD_WRITES = ("dcbx", "trust", "map", "pfc", "tc", "persist")
OPERATORS: Mapping[str, str] = {"nic-configurati": "nic-configuration-daemon (NVIDIA's network operator)", "fcoemon": "fcoemon"}


@dataclass(frozen=True, slots=True)
class Block:
    """`interface` "" = all. `who`: a phrase that goes on "nothing is written while"."""

    interface: str
    aspect: str
    who: str


@dataclass(frozen=True, slots=True)
class Rivals:
    findings: tuple[Finding, ...]
    blocks: tuple[Block, ...]

    def blocked(self, *interfaces: str) -> Mapping[str, str]:
        """aspect -> who. For "" (the node's own files) any block of an interface counts as one of `persist`."""
        out: dict[str, str] = {}
        for b in self.blocks:
            if interfaces == ("",):
                out.setdefault("persist", b.who)
            elif b.interface in ("", *interfaces):
                out.setdefault(b.aspect, b.who)
                out.setdefault("persist", b.who)
                if b.aspect == "trust":  # the first DSCP entry flips trust to dscp, and trust pcp deletes all entries
                    out.setdefault("map", b.who)
        return out


def rivals(qos: QosSpec, got: Qos, node: Subject, interfaces: frozenset[str]) -> Rivals:
    """`interfaces`: the fabric's own; a writer that names another one literally is nobody's business."""
    findings: list[Finding] = []
    blocks: list[Block] = []
    for found, block in (*_daemons(got, node, interfaces), *_writers(qos, got, node, interfaces)):
        findings.append(found)
        blocks += block
    return Rivals(tuple(findings), tuple(blocks))


def _daemons(got: Qos, node: Subject, interfaces: frozenset[str]) -> Iterator[tuple[Finding, list[Block]]]:
    about = About(Code.QOS_LLDPAD, node, "qos.lldpad", "")
    warned = [n for n in sorted(interfaces) if got.interface(n).mlnx.lldpad]
    if warned or (not isinstance(got.daemons, Unreadable) and "lldpad" in got.daemons):
        yield about.fail("running", "not running", "lldpad overwrites PFC, DSCP map and traffic classes with what it negotiates",
                         remedy="on the node: systemctl disable --now lldpad.service lldpad.socket; then run again"), _all("lldpad runs")
    elif isinstance(got.daemons, Unreadable):
        yield about.unknown(got.daemons, "not running"), _all("whether lldpad runs is not known")
    else:
        yield about.ok("not running"), []
    for name in () if isinstance(got.daemons, Unreadable) else got.daemons:
        if name in OPERATORS:
            who = f"{OPERATORS[name]} runs"
            yield About(Code.QOS_OTHER_OWNER, node, f"qos.owner.{name}", "").fail(
                who, "one owner of QoS", "it sets trust and PFC by its own configuration",
                remedy="give the settings to it and take `qos` out of the spec, or take the fabric's NICs out of its configuration",
            ), [Block("", a, who) for a in ("trust", "pfc")]


def _all(who: str) -> list[Block]:
    return [Block("", a, who) for a in LLDPAD_WRITES]


def _writers(qos: QosSpec, got: Qos, node: Subject, interfaces: frozenset[str]) -> Iterator[tuple[Finding, list[Block]]]:
    about = About(Code.QOS_OTHER_OWNER, node, "qos.owner", "")
    if isinstance(got.writers, Unreadable):
        yield about.unknown(got.writers, "no other owner of QoS"), _all("other owners of QoS cannot be ruled out")
        return
    found = False
    for w in got.writers:
        if w.interface and w.interface not in interfaces:
            continue
        found = True
        yield _writer(qos, w, node)
    if not found:
        yield about.ok("no unit, rule, hook or script that can be read sets QoS of the fabric's interfaces", "no other owner of QoS"), []


def _writer(qos: QosSpec, w: Writer, node: Subject) -> tuple[Finding, list[Block]]:
    about = About(Code.QOS_OTHER_OWNER, node, f"qos.owner.{w.path}:{w.line}", "")
    other = [(aspect, value) for aspect, value in w.settings if not same(qos, aspect, value)]
    place, text = f"{w.path}:{w.line}", w.text[:120]
    if not other:
        return about.warn(f"{place}: {text}", "one owner of QoS",
                          "it sets the same values as the spec, and will not follow when the spec changes",
                          remedy=f"remove the line from {w.path} once fabrictool's own unit is in place"), []
    named = ", ".join(f"{aspect} {value or '(not literal)'}" for aspect, value in other)
    if all(aspect == "cm" for aspect, _ in other):
        return about.warn(f"{place}: {text}", "the spec's traffic class",
                          "it gives the RDMA connection manager's queue pairs a class that the spec does not know (NCCL uses none)",
                          remedy=f"correct the value in {w.path}"), []
    if not w.enabled:
        return about.warn(f"{place}: {text}", "one owner of QoS", f"it would set {named}; nothing seen starts it",
                          remedy=f"remove {w.path}, or make it agree with the spec"), []
    who = f"{place} sets {named}"
    return about.fail(f"{place}: {text}", "one owner of QoS", f"it sets {named} again, at boot or in a loop",
                      remedy=f"remove the line from {w.path} (and end what runs it), then run again",
                      ), [Block(w.interface, aspect, who) for aspect, _ in other]


def same(qos: QosSpec, aspect: str, value: str) -> bool:
    """Whether a setting, as a command line spells it, is what the spec wants. What is not literal is not the same."""
    if aspect == "trust":
        return value == qos.trust
    if aspect == "pfc":
        return value == Priorities.of(qos.pfc).mask
    if aspect == "pause":
        return value == ("on" if qos.global_pause else "off")
    if aspect == "dcbx":
        return value == "os"
    if aspect == "map":
        words = value.split(",")
        if len(words) != 3 or words[0] != "set" or not all(w.isdecimal() and len(w) < 10 for w in words[1:]):
            return False
        dscp, priority = int(words[1]), int(words[2])
        return qos.trust == "dscp" and qos.dscp_to_priority.get(dscp, dscp >> 3) == priority
    if aspect == "cm":  # the class of RDMA-CM's queue pairs: harmless while its DSCP is one of the spec's
        return value.isdecimal() and len(value) < 10 and int(value) <= 255 and Dscp.from_tc(int(value)).value in qos.dscp_to_priority
    return False
