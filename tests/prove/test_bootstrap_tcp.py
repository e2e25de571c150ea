"""Connections between bootstrap addresses: what is blocked is told with its direction; what shows nothing is no pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictool.model import Code, Evidence, Finding, Reason, Status, SubjectKind, Unproven, Unreadable
from fabrictool.prove import Case
from fabrictool.prove.bootstrap_tcp import judge
from fabrictool.prove.cover import Cell, cover
from fabrictool.snapshot import Captured, Recording, Snapshot
from tests.prove.paths import case, names, tcp, without

ONE, TWO, THREE = "spark01", "spark02", "spark03"


def row(count: int, what: str = "ok", which: Callable[[Cell], bool] = lambda c: True) -> dict[Cell, str]:
    return {c: what if which(c) else "ok" for c in cover(names(count))}


def findings(made: Case) -> list[Finding]:
    return [s for s in judge(made) if isinstance(s, Finding)]


def worse(made: Case) -> list[Finding]:
    return [f for f in findings(made) if f.bad]


@pytest.mark.parametrize("count", [2, 4, 9])
def test_healthy_pairs_pass(count: int) -> None:
    found = findings(case(tcp(row(count)), count))
    assert {f.status for f in found} == {Status.PASS}
    pairs = [f for f in found if f.subject.kind is SubjectKind.PAIR]
    assert len(pairs) == len(cover(names(count))) // 2
    assert {f.got for f in pairs} == {"connects both ways"}
    assert all(f.path.startswith("bootstrap_tcp.") for f in found)


@pytest.mark.parametrize(("word", "says"), [
    ("refused", "refused"), ("timed-out", "timed out"), ("no-route", "no route to host"), ("not-permitted", "not permitted"),
    ("wrong-answer", "answered by something else")])
def test_each_way_to_be_blocked_names_its_direction(word: str, says: str) -> None:
    for count in (3, 9):
        for which, kind, node, peer, words in (
                (lambda c: c == (ONE, TWO), SubjectKind.PAIR, ONE, TWO, "from spark01 to spark02"),
                (lambda c: set(c) == {ONE, TWO}, SubjectKind.PAIR, ONE, TWO, "both ways between spark01 and spark02"),
                (lambda c: c[1] == TWO, SubjectKind.NODE, TWO, "", "to spark02 from spark01, spark03"),
                (lambda c: c[0] == TWO, SubjectKind.NODE, TWO, "", "from spark02 to spark01, spark03"),
                (lambda c: TWO in c, SubjectKind.NODE, TWO, "", "spark02: to and from spark01, spark03")):
            (found,) = worse(case(tcp(row(count, word, which)), count))
            assert (found.code, found.status) == (Code.BOOTSTRAP_BLOCKED, Status.FAIL)
            assert (found.subject.kind, found.subject.nodes, found.subject.peer) == (kind, (node,), peer)
            assert found.got.startswith(f"{says}: {words}")
            assert "ip_local_port_range" in found.remedy
    (found,) = worse(case(tcp(row(4, word)), 4))
    assert (found.subject.kind, found.subject.nodes) == (SubjectKind.FLEET, names(4))
    assert "none of 6 pairs connects" in found.got


@pytest.mark.parametrize(("word", "code"), [("none", Code.TOOL_MISSING), ("garbage", Code.UNREADABLE), ("failed", Code.UNREADABLE)])
def test_what_shows_nothing_is_unknown(word: str, code: Code) -> None:
    (found,) = worse(case(tcp(row(4, word, lambda c: c[0] == TWO)), 4))
    assert (found.code, found.status, found.subject.nodes) == (code, Status.UNKNOWN, (TWO,))
    assert "from spark02 to spark01, spark03, spark04" in found.why


def test_a_refusal_after_the_listener_ended_shows_nothing() -> None:
    for stop in (Captured(0, "was gone\n"), Captured(124, "")):
        (found,) = worse(case(tcp(row(3, "refused", lambda c: c[1] == TWO), spark02={"stop": stop}), 3))
        assert (found.status, found.subject.nodes) == (Status.UNKNOWN, (TWO,))
        assert "ended before its time" in found.why


@pytest.mark.parametrize(("listen", "code"), [
    (Captured(127, "", "sh: 1: python3: not found"), Code.TOOL_MISSING), (Captured(1, "", "cannot listen on it: x"), Code.UNREADABLE),
    (Captured(124, ""), Code.TOOL_TIMEOUT), (Captured(0, "listening 10.99.1.2 40001 4711\n"), Code.UNREADABLE),
    (Captured(0, "listening 10.10.1.2"), Code.UNREADABLE)])
def test_without_a_listener_there_is_no_verdict_on_that_node(listen: Captured, code: Code) -> None:
    found = findings(case(tcp(row(3), spark02={"listen": listen}), 3))
    assert [(f.code, f.subject.nodes) for f in found if f.status is Status.UNKNOWN] == [(code, (TWO,))]
    assert {f.subject.peer for f in found if f.got == "connects both ways"} == {THREE}


def test_another_port_or_address_than_the_listener_has_is_no_pass() -> None:
    said = Captured(0, "connected 10.10.1.1 10.10.1.2 40009 0.4\n")
    assert [f.status for f in worse(case(tcp(row(2), spark01={"connect[spark02]": said}), 2))] == [Status.UNKNOWN]
    made = tcp(row(2))
    fewer = {n: replace(s, sections={k: v for k, v in s.sections.items() if not k.startswith("connect")}) for n, s in
             made.takes["tcp"].items()}
    assert {f.status for f in findings(case(replace(made, takes={"tcp": fewer}), 2)) if f.path == "bootstrap_tcp.connect"} == {
        Status.UNKNOWN}


def test_what_a_login_shell_prints_first_is_no_matter() -> None:
    made = tcp(row(3))
    noisy = {n: replace(s, sections={k: replace(c, out=f"Welcome to {n}!\nlast login\n{c.out}") for k, c in s.sections.items()})
             for n, s in made.takes["tcp"].items()}
    assert worse(case(replace(made, takes={"tcp": noisy}), 3)) == []


def test_what_is_left_behind() -> None:
    (found,) = worse(case(tcp(row(3), spark03={"left": Captured(0, "process 4711 python3 - listen 2026 10.10.1.3 15\nend\n")}), 3))
    assert (found.code, found.status, found.subject.nodes) == (Code.LEFT_BEHIND, Status.FAIL, (THREE,))
    assert "process 4711" in found.got
    for unread in (Captured(1, "", "Traceback"), Captured(124, ""), Captured(0, ""), Captured(0, "en")):
        (found,) = worse(case(tcp(row(3), spark03={"left": unread}), 3))
        assert (found.status, found.path) == (Status.UNKNOWN, "bootstrap_tcp.left")


def test_nodes_that_say_nothing_and_nothing_to_try() -> None:
    made = case(tcp({c: "ok" for c in row(3) if THREE not in c}), 3)
    lost = Snapshot(THREE, error=Unreadable(Reason.UNREACHABLE, "no route to host"))
    assert {f.subject.nodes for f in worse(replace(made, snaps={**made.snaps, THREE: lost}))} == {(THREE,)}
    blind = replace(made, snaps={**made.snaps, TWO: without(made.snaps[TWO], "ports.ip")})
    assert (TWO,) in {f.subject.nodes for f in worse(blind)}
    assert [f.status for f in findings(case(tcp(row(2)), 2, bootstrap=None))] == [Status.SKIP]
    alone = findings(case(tcp({(ONE, ONE): "ok"}), 1))
    assert Code.SINGLE_NODE in {f.code for f in alone if f.status is Status.UNKNOWN}
    broken = Recording("bootstrap_tcp", error=Unreadable(Reason.FAILED, "it failed"))
    assert [(f.status, f.subject.kind) for f in findings(case(broken, 2))] == [(Status.UNKNOWN, SubjectKind.FLEET)]


def test_how_much_was_tried() -> None:
    said = list(judge(case(tcp(row(9)), 9, frozenset({"spark77"}))))
    assert {s.key: s.value for s in said if isinstance(s, Evidence)} == {"pairs_connected_both_ways": 18, "pairs_possible": 36}
    texts = [s.text for s in said if isinstance(s, Unproven)]
    assert ["18 pairs" in texts[0], "spark77" in texts[1]] == [True, True]
