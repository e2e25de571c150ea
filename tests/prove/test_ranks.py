"""Who died by itself, and who only followed."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Finding, Status
from fabrictool.prove import ranks
from fabrictool.prove.facts import AllReduce, all_reduce
from fabrictool.snapshot import Captured
from tests.prove.fleets import h20s, sparks
from tests.prove.recordings import Fleet


def judged(fleet: Fleet) -> list[Finding]:
    made = fleet.recording()
    facts = all_reduce(made)
    assert isinstance(facts, AllReduce)
    return list(ranks.judge(made, facts, "run1", "x"))


def ended(*statuses: int) -> list[tuple[str, Status]]:
    fleet = sparks(4)
    for rank, rc in enumerate(statuses):
        fleet.put("run1", fleet.hosts[rank], f"rank[{rank}]", Captured(rc, "", "its last line" if rc else ""))
    return [(f.subject.nodes[0], f.status) for f in judged(fleet)]


def test_all_well() -> None:
    assert {s for _, s in ended(0, 0, 0, 0)} == {Status.PASS}
    assert judged(h20s()) == []  # the launcher's own exit status tells


@pytest.mark.parametrize(("statuses", "blamed"), [
    ((3, 3, 137, 3), ["spark03"]), ((0, 139, 0, 0), ["spark02"]), ((1, 0, 0, 0), ["spark01"]), ((3, 134, 139, 3), ["spark02", "spark03"]),
    ((124, 1, 124, 124), ["spark02"]), ((124, 137, 124, 124), []), ((124, 124, 124, 124), []), ((137, 137, 137, 137), []),
    ((143, 1, 143, 143), ["spark02"]), ((143, 137, 143, 143), ["spark02"]), ((143, 143, 124, 143), []), ((143, 143, 143, 143), []),
    ((1, 1, 124, 1), ["spark01", "spark02", "spark04"]), ((124, 139, 137, 124), ["spark02"])])
def test_who_is_blamed(statuses: tuple[int, ...], blamed: list[str]) -> None:
    found = ended(*statuses)
    assert [node for node, status in found if status is Status.FAIL] == blamed
    assert all(status is not Status.PASS or statuses[int(node[-1]) - 1] == 0 for node, status in found)


def test_where_all_broke_alike_nobody_is_blamed() -> None:
    assert ended(2, 2, 2, 2) == []
    assert [s for _, s in ended(139, 139, 139, 139)] == [Status.FAIL] * 4


def test_the_deadline_of_our_own_program_is_no_death() -> None:
    fleet = sparks(3)
    for rank, node in enumerate(fleet.hosts):
        fleet.put("run1", node, f"rank[{rank}]", Captured(1, "", "Timeout (0:03:00)!\nThread 0x1 (most recent call first):\n"))
    assert judged(fleet) == []
    fleet.put("run1", "spark02", "rank[1]", Captured(1, "", "RuntimeError: x"))
    assert [f.subject.nodes for f in judged(fleet)] == [("spark02",)]


def test_a_rank_of_which_nothing_is_known_is_no_good_end() -> None:
    fleet = sparks(4)
    fleet.put("run1", "spark02", "rank[1]", None)
    found = {f.subject.nodes[0]: (f.status, f.code) for f in judged(fleet)}
    assert found["spark02"] == (Status.UNKNOWN, Code.UNREADABLE)
    assert found["spark03"][0] is Status.PASS


def test_how_it_ended_is_told() -> None:
    fleet = sparks(2)
    fleet.put("run1", "spark02", "rank[1]", Captured(139, "", "Segmentation fault"))
    (found,) = [f for f in judged(fleet) if f.bad]
    assert (found.code, found.got) == (Code.RANK_DIED, "rank 1: SIGSEGV (Segmentation fault)")
