"""Full frames between nodes: what failed is told of the pair, the node, the rail or the fleet; what was not seen is no pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictool.model import Code, Evidence, Finding, Reason, Status, SubjectKind, Unproven, Unreadable
from fabrictool.prove import Case
from fabrictool.prove.cover import Cell, cover
from fabrictool.prove.path_mtu import judge
from fabrictool.snapshot import Captured, Recording, Snapshot
from tests.prove.paths import case, fabric, names, pings, without

Cells = dict[str, dict[Cell, str]]


def cells(count: int, rails: tuple[str, ...] = ("a", "b")) -> Cells:
    return {rail: dict.fromkeys(cover(names(count)), "ok") for rail in rails}


def spoiled(count: int, rail: str, what: str, which: Callable[[Cell], bool]) -> Cells:
    out = cells(count)
    out[rail] |= {c: what for c in out[rail] if which(c)}
    return out


def findings(made: Case) -> list[Finding]:
    return [s for s in judge(made) if isinstance(s, Finding)]


def worse(made: Case) -> list[Finding]:
    return [f for f in findings(made) if f.bad]


def test_healthy_pairs_pass_with_a_finding_each() -> None:
    found = findings(case(pings(cells(4)), 4))
    assert {f.status for f in found} == {Status.PASS}
    assert len(found) == 12
    assert {(f.subject.nodes[0], f.subject.peer, f.subject.rail) for f in found if f.subject.rail == "b"} == {
        (a, b, "b") for i, a in enumerate(names(4)) for b in names(4)[i + 1:]}
    assert found[0].got == "9000 bytes pass both ways"
    assert all(f.path.startswith("path_mtu.") for f in found)


ONE, TWO, THREE = "spark01", "spark02", "spark03"


def test_one_cause_is_one_finding_that_names_it() -> None:
    for count in (3, 4, 9):
        for which, kind, nodes, peer, words in (
                (lambda c: set(c) == {ONE, TWO}, SubjectKind.PAIR, (ONE,), TWO, "both ways between spark01 and spark02"),
                (lambda c: c == (TWO, ONE), SubjectKind.PAIR, (TWO,), ONE, "from spark02 to spark01"),
                (lambda c: THREE in c, SubjectKind.FUNCTION, (THREE,), "", "to and from spark"),
                (lambda c: c[1] == TWO, SubjectKind.FUNCTION, (TWO,), "", "towards it from spark"),
                (lambda c: True, SubjectKind.RAIL, names(count), "", "pairs of rail b")):
            (found,) = worse(case(pings(spoiled(count, "b", "hole", which)), count))
            assert (found.code, found.status, found.subject.rail) == (Code.PATH_MTU_HOLE, Status.FAIL, "b")
            assert (found.subject.kind, found.subject.nodes, found.subject.peer) == (kind, nodes, peer)
            assert words in found.got
            assert "switch" in found.remedy


def test_of_two_nodes_the_pair_is_named() -> None:
    (found,) = worse(case(pings(spoiled(2, "a", "hole", lambda c: True)), 2))
    assert (found.subject.kind, found.subject.nodes, found.subject.peer, found.subject.rail) == (SubjectKind.PAIR, (ONE,), TWO, "a")
    assert found.got == "pings of 9000 bytes are lost, small ones pass: both ways between spark01 and spark02"
    assert found.why.endswith("a third one would")
    (of_three,) = worse(case(pings(spoiled(3, "a", "hole", lambda c: set(c) == {ONE, TWO})), 3))
    assert "third" not in of_three.why


def test_no_pair_of_any_rail_is_one_finding_about_the_fleet() -> None:
    every = {rail: dict.fromkeys(row, "hole") for rail, row in cells(4).items()}
    (found,) = worse(case(pings(every), 4))
    assert (found.subject.kind, found.status) == (SubjectKind.FLEET, Status.FAIL)
    assert "none of 12 pairs on any of 2 rails" in found.got


def test_a_small_interface_of_a_node_explains_what_fails_towards_it() -> None:
    """It says so itself when it sends; what is sent to it is merely lost. Also where there is one peer only."""
    for count in (2, 4):
        row = spoiled(count, "a", "hole", lambda c: c[1] == TWO)
        row["a"] |= {c: "local" for c in row["a"] if c[0] == TWO}
        (found,) = worse(case(pings(row), count))
        assert (found.subject.kind, found.subject.nodes, found.subject.function) == (SubjectKind.FUNCTION, (TWO,), "enp1s0f0np0")
        assert "refused by the sending node itself" in found.got
        assert "raise the interface's MTU" in found.remedy


@pytest.mark.parametrize(("what", "code"), [("lost", Code.UNREADABLE), ("partly", Code.UNREADABLE), ("none", Code.TOOL_MISSING),
                                            ("silent", Code.TOOL_TIMEOUT)])
def test_what_shows_nothing_is_unknown_and_said_once(what: str, code: Code) -> None:
    (found,) = worse(case(pings(spoiled(4, "a", what, lambda c: c[0] == TWO)), 4))
    assert (found.code, found.status, found.subject.nodes, found.subject.rail) == (code, Status.UNKNOWN, (TWO,), "a")
    assert "from it to spark01, spark03, spark04" in found.why


def test_a_ping_of_another_size_or_to_another_address_proves_nothing() -> None:
    small = pings(cells(2), mtu=1500)
    assert {f.status for f in findings(case(small, 2))} == {Status.UNKNOWN}
    made = pings(cells(2))
    elsewhere = {n: replace(s, sections={k: replace(c, out=c.out.replace("10.10.", "10.11.")) for k, c in s.sections.items()})
                 for n, s in made.takes["ping"].items()}
    assert {f.status for f in findings(case(replace(made, takes={"ping": elsewhere}), 2))} == {Status.UNKNOWN}


def test_pings_that_are_not_in_the_recording_are_no_pass() -> None:
    made = case(pings(cells(3, ("a",))), 3)
    assert {f.subject.rail: f.status for f in findings(made)} == {"a": Status.PASS, "b": Status.UNKNOWN}
    row = cells(3)
    del row["b"][(ONE, THREE)]
    assert [(f.status, f.subject.nodes, f.subject.peer) for f in worse(case(pings(row), 3))] == [(Status.UNKNOWN, (ONE,), THREE)]
    found = findings(case(pings(row), 3))
    one_way = [f.got for f in found if (f.subject.nodes, f.subject.peer, f.subject.rail) == ((THREE,), ONE, "b")]
    assert one_way == ["9000 bytes pass this way"]


def test_a_node_that_was_not_reached_is_unknown_and_the_others_are_judged() -> None:
    made = case(pings({r: {c: w for c, w in row.items() if THREE not in c} for r, row in cells(3).items()}), 3)
    lost = Snapshot(THREE, error=Unreadable(Reason.UNREACHABLE, "no route to host"))
    found = findings(replace(made, snaps={**made.snaps, THREE: lost}))
    assert [(f.status, f.subject.nodes) for f in found] == [(Status.UNKNOWN, (THREE,)), (Status.PASS, (ONE,)), (Status.PASS, (ONE,))]


def test_an_address_that_cannot_be_read_is_said_of_its_interface() -> None:
    made = case(pings({r: {c: w for c, w in row.items() if TWO not in c} for r, row in cells(3).items()}), 3)
    takes = {**made.recording("path_mtu").takes["ping"], TWO: Snapshot(TWO, {"other": Captured(0, "")})}
    recordings = {"path_mtu": replace(made.recording("path_mtu"), takes={"ping": takes})}
    blind = replace(made, snaps={**made.snaps, TWO: without(made.snaps[TWO], "ports.ip")}, recordings=recordings)
    found = worse(blind)
    assert {(f.status, f.subject.nodes, f.subject.kind) for f in found} == {(Status.UNKNOWN, (TWO,), SubjectKind.FUNCTION)}
    assert {f.subject.rail for f in found} == {"a", "b"}


def test_one_node_has_no_path_to_try() -> None:
    alone = findings(case(pings(cells(1)), 1))
    assert {(f.code, f.status) for f in alone if f.subject.kind is SubjectKind.RAIL} == {(Code.SINGLE_NODE, Status.UNKNOWN)}
    assert {f.status for f in alone} == {Status.UNKNOWN}


def test_nothing_to_try() -> None:
    unasked = findings(case(pings(cells(2)), 2, fabric=fabric(mtu=None)))
    assert [f.status for f in unasked] == [Status.SKIP]
    broken = Recording("path_mtu", error=Unreadable(Reason.FAILED, "the probe failed"))
    assert [(f.status, f.subject.kind) for f in findings(case(broken, 2))] == [(Status.UNKNOWN, SubjectKind.FLEET)]


def test_what_was_not_tried_is_said() -> None:
    said = list(judge(case(pings(cells(9)), 9)))
    numbers = {s.key: s.value for s in said if isinstance(s, Evidence)}
    assert numbers == {"pairs_with_a_verdict": 36, "pairs_possible": 72, "pings_with_a_verdict": 72, "mtu_bytes": 9000}
    (pairs, across) = [s.text for s in said if isinstance(s, Unproven)]
    assert "between 18 pairs" in pairs
    assert "spark01-spark03" in pairs
    assert "one rail to another" in across
    few = [s.text for s in judge(case(pings(cells(2)), 2, frozenset({"spark09"}), fabric=fabric(cross_rail=False)))
           if isinstance(s, Unproven)]
    assert few == ["anything about spark09: not selected"]
