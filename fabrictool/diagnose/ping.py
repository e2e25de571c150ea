"""ping as pasted: whether large packets that must not be fragmented pass, by the judge of the check path_mtu.

That large ones are lost shows a hole only beside small ones to the same address that pass, or where a device says so itself. That they
pass shows it only where the command line tells that they must not be fragmented (-M do; macOS: -D).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.model import Code, Finding, Status
from fabrictool.prove.ping import HOLES, Ping, Verdict, classify, received
from fabrictool.prove.ping import judge as judge_verdict
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line

KINDS = frozenset({Kind.PING})
PATH = "net.ping"
SMALL = 1500  # bytes of a packet that every Ethernet passes
HEADERS, HEADERS_IPV6 = 28, 48  # bytes of IP and ICMP around what -s asks for
_HEAD = re.compile(r"^PING (\S+?) ?\(([^()\s]+)\)(?:.{0,80}?\b\d+\((\d+)\) bytes of data|.{0,60}?\b(\d+) data bytes)?")
_SIZE = re.compile(r"(?:^|\s)-s ?(\d{1,5})\b")
_WHOLE = re.compile(r"(?:^|\s)(?:-M ?(?:do|probe)|-D)\b")
_NEXT = re.compile(r"(?:mtu ?[=:] ?|mtu = )(\d{2,5})", re.I)
_TELLS = re.compile(r"packets transmitted|message too long|[Ff]rag(?:mentation)? needed|[Pp]acket too big|[Uu]nreachable|^ping")
PROOF = "that RoCE passes: ICMP shows neither UDP port 4791 nor its priority (fabrictool check path_mtu tries all pairs, both ways)"


@dataclass(frozen=True, slots=True)
class _Seen:
    """One ping. `size`: bytes of its packets with all headers, where that is told; `whole`: they must not be fragmented."""

    case: Case
    target: str
    size: int | None
    whole: bool
    ping: Ping

    @property
    def large(self) -> bool:
        return self.size is not None and self.size > SMALL

    def lines(self) -> list[Line]:
        told = [ln for ln, _ in self.case.piece.find(_TELLS)]
        head = [ln for ln, _ in self.case.piece.find(r"^PING ")]
        return [*head[:1], *told[:1], *told[-1:]] or list(self.case.piece.lines[:1])


def judge(cases: Sequence[Case]) -> Iterator[Judged]:
    """A small ping beside a large one to the same address is its control, and has no verdict of its own."""
    seen = [_seen(c) for c in cases]
    pairs = [(one, _control(one, seen)) for one in seen]
    controls = {id(small) for _, small in pairs if small is not None}
    for one, small in pairs:
        if id(one) in controls:
            continue
        made = quoted(_judged(one, small), one.case.piece, one.lines())
        if small is not None and made.bad:
            made = replace(made, lines=(*made.lines, *(small.case.piece.quote(ln) for ln in small.lines()[-1:])))
        pieces = tuple(s.case.piece for s in (one, small) if s is not None)
        yield Judged(Kind.PING, pieces, (made,), f"to {one.target}" if one.target else "", (PROOF,) if made.status is Status.PASS else ())


def _control(large: _Seen, seen: Sequence[_Seen]) -> _Seen | None:
    if not large.large or not large.target:
        return None
    return next((s for s in seen if s.target == large.target and s.case.node == large.case.node and s.size is not None and not s.large
                 and received(s.ping)), None)


def _seen(case: Case) -> _Seen:
    piece = case.piece
    text = piece.text
    head = next((m for _, m in piece.find(_HEAD)), None)
    payload = head[4] if head and head[4] else m[1] if (m := _SIZE.search(piece.command)) else None
    around = HEADERS_IPV6 if head and ":" in head[2] else HEADERS
    size = int(head[3]) if head and head[3] else int(payload) + around if payload else None
    got = received(Ping(0, text))
    rc = piece.rc if piece.rc is not None else 0 if got and got[0] == got[1] > 0 else 1
    errors = "\n".join(ln.text for ln in piece.errors)
    return _Seen(case, head[2] if head else "", size, _WHOLE.search(piece.command) is not None, Ping(rc, text, errors))


def _judged(one: _Seen, small: _Seen | None) -> Finding:
    verdict = classify(one.ping, small.ping if small else Ping(124, ""))
    subject = one.case.subject
    about = About(Code.PATH_MTU_HOLE, subject, PATH, "")
    if verdict in HOLES and (one.large or verdict is not Verdict.HOLE):
        return _hole(one, verdict)
    got = received(one.ping)
    if got is None:
        return about.fail("no whole count of ping's answers", "packets sent and received", "it was cut, interrupted, or ping did not begin",
                          status=Status.UNKNOWN, remedy="paste the whole output, with its last lines and the command before it")
    sent, back = got
    count = f"{back} of {sent} answers" + (f", {one.size} bytes each" if one.size else "")
    if verdict is Verdict.OK and one.large and one.whole:
        return judge_verdict(verdict, subject, one.size or 0, PATH)
    if verdict is Verdict.OK:
        why = "large packets may have been fragmented: the command line with -M do is not here" if one.large else \
            "the address answers; small packets show nothing of large ones"
    elif back:
        why = "some packets were lost and some came back: the path loses packets, the MTU is not shown"
    elif re.search(r"[Uu]nreachable|[Nn]o route", one.ping.out):
        why = "the address is not reached at all: no verdict on the MTU; look at link, address, ARP and routes"
    elif one.large and small is None:
        why = "whether small packets pass is not here: if they do, a switch port on the way or the peer has a smaller MTU; if not, it " \
            "is the link, the address, ARP or a firewall"
    else:
        why = "small packets are lost as well: not the MTU; look at link, address, ARP and firewall (some hosts do not answer ping)"
    return about.fail(count, "large packets that pass undivided", why, status=Status.UNKNOWN,
                      remedy=f"ping -c 3 -M do -s {max(one.size or 0, 9000) - HEADERS} {one.target or 'PEER'} and ping -c 3 "
                             f"{one.target or 'PEER'}, each with its command line; or `fabrictool check path_mtu -i INVENTORY`")


def _hole(one: _Seen, verdict: Verdict) -> Finding:
    found = judge_verdict(verdict, one.case.subject, one.size or 0, PATH)
    limit = _NEXT.search(f"{one.ping.out}\n{one.ping.err}")
    if one.size is None:  # the message alone
        what = f"packets of more than {limit[1]} bytes" if limit else "large packets"
        return replace(found, got=f"{what} do not pass ({verdict})", want="large packets that pass undivided")
    return replace(found, got=f"{found.got}: the limit is {limit[1]}") if limit else found
