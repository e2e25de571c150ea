"""MGMT_PATH: no change that flaps a link runs where the SSH session or the default route would go with it, by whatever way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.outside import MGMT, A, B
from tests.lab.fleet import built

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("safe-mgmt", 2) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.clear()
    return shared


def refused(ended: fleet.Ended, node: str = "spark01") -> list[fleet.Said]:
    return [f for f in fleet.findings(ended) if f.code == "MGMT_PATH" and f.node == node and f.status != "pass"]


def test_a_default_route_over_a_function_refuses_its_flaps_and_nothing_else(lab: Lab) -> None:
    """The route is on one function; the other is in the same cage. The neighbour is the twin: all of it is applied there."""
    outside.fault(lab, "spark01", "route-over-fabric")
    before = outside.calm(lab, "spark01")
    plan = fleet.tool("plan", "-i", fleet.spec(lab), "-o", "json")
    assert plan.rc == 1, outside.short(plan)
    assert [f"{A} carries the default route" in f.got for f in refused(plan)] == [True], outside.short(plan)
    assert not refused(plan, "spark02")

    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert refused(done), outside.short(done)
    assert outside.calm(lab, "spark01") == before
    assert outside.calm_steps_done(lab, "spark01")
    assert {f.code for f in fleet.findings(done) if f.node == "spark01" and f.status == "fail"} >= {"LINK_MTU_RUNNING", "QOS_PFC_MASK"}
    assert outside.fabric_set(lab, "spark02")
    assert outside.calm_steps_done(lab, "spark02")
    assert not [f for f in fleet.findings(done) if f.node == "spark02" and f.status in ("fail", "unknown")], outside.short(done)


def over_the_twin(lab: Lab) -> None:
    assert lab.exec("spark01", ["ip", "route", "append", "default", "dev", B, "metric", "900"]).ok


def over_a_bridge(lab: Lab) -> None:
    assert lab.exec("spark01", ["sh", "-ec", f"ip link add br7 type bridge; ip link set br7 up; ip link set {A} master br7; "
                                             "ip route append default dev br7 metric 900"]).ok


def over_a_stacked_interface(lab: Lab) -> None:
    """A macvlan: like a VLAN, it has the function as its parent."""
    assert lab.exec("spark01", ["sh", "-ec", f"ip link add link {B} name up7 type macvlan mode bridge; ip link set up7 up; "
                                             "ip route append default dev up7 metric 900"]).ok


def over_ipv6(lab: Lab) -> None:
    assert lab.exec("spark01", ["ip", "-6", "route", "append", "default", "dev", A, "metric", "900"]).ok


@pytest.mark.parametrize("way", [over_the_twin, over_a_bridge, over_a_stacked_interface, over_ipv6])
def test_every_way_of_the_default_route_counts(lab: Lab, way: Callable[[Lab], None]) -> None:
    try:
        way(lab)
        plan = fleet.tool("plan", "-i", fleet.spec(lab), "-o", "json")
    finally:  # a reset leaves interfaces that somebody made
        lab.exec("spark01", ["sh", "-c", "ip link del br7; ip link del up7; ip -6 route del default; ip route del default metric 900"])
    assert plan.rc == 1, outside.short(plan)
    assert refused(plan), outside.short(plan)
    flapping = [f for r in fleet.report(plan)["results"] for f in r["findings"] if f["risk"] == "flap" and f["status"] == "fail"]
    for node, is_refused in (("spark01", True), ("spark02", False)):
        mine = ["[not set: MGMT_PATH]" in f["why"] for f in flapping if f["subject"]["nodes"] == [node]]
        assert len(mine) >= 3, outside.short(plan)  # MTU of two functions, and PFC where it is not in a bridge
        assert set(mine) == {is_refused}, outside.short(plan)
    assert not refused(plan, "spark02")


ON_MGMT = f"- {{rail: b, interface: {MGMT}}}"


def with_management(text: str) -> str:
    text = text.replace("- {rail: b, rdma: roceP2p1s0f0, interface: enP2p1s0f0np0}", ON_MGMT)
    return text.replace("b: {subnet: 10.10.2.0/24}", "b: {subnet: 192.168.1.0/24}")


def test_the_interface_of_the_ssh_session_as_a_function(lab: Lab, tmp_path: Path) -> None:
    """Named by mistake: it keeps its MTU and its link, whatever is allowed."""
    before = outside.calm(lab, "spark01")
    with outside.spec_of(lab, lambda t: with_management(t).replace("protected: [enP7s7]", "protected: []"), tmp_path) as spec:
        plan = fleet.tool("plan", "-i", spec, "-o", "json")
        done = fleet.tool("apply", "-i", spec, "-y", "--allow", "flap", "-o", "json")
    for ended in (plan, done):
        assert ended.rc == 1, outside.short(ended)
        assert any(f"{MGMT} carries the SSH session" in f.got or f"{MGMT} carries the default route" in f.got for f in refused(ended))
    after = outside.calm(lab, "spark01")
    assert after.wires[MGMT] == before.wires[MGMT]
    assert not [c for c in lab.commands("spark01") if c["changed"] and MGMT in str(c["argv"])]


def test_a_protected_interface_cannot_be_named_as_a_function(lab: Lab, tmp_path: Path) -> None:
    """Refused before any node is asked; by another of its names, once the node is read."""
    before = [lab.exec_count(n) for n in lab.nodes]
    with outside.spec_of(lab, with_management, tmp_path) as spec:
        done = fleet.tool("apply", "-i", spec, "-y", "--allow", "flap")
    assert done.rc == 78, done.all
    assert "is protected" in done.err
    assert [lab.exec_count(n) for n in lab.nodes] == before

    assert lab.exec("spark01", ["ip", "link", "property", "add", "dev", B, "altname", "fab1"]).ok
    wire = outside.calm(lab, "spark01")
    with outside.spec_of(lab, lambda t: t.replace("protected: [enP7s7]", "protected: [enP7s7, fab1]"), tmp_path) as spec:
        plan = fleet.tool("plan", "-i", spec, "-o", "json")
        done = fleet.tool("apply", "-i", spec, "-l", "spark01", "-y", "--allow", "flap", "-o", "json")
    assert plan.rc == done.rc == 1, outside.short(plan)
    assert any(f"{B} is protected" in f.got for f in refused(plan)), outside.short(plan)
    assert outside.calm(lab, "spark01") == wire
    assert not [c for c in lab.commands("spark01") if c["changed"] and B in str(c["argv"])]
    lab.exec("spark01", ["ip", "link", "property", "del", "dev", B, "altname", "fab1"])
    assert B not in lab.exec("spark01", ["ls", "/etc/netplan", "/etc/systemd/system"]).out
