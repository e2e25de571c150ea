"""What a DF ping and its control say about the path MTU between two nodes, and the verdict on one direction.

Two pings from one rail address to another: one that fills the MTU and must not be fragmented, and a small one as the control.
Only a large one that is lost while the small one passes shows a hole; when both are lost the MTU is not what is broken.
ICMP that passes proves neither UDP 4791 nor the RoCE priority.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.model import Code, Finding, Reason, Subject, SubjectKind, Unreadable
from fabrictool.room import About


class Verdict(StrEnum):
    """What one pair of pings shows."""

    OK = "ok"
    HOLE = "hole"  # large lost, small fine: a switch port or the peer is smaller
    ROUTED_HOLE = "routed hole"  # a router said so (fragmentation needed)
    LOCAL_MTU = "local mtu"  # this node's own interface, or its cached path MTU, is smaller
    INCONCLUSIVE = "inconclusive"  # the small one is lost as well: not the MTU
    PARTLY_LOST = "partly lost"
    BAD_USAGE = "bad usage"
    TOOL_MISSING = "tool missing"
    TIMEOUT = "timed out"
    GARBLED = "not understood"
    NOT_PINGED = "not pinged"


HOLES = (Verdict.LOCAL_MTU, Verdict.ROUTED_HOLE, Verdict.HOLE)  # the most telling first


@dataclass(frozen=True, slots=True)
class Ping:
    """One ping as it ended. `rc` 124 or 137 = its time limit, 127 = no ping."""

    rc: int
    out: str
    err: str = ""


_SUMMARY = re.compile(
    r"^(\d{1,9}) packets transmitted, (\d{1,9}) (?:packets )?received,(?: \+\d+ \w+,?)* ?\d+(?:\.\d+)?% packet loss",
    re.M)
_NO_ROUTE = re.compile(r"network is unreachable|no route to host", re.I)
_LOCAL = re.compile(r"local error: message too long|message too long, mtu", re.I)
_ROUTED = re.compile(r"frag(?:mentation)? needed|packet too big", re.I)
_USAGE = re.compile(r"invalid option|unrecognized option|usage:|unknown host|name or service not known|invalid argument|"
                    r"cannot assign requested address|unknown iface|bad (?:interface|number)|operation not permitted", re.I)


def received(ping: Ping) -> tuple[int, int] | None:
    """(sent, received) of the summary line; None without a whole one."""
    m = _SUMMARY.search(ping.out.replace("\r", ""))
    return (int(m[1]), int(m[2])) if m else None


def classify(large: Ping, small: Ping) -> Verdict:
    """The table of ping results, by what the answers say; the exit status alone proves nothing."""
    for ping in (large, small):
        if ping.rc in (126, 127):
            return Verdict.TOOL_MISSING
    text = f"{large.out}\n{large.err}"
    got = received(large)
    if got is not None and got[1] == got[0] > 0:
        return Verdict.OK if large.rc == 0 else Verdict.GARBLED
    if _LOCAL.search(text):
        return Verdict.LOCAL_MTU
    if _ROUTED.search(text):
        return Verdict.ROUTED_HOLE
    if got is None:
        if large.rc in (124, 137):
            return Verdict.TIMEOUT
        if _NO_ROUTE.search(text):
            return Verdict.INCONCLUSIVE
        return Verdict.BAD_USAGE if large.rc == 2 or _USAGE.search(text) else Verdict.GARBLED
    if got[1] > 0:
        return Verdict.PARTLY_LOST
    control = received(small)
    if control is None:
        return Verdict.TIMEOUT if small.rc in (124, 137) else Verdict.GARBLED
    return Verdict.HOLE if control[1] == control[0] > 0 else Verdict.INCONCLUSIVE


_REASONS = {
    Verdict.TOOL_MISSING: Reason.TOOL_MISSING, Verdict.TIMEOUT: Reason.TIMEOUT, Verdict.GARBLED: Reason.GARBLED,
    Verdict.BAD_USAGE: Reason.FAILED, Verdict.INCONCLUSIVE: Reason.FAILED, Verdict.PARTLY_LOST: Reason.FAILED,
    Verdict.NOT_PINGED: Reason.NOT_COLLECTED,
}
_WHY = {
    Verdict.TOOL_MISSING: "no ping on the node (package iputils-ping)",
    Verdict.TIMEOUT: "ping did not end within its time limit",
    Verdict.GARBLED: "ping's answer was not understood",
    Verdict.BAD_USAGE: "ping refused its arguments (busybox ping has no -M; iputils-ping is needed)",
    Verdict.INCONCLUSIVE: "small pings are lost as well: not the MTU, look for link, address, ARP or firewall",
    Verdict.PARTLY_LOST: "some large pings were lost and some came back: the path loses packets, the MTU is not shown",
    Verdict.NOT_PINGED: "the recording holds no whole answer of this ping",
    Verdict.HOLE: "a switch port on the way, or the interface at the other end, takes only smaller packets",
    Verdict.ROUTED_HOLE: "a router on the way says that its next hop is smaller",
    Verdict.LOCAL_MTU: "this node's own interface is smaller, or it has a smaller path MTU cached (`ip route get`)",
}
_SEEN = {
    Verdict.HOLE: "pings of {mtu} bytes are lost, small ones pass",
    Verdict.ROUTED_HOLE: "pings of {mtu} bytes are refused by a router, small ones pass",
    Verdict.LOCAL_MTU: "pings of {mtu} bytes are refused by the sending node itself",
}


def judge_pair(node: str, peer: str, rail: str, mtu: int, large: Ping, small: Ping, path: str) -> Finding:
    """One direction of one rail: `node` pinged `peer`. What cannot be told is unknown, never a pass and never a hole."""
    return judge(classify(large, small), Subject(SubjectKind.PAIR, (node,), rail=rail, peer=peer), mtu, path)


def judge(verdict: Verdict, subject: Subject, mtu: int, path: str) -> Finding:
    """The finding that `verdict` makes about `subject`."""
    about = About(Code.PATH_MTU_HOLE, subject, path, "")
    want = f"{mtu} bytes pass undivided"
    if verdict is Verdict.OK:
        return about.ok(f"{mtu} bytes pass", want)
    if verdict in HOLES:
        remedy = ("raise the interface's MTU, or `ip route flush cache`" if verdict is Verdict.LOCAL_MTU
                  else "raise the MTU of the switch ports first, then the hosts")
        return about.fail(_SEEN[verdict].format(mtu=mtu), want, _WHY[verdict], remedy=remedy)
    return about.unknown(Unreadable(_REASONS[verdict], _WHY[verdict]), want,
                         remedy="" if verdict in (Verdict.TOOL_MISSING, Verdict.TIMEOUT) else "ping the peer by hand")
