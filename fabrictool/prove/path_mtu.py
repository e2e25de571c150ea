"""Whether full frames pass undivided between the selected nodes, on every rail, both ways: the judge of the probe `path_mtu`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabrictool import ports
from fabrictool.model import Code, Evidence, Finding, Observed, Said, Status, Subject, SubjectKind, Unproven, Value
from fabrictool.prove.addresses import named, not_selected, rail_functions, rail_nodes, untried
from fabrictool.prove.case import Case
from fabrictool.prove.cover import Blame, Cell, Whose, blame, cover, possible, undirected
from fabrictool.prove.ping import HOLES, Ping, Verdict, classify
from fabrictool.prove.ping import judge as judge_verdict
from fabrictool.room import About
from fabrictool.snapshot import Recording, Snapshot

CHECK = "path_mtu"
MOMENT = "ping"
PATH = f"{CHECK}.ping"
WHICH_END = "two nodes alone do not show at which of them: a third one would"
_HEADER = re.compile(r"^PING \S{1,64} \(([0-9a-fA-F.:]{2,45})\)[^\n]{0,120}?\b[0-9]{1,5}\(([0-9]{1,5})\) bytes of data", re.M)


@dataclass(frozen=True, slots=True)
class _Rail:
    """One rail as it was tried. `functions`, `addresses`: node -> its own; `mtu`: bytes, the smallest that the spec wants on it."""

    name: str
    mtu: int
    functions: Mapping[str, ports.BoundFunction]
    addresses: Mapping[str, Observed[str]]
    verdicts: Mapping[Cell, Verdict]

    def cells(self, *verdicts: Verdict) -> tuple[Cell, ...]:
        return tuple(cell for cell, seen in self.verdicts.items() if seen in verdicts)


def judge(case: Case) -> Iterator[Said]:
    """One finding for each pair and rail that passes; what fails is told of the pair, the node, the rail or the fleet that it is about."""
    made = case.recording(CHECK)
    everyone = Subject(SubjectKind.FLEET, tuple(case.wants))
    about = About(Code.PATH_MTU_HOLE, everyone, PATH, "")
    if made.error:
        yield about.unknown(made.error, "full frames pass undivided")
        return
    rails = rail_nodes(case.wants)
    if not rails or all(want.fabric.mtu is None for want in case.wants.values()):
        yield about.skip("the spec names no MTU or no rail")
        return
    yield from _nodes(case, made)
    done = [_rail(case, made, name, nodes) for name, nodes in rails.items()]
    yield from _single(case, done)
    yield from _holes(everyone, done)
    for rail in done:
        yield from _addresses(case, rail)
        yield from _passing(rail)
        yield from _unknown(rail)
    yield from _extent(case, rails, done)


def _nodes(case: Case, made: Recording) -> Iterator[Finding]:
    for name in case.wants:
        lost = made.at(MOMENT, name).error
        if lost:
            yield About(Code.PATH_MTU_HOLE, Subject(SubjectKind.NODE, (name,)), PATH, "").unknown(lost, "pings from this node")


def _rail(case: Case, made: Recording, name: str, nodes: Sequence[str]) -> _Rail:
    functions = {n: fns[name] for n in nodes if name in (fns := rail_functions(case.wants[n], case.snap(n)))}
    addresses = {n: ports.rail_address(fn, case.wants[n]) for n, fn in functions.items()}
    mtus = [m for n in nodes if (m := case.wants[n].fabric.mtu) is not None]
    mtu = min(mtus, default=0)
    verdicts: dict[Cell, Verdict] = {}
    for node, peer in cover(nodes) if mtu else ():
        take, target = made.at(MOMENT, node), addresses.get(peer)
        if take.error or not isinstance(target, Value) or not isinstance(addresses.get(node), Value):
            continue  # said once, of the node
        verdicts[(node, peer)] = _verdict(take, f"{name} {peer}", mtu, target.value)
    return _Rail(name, mtu, functions, addresses, verdicts)


def _verdict(take: Snapshot, item: str, mtu: int, target: str) -> Verdict:
    large, small = (_ping(take, f"{kind}[{item}]") for kind in ("large", "small"))
    if large is None or small is None:
        return Verdict.NOT_PINGED
    verdict = classify(large, small)
    if verdict is Verdict.OK:  # only what filled this MTU, towards this address, shows it
        head = _HEADER.search(large.out.replace("\r", ""))
        if head is None or head[1] != target or int(head[2]) != mtu:
            return Verdict.GARBLED
    return verdict


def _ping(take: Snapshot, key: str) -> Ping | None:
    got = take.sections.get(key)
    return None if got is None or got.cut or got.denied else Ping(got.rc, got.out, got.err)


def _single(case: Case, rails: Sequence[_Rail]) -> Iterator[Finding]:
    """A rail on which there is nobody to speak to."""
    for rail in rails:
        if rail.mtu and len(rail.functions) < 2:
            subject = Subject(SubjectKind.RAIL, tuple(rail.functions), rail=rail.name)
            yield About(Code.SINGLE_NODE, subject, PATH, "").fail(
                "one node", "two nodes", f"only one of the selected nodes is on rail {rail.name}: there is no path to try",
                status=Status.UNKNOWN, remedy="select at least two nodes of the rail")
        elif not rail.mtu:
            yield About(Code.PATH_MTU_HOLE, Subject(SubjectKind.RAIL, tuple(rail.functions), rail=rail.name), PATH, "").skip(
                "the spec names no MTU here")


def _addresses(case: Case, rail: _Rail) -> Iterator[Finding]:
    for node, seen in rail.addresses.items():
        if not isinstance(seen, Value) and not case.snap(node).error:
            about = About(Code.PATH_MTU_HOLE, rail.functions[node].subject(case.wants[node]), PATH, "")
            yield about.unknown(seen, f"{rail.mtu} bytes pass undivided", "see the check rdma or link for this interface")


def _holes(everyone: Subject, rails: Sequence[_Rail]) -> Iterator[Finding]:
    """All that fails. When no pair of any rail passes it is one finding: the switch, or every host."""
    blamed = [(rail, one) for rail in rails for one in _blames(rail)]
    whole = [rail for rail, one in blamed if one.whose is Whose.EVERY]
    if len(whole) == len(rails) > 1 and len({rail.mtu for rail in rails}) == 1:
        pairs = sum(undirected(rail.verdicts) for rail in rails)
        found = judge_verdict(_common(whole[0], whole[0].cells(*HOLES)), everyone, whole[0].mtu, PATH)
        yield _with(found, f"{found.got}: none of {pairs} pairs on any of {len(rails)} rails")
        return
    for rail, one in blamed:
        found = judge_verdict(_common(rail, one.cells), _subject(rail, one), rail.mtu, PATH)
        told = _with(found, f"{found.got}: {_whose(rail, one)}")
        yield replace(told, why=f"{told.why}; {WHICH_END}") if one.peer and len(rail.functions) == 2 else told


def _blames(rail: _Rail) -> tuple[Blame, ...]:
    """A node whose own interface is too small for each of its pings is the cause of what fails towards it as well."""
    bad = rail.cells(*HOLES)
    local = [n for n in rail.functions if (mine := [v for (a, _), v in rail.verdicts.items() if a == n])
             and all(v is Verdict.LOCAL_MTU for v in mine)]
    own = tuple(Blame(Whose.NODE, n, cells=tuple(c for c in bad if n in c)) for n in local)
    left = [c for c in bad if not set(c) & set(local)]
    return (*own, *blame(left, rail.cells(Verdict.OK)))


def _common(rail: _Rail, cells: Sequence[Cell]) -> Verdict:
    """What the pings of `cells` say together: what the network said of itself comes before what was merely lost."""
    said = [rail.verdicts[cell] for cell in cells]
    return next(v for v in (*HOLES, *said) if v in said)


def _subject(rail: _Rail, one: Blame) -> Subject:
    if one.whose is Whose.EVERY:
        return Subject(SubjectKind.RAIL, tuple(rail.functions), rail=rail.name)
    if one.peer:
        return Subject(SubjectKind.PAIR, (one.node,), rail=rail.name, peer=one.peer)
    fn = rail.functions[one.node]
    return Subject(SubjectKind.FUNCTION, (one.node,), fn.port, fn.interface, rail.name)


def _whose(rail: _Rail, one: Blame) -> str:
    if one.whose is Whose.EVERY:
        return f"none of {undirected(rail.verdicts)} pairs of rail {rail.name}"
    if one.whose is Whose.BOTH_WAYS:
        return f"both ways between {one.node} and {one.peer}"
    if one.whose is Whose.ONE_WAY:
        return f"from {one.node} to {one.peer}"
    others = dict.fromkeys(n for cell in one.cells for n in cell if n != one.node)
    way = {Whose.NODE: "to and from", Whose.INTO: "towards it from", Whose.OUT_OF: "from it to"}[one.whose]
    return f"{way} {named(others)}"


def _with(found: Finding, got: str) -> Finding:
    """The finding with the place told in words; the code, subject and path stay."""
    return Finding(found.code, found.subject, found.path, found.aspect, got, found.want, found.why, found.status, remedy=found.remedy)


def _passing(rail: _Rail) -> Iterator[Finding]:
    good = rail.cells(Verdict.OK)
    for node, peer in good:
        both = (peer, node) in good
        if both and good.index((peer, node)) < good.index((node, peer)):
            continue
        found = judge_verdict(Verdict.OK, Subject(SubjectKind.PAIR, (node,), rail=rail.name, peer=peer), rail.mtu, PATH)
        yield _with(found, f"{found.got} {'both ways' if both else 'this way'}")


def _unknown(rail: _Rail) -> Iterator[Finding]:
    """What gave no verdict, by what it was, and told of as few as it concerns."""
    for verdict in Verdict:
        cells = () if verdict in (Verdict.OK, *HOLES) else rail.cells(verdict)
        for one in blame(cells, [c for c in rail.verdicts if c not in cells]):
            found = judge_verdict(verdict, _subject(rail, one), rail.mtu, PATH)
            yield Finding(found.code, found.subject, found.path, found.aspect, found.got, found.want,
                          f"{_whose(rail, one)}: {found.why}", found.status, remedy=found.remedy)


def _extent(case: Case, rails: Mapping[str, Sequence[str]], done: Sequence[_Rail]) -> Iterator[Said]:
    """How much was tried, and what was not."""
    judged = [cell for rail in done for cell in rail.cells(Verdict.OK, *HOLES)]
    yield Evidence("pairs_with_a_verdict", sum(undirected(rail.cells(Verdict.OK, *HOLES)) for rail in done))
    yield Evidence("pairs_possible", sum(possible(nodes) for nodes in rails.values()))
    yield Evidence("pings_with_a_verdict", len(judged))
    for mtu in {rail.mtu for rail in done if rail.mtu}:
        yield Evidence("mtu_bytes", mtu)
    pairs = [untried(nodes, "paths") for nodes in dict.fromkeys(tuple(n) for n in rails.values())]
    for text in (*pairs, not_selected(case), _across(case, rails)):
        if text:
            yield Unproven(text)


def _across(case: Case, rails: Mapping[str, Sequence[str]]) -> str:
    crossing = any(want.fabric.cross_rail for want in case.wants.values())
    return "paths from one rail to another: each rail was tried by itself" if crossing and len(rails) > 1 else ""
