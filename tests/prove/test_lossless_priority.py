"""How far the protected priority is proven: on paper, agreed, exercised, stressed; never more than was seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabrictool.model import Code, Reason, Status, Unreadable
from fabrictool.prove.case import Case
from fabrictool.prove.lossless_priority import MEANS, Proven, judge
from fabrictool.snapshot import Captured, Snapshot
from tests.ports.sample import A as IF_A
from tests.ports.sample import B as IF_B
from tests.prove.fleets import A, B, h20s, sparks
from tests.prove.recordings import WIRE, Fleet, noisy
from tests.prove.verdicts import Verdict, verdict
from tests.qos.device import configured
from tests.qos.nodes import sections_of
from tests.specs import SPARK

FAIL, WARN, UNKNOWN, PASS = Status.FAIL, Status.WARN, Status.UNKNOWN, Status.PASS
NODE = "spark04"


def qos(fleet: Fleet, interface: str = IF_B, **changes: Any) -> Fleet:
    """The node's interface with another setting."""
    snap = fleet.snaps[NODE]
    fleet.snaps[NODE] = replace(snap, sections={**snap.sections, **sections_of(interface, configured(**changes))})
    return fleet


@pytest.mark.parametrize("fleet", [sparks(2), sparks(4), h20s()], ids=["two", "four", "h20"])
def test_healthy_fleets_have_it_exercised(fleet: Fleet) -> None:
    got = verdict(judge, fleet)
    assert got.passes
    assert got.evidence == {"proven": "exercised",
                            "proven_means": "all nodes agree, and an AllReduce's bytes rode the protected priority"}
    assert "how the priority holds under pressure: this run caused no congestion (no pause frame, no ECN mark)" in got.unproven
    assert any("reboot" in text for text in got.unproven)
    assert len(got.at("lossless_priority.paper")) == len(fleet.wants) * len(fleet.rails)
    (text,) = {f.got for f in got.at("lossless_priority.paper")}
    assert text == "class 104 -> DSCP 26 -> priority 3 -> traffic class 3, buffer 0 of 262016 bytes -> PFC"


@pytest.mark.parametrize("seed", range(20))
def test_noise_fails_nobody(seed: int) -> None:
    got = verdict(judge, noisy(sparks(4) if seed % 4 else h20s(), seed))
    assert got.passes
    assert got.evidence["proven"] in ("exercised", "stressed")


def test_the_fabric_is_never_called_lossless() -> None:
    for fleet in (sparks(4), h20s(), qos(sparks(4), pfc=[0] * 8)):
        got = verdict(judge, fleet)
        said = [w for f in got.findings for w in (f.got, f.want, f.why)] + got.unproven + [str(v) for v in got.evidence.values()]
        assert not [text for text in said if "lossless" in text.lower() and "lossless priorit" not in text.lower()]


@pytest.mark.parametrize(("changes", "code"), [
    ({"app": {d: d // 8 for d in range(64)} | {26: 0}}, Code.QOS_DSCP_MAP), ({"app": {}}, Code.QOS_TRUST),
    ({"pfc": [0, 0, 0, 0, 1, 0, 0, 0]}, Code.QOS_PFC_WRONG_PRIORITY), ({"pfc": [0] * 8}, Code.QOS_PFC_MASK),
    ({"prio_tc": [3, 0, 2, 3, 4, 5, 6, 7]}, Code.QOS_SHARED_TC), ({"sizes": [0] * 8}, Code.QOS_BUFFER),
    ({"pause": (True, True)}, Code.QOS_GLOBAL_PAUSE),
])
def test_a_chain_that_is_open_on_paper(changes: dict[str, Any], code: Code) -> None:
    got = verdict(judge, qos(sparks(4), **changes))
    assert (code, FAIL) in got.codes
    assert (got.nodes, got.places) == ({NODE}, {f"p0/{IF_B}/rail b"})
    assert got.evidence["proven"] == "nothing"
    assert all(f.path.startswith("lossless_priority.") and not f.steps and f.remedy for f in got.bad)
    assert not got.at("lossless_priority.agreed")


def test_a_global_traffic_class_opens_the_chain() -> None:
    fleet = sparks(4)
    snap = fleet.snaps[NODE]
    text = Captured(0, "file\nGlobal tclass=160\nend of file\n")
    fleet.snaps[NODE] = replace(snap, sections={**snap.sections, f"rdma.tclass[{A}]": text})
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes) == ({(Code.RDMA_TCLASS_OVERRIDE, FAIL)}, {NODE})


def test_a_node_whose_settings_are_not_read() -> None:
    fleet = sparks(4)
    fleet.snaps[NODE] = Snapshot(NODE, error=Unreadable(Reason.UNREACHABLE, "no route"))
    got = verdict(judge, fleet)
    assert {s for _, s in got.codes} == {UNKNOWN}
    assert (got.nodes, got.evidence["proven"]) == ({NODE}, "nothing")


def test_nodes_that_use_different_priorities() -> None:
    fleet = sparks(2)
    other = {**SPARK["fabric"], "qos": {**SPARK["fabric"]["qos"], "dscp_to_priority": {26: 4}, "pfc": [4]}}
    odd = sparks(2, fabric=other).wants["spark02"]
    fleet.wants["spark02"] = odd
    snap = fleet.snaps["spark02"]
    device = {"app": {d: d // 8 for d in range(64)} | {26: 4}, "pfc": [0, 0, 0, 0, 1, 0, 0, 0]}
    fleet.snaps["spark02"] = replace(snap, sections={**snap.sections, **sections_of(IF_A, configured(**device)),
                                                     **sections_of(IF_B, configured(**device))})
    for run in fleet.phases:
        for d in (A, B):
            f = fleet.flow(run, "spark02", d)
            f.tx_priority = f.rx_priority = 4
    got = verdict(judge, fleet)
    assert got.codes == {(Code.QOS_PFC_WRONG_PRIORITY, FAIL)}
    assert got.bad[0].got == "priority 3 on spark01; priority 4 on spark02"
    assert got.evidence["proven"] == "configured"


@pytest.mark.parametrize("way", ["tx", "rx"])
def test_the_wrong_priority_carries_the_bytes(way: str) -> None:
    """NCCL_IB_TC missing, or the switch rewrites the DSCP: in either direction, with numbers."""
    fleet = sparks(4)
    for device in (A, B):
        setattr(fleet.flow("run2", NODE, device), f"{way}_priority", 0)
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes, got.places) == ({(Code.PRIORITY_WRONG, FAIL)}, {NODE}, {"p0"})
    assert (got.bad[0].path, "in run2" in got.bad[0].why) == (f"lossless_priority.bytes.{way}", True)
    assert "on others, most on 0" in got.bad[0].got
    assert got.evidence["proven"] == "agreed"


def test_the_one_who_sends_wrongly_is_blamed_and_not_who_receives_it() -> None:
    fleet = sparks(4)
    for device in (A, B):
        fleet.flow("run2", NODE, device).tx_priority = 0
        fleet.flow("run2", "spark04", device).rx_priority = 0
    got = verdict(judge, fleet)
    assert [(f.status, f.subject.nodes) for f in got.bad] == [(FAIL, (NODE,)), (WARN, ("spark04",))]
    assert f"as {NODE} sends them" in got.bad[1].why
    for device in (A, B):  # one more receiver than senders: the switch, or that node's own map
        fleet.flow("run2", "spark01", device).rx_priority = 0
    got = verdict(judge, fleet)
    assert {(f.status, f.subject.nodes[0]) for f in got.bad} == {(FAIL, n) for n in (NODE, "spark04", "spark01")}


def test_one_port_of_eight_sends_with_another_priority() -> None:
    fleet = h20s()
    fleet.flow("run1", "gpu02", "mlx5_7").tx_priority = 0
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes, got.places) == ({(Code.PRIORITY_WRONG, FAIL)}, {"gpu02"}, {"p5"})


def test_one_of_two_twins_sends_with_another_priority() -> None:
    fleet = sparks(4)
    fleet.flow("run1", NODE, B).tx_priority = 0
    assert verdict(judge, fleet).codes == {(Code.PRIORITY_WRONG, FAIL)}


def test_twins_are_never_added_up() -> None:
    """Half of the bytes on the wanted priority, shown by both functions, are half and not all."""
    fleet = sparks(4)
    fleet.flow("run1", NODE, A).tx_priority = fleet.flow("run1", NODE, B).tx_priority = 3
    assert verdict(judge, fleet).passes
    fleet.mirrors = False  # each shows its own half only
    got = verdict(judge, fleet)
    assert {s for _, s in got.codes} == {UNKNOWN}
    assert got.evidence["proven"] == "agreed"
    assert "twins" in got.bad[0].why


def lines(fleet: Fleet, keep: str) -> None:
    """On the node ethtool shows only lines without the word."""
    recording = fleet.recording()
    for run in fleet.facts.runs:
        for moment in (f"{run}.before", f"{run}.after"):
            for interface in (IF_A, IF_B):
                text = recording.at(moment, NODE).sections[f"counters.ethtool[{interface}]"].out
                rows = "".join(ln + "\n" for ln in text.splitlines() if keep not in ln)
                fleet.put(moment, NODE, f"counters.ethtool[{interface}]", Captured(0, rows))


def test_counters_that_the_firmware_hides() -> None:
    for word in ("_prio3_", "_prio"):
        fleet = sparks(4)
        lines(fleet, word)
        got = verdict(judge, fleet)
        assert (got.codes, got.nodes) == ({(Code.UNREADABLE, UNKNOWN)}, {NODE}), word
        assert got.evidence["proven"] == "agreed"


def test_counters_by_priority_that_stand_still_are_no_failure() -> None:
    fleet = sparks(4)
    before = fleet.recording()
    for run in fleet.facts.runs:
        for interface in (IF_A, IF_B):
            key = f"counters.ethtool[{interface}]"
            fleet.put(f"{run}.after", NODE, key, before.at(f"{run}.before", NODE).sections[key])
    got = verdict(judge, fleet)
    assert {s for _, s in got.codes} == {UNKNOWN}
    assert "firmware" in got.bad[0].why


def test_other_traffic_beside_ours_is_to_be_looked_at() -> None:
    fleet = sparks(4)
    fleet.flow("run1", NODE, A).ethtool["rx_prio0_bytes"] = 4_000_000_000
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes) == ({(Code.PRIORITY_WRONG, WARN)}, {NODE})
    assert got.evidence["proven"] == "exercised"


def test_a_run_that_was_no_rdma_is_not_held_against_the_priority() -> None:
    fleet = sparks(4)
    for device in (A, B):
        f = fleet.flow("run1", NODE, device)
        f.tx = f.rx = 0
        f.ethtool |= {"tx_prio0_bytes": WIRE[4], "rx_prio0_bytes": WIRE[4]}  # by TCP
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes) == ({(Code.BLOCKED, UNKNOWN)}, {NODE})
    assert "COUNTERS_SHORT" in got.bad[0].why


def test_an_idle_port_is_not_exercised() -> None:
    fleet = h20s()
    for device in fleet.rails:
        f = fleet.flow("run1", "gpu02", device)
        f.tx = f.rx = 0 if device == "mlx5_8" else round(f.tx * 8 / 7)
    got = verdict(judge, fleet)
    assert (got.codes, got.places) == ({(Code.BLOCKED, UNKNOWN)}, {"p6"})
    assert "RAIL_IDLE" in got.bad[0].why


@pytest.mark.parametrize("name", ["rx_prio3_pause", "tx_prio3_pause", "np_ecn_marked_roce_packets", "rp_cnp_handled"])
def test_pause_or_ecn_is_stress_unless_something_was_lost(name: str) -> None:
    fleet = sparks(4)
    f = fleet.flow("run2", NODE, A)
    (f.ethtool if "prio" in name else f.hw)[name] = 900
    got = verdict(judge, fleet)
    assert got.passes
    assert got.evidence["proven"] == "stressed"
    assert not any("pressure" in text for text in got.unproven)
    assert got.evidence["proven_means"] == MEANS[Proven.STRESSED]
    fleet.flow("run3", "spark01", B).hw["out_of_sequence"] = 1
    lossy = verdict(judge, fleet)
    assert lossy.evidence["proven"] == "exercised"
    assert "how the priority holds under pressure: packets were lost or damaged in this run" in lossy.unproven


@pytest.mark.parametrize("how", ["reset", "reboot"])
def test_a_broken_sample_proves_nothing(how: str) -> None:
    fleet = sparks(4)
    if how == "reboot":
        fleet.reboots.add(("run1", NODE))
    else:
        fleet.resets.add(("run1", NODE, A))
    got = verdict(judge, fleet)
    if how == "reboot":
        assert (got.codes, got.nodes) == ({(Code.COUNTERS_INVALID, UNKNOWN)}, {NODE})
        assert got.evidence["proven"] == "agreed"
    else:  # the port's own counters went on
        assert got.passes


def test_what_the_spec_does_not_ask_is_left_out() -> None:
    for fabric in ({**SPARK["fabric"], "traffic_class": None}, {**SPARK["fabric"], "qos": None},
                   {**SPARK["fabric"], "qos": {**SPARK["fabric"]["qos"], "pfc": []}}):
        got: Verdict = verdict(judge, sparks(2, fabric=fabric))
        assert {f.status for f in got.findings} == {Status.SKIP}
    assert {f.status for f in verdict(judge, sparks(2, ports={})).findings} == {Status.SKIP}


def test_a_spec_that_contradicts_itself() -> None:
    wrong = {**SPARK["fabric"], "qos": {**SPARK["fabric"]["qos"], "dscp_to_priority": {26: 5}}}
    got = verdict(judge, sparks(2, fabric=wrong))
    assert (Code.QOS_PFC_WRONG_PRIORITY, FAIL) in got.codes
    tag = {**SPARK["fabric"], "qos": {**SPARK["fabric"]["qos"], "trust": "pcp"}}
    got = verdict(judge, sparks(2, fabric=tag))
    assert {s for _, s in got.codes} == {UNKNOWN}
    assert got.evidence["proven"] == "nothing"


def test_without_a_run_paper_is_all_there_is() -> None:
    case = sparks(4).case()
    got = verdict(judge, Case(case.wants, case.snaps))
    assert got.codes == {(Code.UNREADABLE, UNKNOWN)}
    assert got.evidence["proven"] == "agreed"
    alone = replace(sparks(4).facts, rank_nodes=("spark01",))
    single = replace(case.recording("allreduce"), facts=alone.to_facts())
    assert verdict(judge, Case(case.wants, case.snaps, {"allreduce": single})).codes == {(Code.SINGLE_NODE, UNKNOWN)}
    outside = verdict(judge, Case(case.wants, case.snaps, {"allreduce": sparks(2).recording()}))
    assert (outside.codes, outside.nodes) == ({(Code.BLOCKED, UNKNOWN)}, {"spark03", "spark04"})


def test_every_level_is_explained_in_the_manual_page_too() -> None:
    page = " ".join((Path(__file__).resolve().parents[2] / "checks" / "lossless_priority.py").read_text(encoding="utf-8").split())
    assert set(MEANS) == set(Proven)
    assert [level for level in Proven if f" {level} = " not in page] == []
