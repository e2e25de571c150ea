"""A run that came to no result: the node that is the cause is named, and those that only wait or follow are not."""

from __future__ import annotations

from fabrictool.model import Code, Finding, Status, Unproven
from fabrictool.prove import allreduce, lossless_priority, rails, rdma_counters
from fabrictool.snapshot import Captured
from tests.prove import faulty, texts
from tests.prove.fleets import A, sparks
from tests.prove.recordings import WIRE, Fleet
from tests.prove.verdicts import verdict

SECOND = "spark02"
EVERYONE = ("spark01", "spark02", "spark03", "spark04")


def fails(fleet: Fleet) -> list[tuple[Code, tuple[str, ...]]]:
    return [(f.code, f.subject.nodes) for f in verdict(allreduce.judge, fleet).findings if f.status is Status.FAIL]


def stops(at: str) -> Fleet:
    """All hang in their start; the second node's log ends before the line that holds `at`."""
    return faulty.logged(faulty.hangs_in_init(sparks(4)), lambda text: text[:text.index(at)].rpartition("\n")[0] + "\n", (SECOND,))


def hang(fleet: Fleet) -> Finding:
    (one,) = [f for f in verdict(allreduce.judge, fleet).bad if f.code is Code.INIT_HANG]
    return one


def test_the_node_that_came_least_far_is_named_alone() -> None:
    fleet = stops("Init START")
    assert fails(fleet) == [(Code.INIT_HANG, (SECOND,))]
    assert "the network is chosen, the communicator has not begun" in hang(fleet).why
    assert "the others came further and wait: spark01, spark03, spark04" in hang(fleet).why


def test_a_node_that_did_not_even_begin_is_named_alone() -> None:
    fleet = stops("NET/IB : Using")
    assert fails(fleet) == [(Code.INIT_HANG, (SECOND,))]
    assert hang(fleet).why == "the others wait for it: spark01, spark03, spark04"


def test_all_wait_alike() -> None:
    assert fails(faulty.hangs_in_init(sparks(4))) == [(Code.INIT_HANG, EVERYONE)]


def test_a_rank_that_ended_because_others_were_gone_is_not_blamed() -> None:
    fleet = faulty.hangs_in_init(sparks(4))
    said = f"spark03:{texts.pid(2)}:9999 [0] NCCL INFO socketProgress: Connection closed by remote peer spark01<42001>\n"
    for run in fleet.facts.runs:
        fleet.put(run, "spark03", "rank[2]", Captured(5, "", "socketProgress: Connection closed by remote peer"))
    faulty.logged(fleet, lambda text: f"{text}\n{said}", ("spark03",))
    assert fails(fleet) == [(Code.INIT_HANG, ("spark01", "spark02", "spark04"))]
    own = faulty.hangs_in_init(sparks(4))
    for run in own.facts.runs:
        own.put(run, "spark03", "rank[2]", Captured(139, "", "Segmentation fault"))
    assert (Code.RANK_DIED, ("spark03",)) in fails(own)


def test_no_fallback_is_told_where_nothing_flows() -> None:
    found = verdict(allreduce.judge, faulty.mixed(sparks(4), SECOND)).findings
    said = [f for f in found if f.status is Status.FAIL]
    assert said[0].code is Code.NCCL_MIXED
    assert said[0].subject.nodes == (SECOND,)
    assert Code.TCP_FALLBACK not in {f.code for f in said}
    assert Code.TCP_FALLBACK in {f.code for f in verdict(allreduce.judge, faulty.fallback(sparks(4))).bad}


def blocked(fleet: Fleet) -> Finding:
    (f,) = [f for f in verdict(rdma_counters.judge, fleet).bad if f.code is Code.BLOCKED]
    return f


def test_what_blocks_the_counting_does_not_blame_the_first_rank() -> None:
    fleet = faulty.died(sparks(4), 2)
    fleet.facts = fleet.facts.__class__(**{**{n: getattr(fleet.facts, n) for n in fleet.facts.__slots__}, "runs": ("run1",)})
    why = blocked(fleet).why
    assert "4 of 4 ranks broke off (spark01, spark02, spark03, spark04)" in why
    late = sparks(4)
    late.facts = fleet.facts
    late.put("run1", "spark03", "rank[2]", Captured(1, "", "Timeout (0:02:00)!\nThread 0x0 (most recent call first):\n  File x, line 1"))
    assert "rank 2 on spark03: its time limit passed" in blocked(late).why


def busy(fleet: Fleet) -> Fleet:
    """Somebody else uses one function of the second node all the time."""
    for phase in ("idle", *fleet.phases):
        f = fleet.flow(phase, SECOND, A)
        f.tx, f.rx = f.tx + WIRE[4] * 9, f.rx + WIRE[4] * 9
    return fleet


def test_foreign_traffic_makes_no_nic_look_degraded_and_no_priority_look_blind() -> None:
    seen = verdict(rails.judge, busy(sparks(4)))
    assert seen.bad == []
    assert any("whether a NIC of spark02 is degraded" in text for text in seen.unproven)
    assert verdict(rails.judge, sparks(4)).unproven == []
    beside = verdict(lossless_priority.judge, busy(sparks(4)))
    assert beside.codes == {(Code.BLOCKED, Status.UNKNOWN)}
    assert beside.nodes == {SECOND}
    assert all("FOREIGN_TRAFFIC" in f.why for f in beside.bad)


def test_counters_that_stand_still_prove_no_nic_well() -> None:
    seen = list(rails.judge(faulty.no_traffic(sparks(4)).case()))
    assert [s for s in seen if isinstance(s, Finding) and s.path == "rails.measured"] == []
    assert len([s for s in seen if isinstance(s, Unproven)]) >= 1
