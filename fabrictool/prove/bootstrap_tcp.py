"""Whether every node can open a TCP connection to any free port of the others' bootstrap addresses: the judge of `bootstrap_tcp`.

NCCL, Gloo and torch all meet on ports that the kernel chooses. A firewall that knows only SSH lets their start hang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.model import Code, Evidence, Finding, Observed, Reason, Said, Status, Subject, SubjectKind, Unproven, Unreadable, Value
from fabrictool.prove.addresses import bootstrap_address, named, not_selected, untried
from fabrictool.prove.case import Case
from fabrictool.prove.cover import Blame, Cell, Whose, blame, cover, possible, undirected
from fabrictool.room import About
from fabrictool.snapshot import Recording, Snapshot

CHECK = "bootstrap_tcp"
MOMENT = "tcp"
LISTEN_S = 60  # a listener ends by itself after this: it outlives one node that hangs while all others wait for it (tests/probes)
PATH = f"{CHECK}.connect"
WANT = "a connection to a free port"


class Outcome(StrEnum):
    """How one connection ended."""

    CONNECTED = "connected"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    NO_ROUTE = "no route to host"
    NOT_PERMITTED = "not permitted"
    WRONG_ANSWER = "answered by something else"
    UNCLEAR = "not understood"
    TOOL_MISSING = "no python3"
    NOT_TRIED = "not tried"
    LISTENER_GONE = "the listener had ended"


BLOCKED = (Outcome.NOT_PERMITTED, Outcome.REFUSED, Outcome.NO_ROUTE, Outcome.WRONG_ANSWER, Outcome.TIMED_OUT)
_WORDS = {"refused": Outcome.REFUSED, "timed-out": Outcome.TIMED_OUT, "no-route": Outcome.NO_ROUTE,
          "not-permitted": Outcome.NOT_PERMITTED, "wrong-answer": Outcome.WRONG_ANSWER}
_WHY = {
    Outcome.REFUSED: "a program was listening there, so a firewall on that node, or on the way, refused",
    Outcome.TIMED_OUT: "nothing came back: a firewall that drops, or no way there",
    Outcome.NO_ROUTE: "no neighbour answers there, or a firewall rejects (firewalld's reject reads `No route to host`)",
    Outcome.NOT_PERMITTED: "the node's own firewall does not let it out",
    Outcome.WRONG_ANSWER: "something on the way answered in the listener's place: a proxy, or two nodes with one address",
    Outcome.UNCLEAR: "what the node said of the connection was not understood",
    Outcome.TOOL_MISSING: "no python3 on the node",
    Outcome.NOT_TRIED: "the recording holds no answer of this connection",
    Outcome.LISTENER_GONE: "the other node's listener ended before its time, so a refusal shows nothing",
}
_REASONS = {Outcome.UNCLEAR: Reason.GARBLED, Outcome.TOOL_MISSING: Reason.TOOL_MISSING, Outcome.NOT_TRIED: Reason.NOT_COLLECTED,
            Outcome.LISTENER_GONE: Reason.FAILED}
REMEDY = ("allow TCP between the bootstrap addresses on all ports of `sysctl net.ipv4.ip_local_port_range` (nft, ufw, firewalld, and the "
          "security group of a cloud)")


@dataclass(frozen=True, slots=True)
class Listening:
    """A listener: where it is, and whether it was still there when all others had tried."""

    address: str
    port: str
    stayed: bool


def judge(case: Case) -> Iterator[Said]:
    """A finding for each pair that connects; what is blocked is told with its direction, of as few as it concerns."""
    made = case.recording(CHECK)
    everyone = Subject(SubjectKind.FLEET, tuple(case.wants))
    if made.error:
        yield About(Code.BOOTSTRAP_BLOCKED, everyone, PATH, "").unknown(made.error, WANT)
        return
    nodes = tuple(n for n, want in case.wants.items() if want.bootstrap)
    if not nodes:
        yield About(Code.BOOTSTRAP_BLOCKED, everyone, PATH, "").skip("the spec names no bootstrap interface")
        return
    if len(nodes) < 2:
        yield About(Code.SINGLE_NODE, Subject(SubjectKind.NODE, nodes), PATH, "").fail(
            "one node", "two nodes", "only one of the selected nodes has a bootstrap interface: there is nobody to connect to",
            status=Status.UNKNOWN, remedy="select at least two nodes")
    addresses = {n: bootstrap_address(case.wants[n], case.snap(n)) for n in nodes}
    listening = {n: _listening(made.at(MOMENT, n), addresses[n]) for n in nodes}
    for node, seen in listening.items():
        if isinstance(seen, Unreadable):
            yield About(Code.BOOTSTRAP_BLOCKED, Subject(SubjectKind.NODE, (node,)), f"{CHECK}.listen", "").unknown(seen, "a listener")
    outcomes = {(a, b): _outcome(made.at(MOMENT, a), b, there) for a, b in cover(nodes)
                if not made.at(MOMENT, a).error and isinstance(there := listening[b], Listening)}
    yield from _told(outcomes, everyone)
    yield from _left(made, nodes)
    connected = [c for c, o in outcomes.items() if o is Outcome.CONNECTED]
    yield Evidence("pairs_connected_both_ways", sum(1 for a, b in connected if (b, a) in connected) // 2)
    yield Evidence("pairs_possible", possible(nodes))
    for text in (untried(nodes, "connections"), not_selected(case)):
        if text:
            yield Unproven(text)


def last_line(text: str) -> str:
    """Where listen.py says its one word: a login shell may have printed its own before."""
    return next((ln.strip() for ln in reversed(text.splitlines()) if ln.strip()), "")


def _listening(take: Snapshot, address: Observed[str]) -> Listening | Unreadable:
    if take.error:
        return take.error
    if not isinstance(address, Value):
        return address if isinstance(address, Unreadable) else Unreadable(Reason.EMPTY, f"{address.what}: absent")
    text = take.text("listen")
    if isinstance(text, Unreadable):
        return text
    words = last_line(text.value).split()
    if len(words) != 4 or words[0] != "listening" or words[1] != address.value or not words[2].isdigit():
        return Unreadable(Reason.GARBLED, f"listen: {text.value.strip()[:120]}")
    stopped = take.text("stop")
    return Listening(words[1], words[2], isinstance(stopped, Value) and last_line(stopped.value) == "was listening")


def _outcome(take: Snapshot, peer: str, there: Listening) -> Outcome:
    got = take.sections.get(f"connect[{peer}]")
    if got is None:
        return Outcome.NOT_TRIED
    if got.rc in (126, 127):
        return Outcome.TOOL_MISSING
    words = last_line(got.out).split()
    if got.rc == 0:
        whole = len(words) == 5 and words[0] == "connected" and words[2:4] == [there.address, there.port]
        return Outcome.CONNECTED if whole else Outcome.UNCLEAR
    outcome = _WORDS.get(words[0], Outcome.UNCLEAR) if words and got.rc == 1 else Outcome.UNCLEAR
    return Outcome.LISTENER_GONE if outcome in BLOCKED and not there.stayed else outcome


def _told(outcomes: Mapping[Cell, Outcome], everyone: Subject) -> Iterator[Finding]:
    connected = [c for c, o in outcomes.items() if o is Outcome.CONNECTED]
    for a, b in connected:
        both = (b, a) in connected
        if not both or connected.index((a, b)) < connected.index((b, a)):
            yield About(Code.BOOTSTRAP_BLOCKED, Subject(SubjectKind.PAIR, (a,), peer=b), PATH, "").ok(
                f"connects {'both ways' if both else 'this way'}", WANT)
    blocked = [c for c, o in outcomes.items() if o in BLOCKED]
    for one in blame(blocked, connected):
        how = tuple(dict.fromkeys(outcomes[c] for c in one.cells))
        yield About(Code.BOOTSTRAP_BLOCKED, _subject(one, everyone), PATH, "").fail(
            f"{' or '.join(how)}: {_direction(one)}", WANT, "; ".join(_WHY[o] for o in how), remedy=REMEDY)
    for outcome, reason in _REASONS.items():
        cells = [c for c, o in outcomes.items() if o is outcome]
        for one in blame(cells, [c for c in outcomes if c not in cells]):
            yield About(Code.BOOTSTRAP_BLOCKED, _subject(one, everyone), PATH, "").unknown(
                Unreadable(reason, f"{_direction(one)}: {_WHY[outcome]}"), WANT)


def _subject(one: Blame, everyone: Subject) -> Subject:
    if one.whose is Whose.EVERY:
        return everyone
    return Subject(SubjectKind.PAIR if one.peer else SubjectKind.NODE, (one.node,), peer=one.peer)


def _direction(one: Blame) -> str:
    if one.whose is Whose.EVERY:
        return f"none of {undirected(one.cells)} pairs connects"
    if one.peer:
        return f"{'both ways between' if one.whose is Whose.BOTH_WAYS else 'from'} {one.node} {_to(one)} {one.peer}"
    others = named(dict.fromkeys(n for cell in one.cells for n in cell if n != one.node))
    way = {Whose.NODE: "to and from", Whose.INTO: f"to {one.node} from", Whose.OUT_OF: f"from {one.node} to"}[one.whose]
    return f"{one.node}: {way} {others}" if one.whose is Whose.NODE else f"{way} {others}"


def _to(one: Blame) -> str:
    return "and" if one.whose is Whose.BOTH_WAYS else "to"


def _left(made: Recording, nodes: tuple[str, ...]) -> Iterator[Finding]:
    """Nothing of the run may be there afterwards."""
    for node in nodes:
        take = made.at(MOMENT, node)
        if take.error:
            continue
        about = About(Code.LEFT_BEHIND, Subject(SubjectKind.NODE, (node,)), f"{CHECK}.left", "")
        got = take.raw("left")
        lines = [] if isinstance(got, Unreadable) else got.out.split("\n")
        found = [ln.strip() for ln in lines if ln.startswith("process ")]
        if found:
            yield about.fail(found[0][:200], "nothing of this run", "a listener of this probe is still there",
                             remedy=f"it ends by itself within {LISTEN_S} s; if not, end that process by its number")
        elif isinstance(got, Unreadable) or got.rc != 0 or last_line(got.out) != "end":
            seen = got if isinstance(got, Unreadable) else Unreadable(Reason.FAILED, f"left: exit status {got.rc}: {got.tail}")
            yield about.unknown(seen, "nothing of this run")
        else:
            yield about.ok("nothing of this run")
