"""The control run over sockets: RDMA counters stand still, and the kernel's own move."""

from __future__ import annotations

from dataclasses import replace

from fabrictool.model import Code, Evidence, Status
from fabrictool.prove import rdma_counters
from fabrictool.prove.control import PATH
from fabrictool.prove.facts import END, AllReduce, all_reduce
from fabrictool.snapshot import Captured, Recording
from tests.prove.fleets import sparks
from tests.prove.recordings import CONTROL, Fleet, control
from tests.prove.verdicts import Verdict, verdict

FAIL, UNKNOWN = Status.FAIL, Status.UNKNOWN
RAIL = "enp1s0f0np0"


def with_control(fleet: Fleet, made: Recording) -> Verdict:
    fleet.more["control"] = made
    return verdict(rdma_counters.judge, fleet)


def test_a_control_that_stands_still() -> None:
    got = with_control(sparks(4), control(sparks(4), RAIL, CONTROL[4]))
    assert got.passes
    assert len(got.at(f"{PATH}.run1.rdma")) == len(got.at(f"{PATH}.run1.sockets")) == 4
    assert "1.61 GB tx and 1.61 GB rx on enp1s0f0np0" in {f.got for f in got.at(f"{PATH}.run1.sockets")}
    assert not any("--control" in text for text in got.unproven)


def test_that_it_was_run_and_how_it_ended_is_among_the_figures() -> None:
    def told(made: Recording | None) -> bool:
        fleet = sparks(4)
        fleet.more |= {"control": made} if made else {}
        return any(isinstance(said, Evidence) and said.key == "control_run" for said in rdma_counters.judge(fleet.case()))

    assert told(control(sparks(4), RAIL, CONTROL[4]))
    assert not told(control(sparks(4), RAIL, CONTROL[4], leak=1_600_000_000))
    assert not told(None)


def test_without_one_nothing_is_said() -> None:
    (f,) = verdict(rdma_counters.judge, sparks(4)).at(PATH)
    assert f.status is Status.SKIP


def test_counters_that_move_in_the_control() -> None:
    got = with_control(sparks(4), control(sparks(4), RAIL, CONTROL[4], leak=1_600_000_000))
    assert (got.codes, got.nodes) == ({(Code.CONTROL_MOVED, FAIL)}, {"spark01"})
    assert with_control(sparks(4), control(sparks(4), RAIL, CONTROL[4], leak=900_000)).passes


def test_counters_that_moved_before_it_too() -> None:
    fleet = sparks(4)
    made = control(fleet, RAIL, CONTROL[4], leak=40_000_000)
    takes = dict(made.takes)
    busy = dict(takes["idle.after"])
    busy["spark01"] = takes["run1.after"]["spark01"]  # the window before it ends with the same bytes moved
    made = replace(made, takes={**takes, "idle.after": busy})
    assert (Code.FOREIGN_TRAFFIC, UNKNOWN) in with_control(fleet, made).codes


def test_a_control_that_moved_nothing_controls_nothing() -> None:
    for total in (0, CONTROL[4] // 2):
        got = with_control(sparks(4), control(sparks(4), RAIL, total))
        assert (got.codes, len(got.nodes)) == ({(Code.COUNTERS_SHORT, UNKNOWN)}, 4)
    other = control(sparks(4), "enP7s7", CONTROL[4])
    assert all_reduce(other) != all_reduce(control(sparks(4), RAIL, CONTROL[4]))
    assert with_control(sparks(4), other).passes  # pinned there, counted there


def test_a_control_that_is_none() -> None:
    fleet = sparks(4)
    made = control(fleet, RAIL, CONTROL[4])
    facts = all_reduce(made)
    for changed in ({"network": ""}, {"network": "IB"}, {"rank_nodes": ("spark01",)}):
        got = with_control(fleet, replace(made, facts=replace(facts, **changed).to_facts()))  # type: ignore[type-var]
        assert {s for _, s in got.codes} == {UNKNOWN}
    assert {s for _, s in with_control(fleet, Recording("control")).codes} == {UNKNOWN}


def test_a_control_that_broke_off_or_was_not_read() -> None:
    fleet = sparks(4)
    made = control(fleet, RAIL, CONTROL[4])
    run = dict(made.takes["run1"])
    run["spark02"] = replace(run["spark02"], sections={**run["spark02"].sections, "rank[1]": Captured(1, "", "boom\n")})
    got = with_control(fleet, replace(made, takes={**made.takes, "run1": run}))
    assert got.codes == {(Code.BLOCKED, UNKNOWN)}
    lost = with_control(fleet, replace(made, takes={k: v for k, v in made.takes.items() if k != "run1.after"}))
    assert {s for _, s in lost.codes} == {UNKNOWN}


def test_a_control_of_no_bytes_is_none() -> None:
    """"0 B or more each way by TCP" passed."""
    fleet = sparks(4)
    made = control(fleet, RAIL, CONTROL[4])
    facts = all_reduce(made)
    assert isinstance(facts, AllReduce)
    got = with_control(fleet, replace(made, facts=replace(facts, size_bytes=0).to_facts()))
    assert (Code.UNREADABLE, UNKNOWN) in got.codes
    assert not got.passes


def test_what_the_control_left_behind() -> None:
    """Nobody looked at what its own ranks left."""
    for moment in ("run1", END):
        made = control(sparks(4), RAIL, CONTROL[4])
        for text, status in (("process 4711 python\nend\n", FAIL), ("", UNKNOWN)):
            take = dict(made.takes[moment])
            take["spark02"] = replace(take["spark02"], sections={**take["spark02"].sections, "left": Captured(0, text)})
            got = with_control(sparks(4), replace(made, takes={**made.takes, moment: take}))
            assert [(f.status, f.subject.nodes) for f in got.at(f"{PATH}.left") if f.bad] == [(status, ("spark02",))]
    assert len([f for f in with_control(sparks(4), control(sparks(4), RAIL, CONTROL[4])).at(f"{PATH}.left") if not f.bad]) == 4
