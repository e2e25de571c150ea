"""`rails`: rooms' findings told once, PCIe speed, and a NIC that is slow for no visible reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.model import Code, Evidence, Finding, Reason, Status, SubjectKind, Unproven, Unreadable
from fabrictool.prove import Case, rails
from fabrictool.snapshot import Captured, Snapshot
from tests.prove.fleets import sparks
from tests.prove.recordings import Fleet
from tests.prove.snaps import edited

ROW = "   268435456      67108864     float     sum      -1  {t:.1f}  {a:.2f}  {b:.2f}       0  {t:.1f}  {a:.2f}  {b:.2f}       0"


def slow(fleet: Fleet, busbw: float) -> Fleet:
    """The same bytes at another bus bandwidth, decimal GB/s."""
    ranks = len(fleet.hosts)
    algorithm = busbw * ranks / (2 * (ranks - 1))
    fleet.row = ROW.format(t=268_435_456 / algorithm / 1e3, a=algorithm, b=busbw)
    fleet.rows = {}
    return fleet


def judged(case: Case) -> list[Finding]:
    return [s for s in rails.judge(case) if isinstance(s, Finding)]


def bad(case: Case) -> list[tuple[str, Code, Status]]:
    return [(f.path, f.code, f.status) for f in judged(case) if f.bad]


def test_a_healthy_fleet_passes() -> None:
    said = list(rails.judge(sparks(4).case()))
    found = [s for s in said if isinstance(s, Finding)]
    assert not [f for f in found if f.bad]
    assert all(f.path.startswith("rails.") for f in found)
    assert {f.path for f in found if f.status is Status.PASS} >= {
        "rails.ports.pcie", "rails.ports.same_port", "rails.link.speed", "rails.rdma.rate", "rails.rdma.state", "rails.measured"}
    measured = [f for f in found if f.path == "rails.measured"]
    assert len(measured) == 8
    assert {f.got for f in measured} == {"91.5 Gb/s"}
    assert [s for s in said if isinstance(s, Evidence)] == [Evidence("slowest_function_gbit_per_s", 91.5)]
    assert not [s for s in said if isinstance(s, Unproven)]


def test_a_slow_nic_in_a_ring_slows_all_and_is_told_as_such() -> None:
    case = slow(sparks(4), 3.25).case()  # 13 Gb/s on each function
    assert bad(case) == [("rails.measured", Code.NIC_DEGRADED, Status.FAIL)]
    (one,) = [f for f in judged(case) if f.bad]
    assert one.subject.kind is SubjectKind.FLEET
    assert "13.0 Gb/s on every rail" in one.got
    assert "--limit" in one.remedy


@pytest.mark.parametrize(("busbw", "degraded"), [(22.9, False), (11.4, False), (6.4, False), (6.2, True), (3.25, True), (2.0, True)])
def test_the_band(busbw: float, degraded: bool) -> None:
    assert (Code.NIC_DEGRADED in {c for _, c, _ in bad(slow(sparks(2), busbw).case())}) is degraded


def test_one_rail_that_carries_little_is_named() -> None:
    fleet = slow(sparks(4), 11.4)
    for run in (*fleet.facts.runs, "default"):
        for node in fleet.wants:
            fleet.flow(run, node, "roceP2p1s0f0").tx //= 6
    (one,) = [f for f in judged(fleet.case()) if f.bad]
    assert (one.code, one.subject.kind, one.subject.rail) == (Code.NIC_DEGRADED, SubjectKind.RAIL, "b")


def test_one_function_of_one_node_is_named() -> None:
    fleet = slow(sparks(4), 11.4)
    for run in fleet.facts.runs:
        fleet.flow(run, "spark03", "rocep1s0f0").tx //= 6
    found = [f for f in judged(fleet.case()) if f.bad]
    assert [(f.code, f.subject.nodes, f.subject.function) for f in found] == [(Code.NIC_DEGRADED, ("spark03",), "enp1s0f0np0")]


def test_a_slow_function_with_a_narrow_slot_has_its_own_cause() -> None:
    case = slow(sparks(2), 3.25).case()
    for node in case.wants:
        for interface in ("enp1s0f0np0", "enP2p1s0f0np0"):
            case = edited(case, node, "ports.net", f"{interface}/device/current_link_width:4", f"{interface}/device/current_link_width:1")
    assert {c for _, c, _ in bad(case)} == {Code.PCIE_WIDTH}


def test_without_a_run_nothing_is_said_of_a_degraded_nic() -> None:
    fleet = sparks(2)
    for case in (replace(fleet.case(), recordings={}), slow(sparks(2), 3.25).case()):
        only = replace(case, recordings={k: replace(r, error=Unreadable(Reason.FAILED, "x")) for k, r in case.recordings.items()})
        said = list(rails.judge(only))
        assert [s.text for s in said if isinstance(s, Unproven)] == [rails.UNTOLD if only.recordings else rails.NOT_SHOWN]
        assert not [s for s in said if isinstance(s, Finding) and s.bad]
    fleet.put("run1", "spark01", "rank[0]", Captured(137, ""))
    for run in ("run2", "run3"):
        fleet.put(f"{run}.after", "spark02", "counters.rdma[rocep1s0f0]", None)
        fleet.put(f"{run}.after", "spark02", "counters.ethtool[enp1s0f0np0]", None)
    texts = [s.text for s in rails.judge(fleet.case()) if isinstance(s, Unproven)]
    assert texts == [rails.UNTOLD]


def test_sockets_carry_no_rdma_and_prove_nothing() -> None:
    fleet = slow(sparks(2), 3.25)
    for run in (*fleet.facts.runs, "default"):
        for node in fleet.wants:
            for device in fleet.rails:
                fleet.flow(run, node, device).tx = fleet.flow(run, node, device).rx = 0
    said = list(rails.judge(fleet.case()))
    assert not [s for s in said if isinstance(s, Finding) and s.code is Code.NIC_DEGRADED]
    assert any("no RDMA bytes" in s.text for s in said if isinstance(s, Unproven))


def test_what_the_rooms_find_is_told_here_too() -> None:
    case = edited(sparks(2).case(), "spark02", "ports.net", "enp1s0f0np0/speed:200000", "enp1s0f0np0/speed:100000")
    assert ("rails.link.speed", Code.LINK_SPEED, Status.FAIL) in bad(case)
    width = "enp1s0f0np0/device/current_link_width:"
    narrow = edited(sparks(2).case(), "spark02", "ports.net", f"{width}4", f"{width}2")
    assert [(p, c) for p, c, _ in bad(narrow)] == [("rails.ports.pcie", Code.PCIE_WIDTH)]


@pytest.mark.parametrize(("now", "most", "status"), [("8.0", "32.0", Status.FAIL), ("32.0", "64.0", Status.WARN), ("32.0", "32.0", None)])
def test_pcie_speed(now: str, most: str, status: Status | None) -> None:
    at = "/sys/class/net/enp1s0f0np0/device/"
    case = edited(sparks(2).case(), "spark01", "ports.net", f"{at}current_link_speed:32.0 GT/s PCIe",
                  f"{at}current_link_speed:{now} GT/s PCIe\n{at}max_link_speed:{most} GT/s PCIe")
    assert [(p, c, s) for p, c, s in bad(case)] == ([("rails.pcie_speed", Code.PCIE_WIDTH, status)] if status else [])


def test_an_unreachable_node_is_unknown() -> None:
    case = sparks(2).case()
    lost = replace(case, snaps={**case.snaps, "spark02": Snapshot("spark02", error=Unreadable(Reason.UNREACHABLE, "no route"))})
    assert {s for p, _, s in bad(lost)} == {Status.UNKNOWN}


def test_of_two_nodes_nobody_is_sent_to_a_run_over_two_nodes() -> None:
    (one,) = [f for f in judged(slow(sparks(2), 3.25).case()) if f.code is Code.NIC_DEGRADED and f.bad]
    assert "--limit" not in one.remedy
    assert "third node" in one.remedy
