"""Bytes, rails, foreign traffic and broken samples: each single fault flips a healthy fleet to its code and names the node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictool.model import Code, Reason, Status, Unreadable
from fabrictool.prove.case import Case
from fabrictool.prove.rdma_counters import judge
from fabrictool.snapshot import Captured, Recording
from tests.prove import faulty
from tests.prove.fleets import A, B, h20s, sparks
from tests.prove.recordings import WIRE, WIRE_H20, Fleet, noisy
from tests.prove.verdicts import Verdict, verdict

FAIL, WARN, UNKNOWN = Status.FAIL, Status.WARN, Status.UNKNOWN
NODE = "spark03"


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_healthy_sparks_pass_with_numbers(count: int) -> None:
    got = verdict(judge, sparks(count))
    assert got.passes
    assert got.evidence["expected_per_node_bytes"] == WIRE[count] - (count == 3)  # the third of a byte is left out
    assert got.evidence["least_share_of_expected"] == 1.02
    (sent,) = {f.got for f in got.at("rdma_counters.bytes.run1.tx")}
    assert "GB sent, 1.02" in sent
    assert {f.subject.nodes for f in got.at("rdma_counters.bytes.run3.rx")} == {(f"spark{i:02d}",) for i in range(1, count + 1)}
    assert any("--control" in text for text in got.unproven)


def test_healthy_h20s_pass() -> None:
    got = verdict(judge, h20s())
    assert got.passes
    assert got.evidence["expected_per_node_bytes"] == WIRE_H20
    assert {f.subject.function for f in got.at("rdma_counters.stray")} == {"mlx5_4", "mlx5_5"}


@pytest.mark.parametrize("seed", range(20))
def test_noise_fails_nobody(seed: int) -> None:
    assert verdict(judge, noisy(sparks(4) if seed % 4 else h20s(), seed)).passes


def flat(fleet: Fleet) -> None:
    """By TCP: good bandwidth, RDMA log lines if you like, and the kernel's path moves."""
    for run in fleet.phases:
        for device in (A, B):
            f = fleet.flow(run, NODE, device)
            f.tx = f.rx = 40_000
        fleet.socket_bytes[run, NODE] = ("enp1s0f0np0", WIRE[4])


def short(fleet: Fleet) -> None:
    for device in (A, B):
        fleet.flow("run2", NODE, device).tx = round(WIRE[4] * 0.96 / 2)


def one_rail(fleet: Fleet) -> None:
    for run in fleet.facts.runs:
        for way in ("tx", "rx"):
            setattr(fleet.flow(run, NODE, A), way, round(WIRE[4] * 1.02))
            setattr(fleet.flow(run, NODE, B), way, 5_000)


def weak_rail(fleet: Fleet) -> None:
    for way in ("tx", "rx"):
        setattr(fleet.flow("run1", NODE, A), way, round(WIRE[4] * 0.70))
        setattr(fleet.flow("run1", NODE, B), way, round(WIRE[4] * 0.32))


def foreign_before(fleet: Fleet) -> None:
    fleet.flow("idle", NODE, B).rx = 250_000_000


def foreign_beside(fleet: Fleet) -> None:
    fleet.flow("run3", NODE, A).rx = round(WIRE[4] * 0.70)


def reset(fleet: Fleet) -> None:
    fleet.resets.add(("run2", NODE, B))


def reboot(fleet: Fleet) -> None:
    fleet.reboots.add(("run2", NODE))


def frozen(fleet: Fleet) -> None:
    """What is read after the run is what was read before it, all but the clock."""
    case = fleet.recording()
    for key, got in case.at("run1.before", NODE).sections.items():
        if key != "counters.clock":
            fleet.put("run1.after", NODE, key, got)


def vanished(fleet: Fleet) -> None:
    fleet.put("run1.after", NODE, f"counters.rdma[{B}]", None)


FAULTS: list[tuple[Callable[[Fleet], None], Code, Status, str]] = [
    (flat, Code.COUNTERS_FLAT, FAIL, ""), (short, Code.COUNTERS_SHORT, FAIL, ""),
    (one_rail, Code.SINGLE_RAIL, FAIL, "p0/enP2p1s0f0np0/rail b"), (weak_rail, Code.RAIL_IDLE, WARN, "p0/enP2p1s0f0np0/rail b"),
    (foreign_before, Code.FOREIGN_TRAFFIC, UNKNOWN, ""), (foreign_beside, Code.FOREIGN_TRAFFIC, UNKNOWN, ""),
    (reset, Code.COUNTERS_INVALID, UNKNOWN, ""), (reboot, Code.COUNTERS_INVALID, UNKNOWN, ""),
    (frozen, Code.COUNTERS_INVALID, UNKNOWN, ""), (vanished, Code.COUNTERS_INVALID, UNKNOWN, "")]


@pytest.mark.parametrize(("fault", "code", "status", "place"), FAULTS, ids=[f[0].__name__ for f in FAULTS])
def test_one_fault_is_one_code_at_one_node(fault: Callable[[Fleet], None], code: Code, status: Status, place: str) -> None:
    fleet = sparks(4)
    fault(fleet)
    got = verdict(judge, fleet)
    assert got.codes - {(Code.COUNTERS_FLAT, WARN)} == {(code, status)}  # the run that is not gated warns when it is flat
    assert got.nodes == {NODE}
    assert place in got.places
    assert all(f.why and (f.remedy or f.status is UNKNOWN) for f in got.bad)


def test_flat_counters_name_where_the_bytes_were() -> None:
    fleet = sparks(4)
    flat(fleet)
    found = [f for f in verdict(judge, fleet).bad if f.status is FAIL]
    (f,) = found  # of three runs, both ways
    assert f.path == "rdma_counters.bytes"
    assert "80.0 kB sent" in f.got
    assert "80.0 kB received" in f.got
    assert "enp1s0f0np0 sent 19.73 GB" in f.why
    assert "TCP" in f.why


def test_one_of_eight_rails() -> None:
    fleet = h20s()
    for device in fleet.rails:
        f = fleet.flow("run1", "gpu02", device)
        f.tx = f.rx = 0 if device == "mlx5_8" else round(WIRE_H20 * 1.02 / 7)
    got = verdict(judge, fleet)
    assert got.codes == {(Code.RAIL_IDLE, FAIL)}
    assert (got.nodes, got.places) == ({"gpu02"}, {"p6/ens6np0/rail r6"})


def test_a_rail_whose_device_is_not_on_the_node() -> None:
    """NCCL leaves it out without a word; the counters of the others add up."""
    fleet = sparks(4)
    one_rail(fleet)
    node = fleet.snaps[NODE]
    text = "".join(ln + "\n" for ln in node.sections["ports.rdma"].out.splitlines() if B not in ln)
    fleet.snaps[NODE] = replace(node, sections={**node.sections, "ports.rdma": Captured(0, text)})
    fleet.counts[NODE].functions.pop()
    got = verdict(judge, fleet)
    assert got.codes == {(Code.SINGLE_RAIL, FAIL), (Code.COUNTERS_SHORT, WARN)}  # its run that is not gated lost half as well
    assert {f.why for f in got.bad if f.code is Code.SINGLE_RAIL} == {f"{B} is not on the node"}


def test_twins_add_up_and_are_two_rails() -> None:
    """Both functions of the one port: bytes are summed, and each is a rail of its own."""
    got = verdict(judge, sparks(2))
    assert len(got.at("rdma_counters.share.run1")) == 4
    assert {f.subject.rail for f in got.at("rdma_counters.share.run1")} == {"a", "b"}


@pytest.mark.parametrize(("section", "got"), [
    (f"counters.rdma[{B}]", Captured(0, "")), (f"counters.rdma[{B}]", Captured(124, "")), (f"counters.rdma[{B}]", Captured(0, "garbage\n")),
    (f"counters.rdma[{B}]", Captured(0, f"/sys/class/infiniband/{B}/ports/1/counters/port_xmit_data:N/A (no PMA)\n"
                                        "/proc/sys/kernel/ostype:Linux\n"))])
def test_counters_that_cannot_be_read_prove_nothing(section: str, got: Captured) -> None:
    """Neither sysfs nor ethtool: no pass, no failure, and no 0."""
    fleet = sparks(4)
    for moment in ("run1.before", "run1.after"):
        fleet.put(moment, NODE, section, got)
        fleet.put(moment, NODE, "counters.ethtool[enP2p1s0f0np0]", Captured(94, "", "no stats available"))
    seen = verdict(judge, fleet)
    assert seen.nodes == {NODE}
    assert {s for _, s in seen.codes} == {UNKNOWN}
    assert {f.status for f in seen.at("rdma_counters.bytes.run2.tx")} == {Status.PASS}


def test_ethtool_stands_in_for_sysfs() -> None:
    fleet = sparks(4)
    for moment in ("run1.before", "run1.after"):
        text = fleet.recording().at(moment, NODE).sections[f"counters.rdma[{B}]"].out
        lines = (ln for ln in text.splitlines() if "_data:" not in ln)
        fleet.put(moment, NODE, f"counters.rdma[{B}]", Captured(0, "".join(ln + "\n" for ln in lines)))
    assert verdict(judge, fleet).passes


def test_an_idle_window_that_was_not_read() -> None:
    fleet = sparks(4)
    fleet.put("idle.after", NODE, "counters.clock", Captured(0, "\n"))
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes) == ({(Code.UNREADABLE, UNKNOWN)}, {NODE})
    assert not [f for f in got.at("rdma_counters.bytes.run1.tx") if f.subject.nodes == (NODE,)]  # no pass beside it


def test_foreign_traffic_is_scaled_by_the_nodes_own_clock() -> None:
    """The same bytes in a window ten times as long are no reason to worry."""
    fleet = sparks(4)
    foreign_before(fleet)
    assert verdict(judge, fleet).codes == {(Code.FOREIGN_TRAFFIC, UNKNOWN)}
    fleet.idle_s *= 10
    assert verdict(judge, fleet).passes
    short(fleet)
    fleet.idle_s /= 10
    assert verdict(judge, fleet).codes == {(Code.FOREIGN_TRAFFIC, UNKNOWN), (Code.COUNTERS_SHORT, FAIL)}  # what is short is short


def test_a_run_that_broke_off_is_not_measured() -> None:
    for fleet, section in ((sparks(4), "rank[2]"), (h20s(), "launcher")):
        node = NODE if section != "launcher" else "gpu01"
        for device in fleet.rails:
            fleet.flow("run2", node, device).tx = 0
        failed = Captured(3, "", "NCCL failure\n")
        for got, word in ((Captured(137, "", "Killed\n"), "time limit"), (failed, "status 3: NCCL failure"), (None, "")):
            fleet.put("run2", node, section, got)
            seen = verdict(judge, fleet)
            assert seen.codes == {(Code.BLOCKED, UNKNOWN)}
            assert word in seen.bad[0].why
            assert seen.at("rdma_counters.bytes.run1.tx")


def test_wrong_numbers_do_not_hide_what_was_carried() -> None:
    """Their ranks end with another status than 0, but only after everything was sent."""
    fleet = faulty.wrong(sparks(4))
    for run in fleet.phases:
        for rank, node in enumerate(fleet.hosts):
            got = fleet.recording().at(run, node).sections[f"rank[{rank}]"]
            fleet.put(run, node, f"rank[{rank}]", replace(got, rc=7))
    assert verdict(judge, fleet).passes
    fleet.put("run2", "spark03", "rank[2]", Captured(139, "", "Segmentation fault"))
    assert verdict(judge, fleet).codes == {(Code.BLOCKED, UNKNOWN)}
    cut = faulty.wrong(sparks(4))
    for rank, node in enumerate(cut.hosts):
        cut.put("run1", node, f"rank[{rank}]", Captured(7, "", "no table at all"))
    assert verdict(judge, cut).codes == {(Code.BLOCKED, UNKNOWN)}


def test_nothing_to_judge() -> None:
    fleet = sparks(2)
    case = fleet.case()
    none = verdict(judge, Case(case.wants, case.snaps))
    assert none.codes == {(Code.UNREADABLE, UNKNOWN)}
    refused = Recording("allreduce", error=Unreadable(Reason.BLOCKED, "GPUs are busy"))
    assert verdict(judge, Case(case.wants, case.snaps, {"allreduce": refused})).codes == {(Code.BLOCKED, UNKNOWN)}
    for changed, code in (({"rank_nodes": ("spark01", "spark01")}, Code.SINGLE_NODE), ({"runs": ()}, Code.NO_RESULT),
                          ({"size_bytes": 0}, Code.UNREADABLE)):
        fleet.facts = replace(sparks(2).facts, **changed)
        seen: Verdict = verdict(judge, Case(case.wants, case.snaps, {"allreduce": replace(fleet.recording())}))
        assert (code, UNKNOWN) in seen.codes, changed
        assert not seen.passes


def test_a_node_outside_of_the_run_gets_no_verdict() -> None:
    four, two = sparks(4), sparks(2)
    case = Case(four.wants, four.snaps, {"allreduce": two.recording()})
    got = verdict(judge, case)
    assert got.codes == {(Code.BLOCKED, UNKNOWN)}
    assert got.nodes == {"spark03", "spark04"}


def test_other_algorithms_have_lower_bounds_only() -> None:
    fleet = sparks(4)
    fleet.facts = replace(fleet.facts, algorithm="Tree")
    for device in (A, B):
        fleet.flow("run1", NODE, device).tx = WIRE[4] * 2
    assert verdict(judge, fleet).passes
    fleet.carry("default", WIRE[4] // 2)
    got = verdict(judge, fleet)
    assert got.codes == {(Code.COUNTERS_SHORT, WARN)}  # reported, and nothing hangs on it
    fleet.carry("run1", 1_000)
    assert (Code.COUNTERS_FLAT, FAIL) in verdict(judge, fleet).codes
    fleet = sparks(4)
    for moment in ("default.before", "default.after"):
        fleet.put(moment, NODE, "counters.clock", None)
        fleet.put(moment, NODE, f"counters.rdma[{A}]", None)
    assert verdict(judge, fleet).passes
