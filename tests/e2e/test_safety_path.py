"""PATH_MTU_HOLE: hosts raised before the switch. Jumbo frames must pass after the first two nodes, or both are put back."""

from __future__ import annotations

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.outside import A, B
from tests.lab.fleet import ping

DROP_IN = "/etc/netplan/90-fabrictool-"
JUMBO = 8972  # 9000 less 28 of IPv4 and ICMP


def mtus(lab: Lab, node: str) -> tuple[int, int]:
    seen = outside.wires(lab, node)
    return seen[A].mtu, seen[B].mtu


def kept(lab: Lab, node: str) -> str:
    """What would set the MTU at the next boot: netplan's own folder, and what `netplan generate` made of it."""
    return lab.exec(node, ["sh", "-c", f"ls {DROP_IN}* 2>/dev/null; grep -rls 'mtu=9000' /run/NetworkManager"]).out


def codes(ended: fleet.Ended, node: str) -> set[tuple[str, str]]:
    return {(f.code, f.status) for f in fleet.findings(ended) if f.node == node}


def test_a_hole_stops_after_two_nodes_and_puts_both_back(lab: Lab) -> None:
    """Then, with the switch set right, the same command does all four nodes: the healthy twin."""
    outside.fault(lab, "spark02", "mtu-hole")
    before = {n: outside.calm(lab, n) for n in lab.nodes}
    boot = {n: lab.exec(n, ["sh", "-c", "cat /run/NetworkManager/system-connections/netplan-*"]).out for n in lab.nodes}
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)
    holes = [f for f in fleet.findings(done) if f.code == "PATH_MTU_HOLE"]
    assert {f.status for f in holes} == {"fail"}, outside.short(done)
    assert {f.node for f in holes} <= {"spark01", "spark02"}
    for node in ("spark01", "spark02"):
        assert mtus(lab, node) == (1500, 1500)
        assert kept(lab, node) == ""
        assert lab.exec(node, ["sh", "-c", "cat /run/NetworkManager/system-connections/netplan-*"]).out == boot[node]
        assert ("LINK_MTU_RUNNING", "fail") in codes(done, node)
    for node in ("spark03", "spark04"):
        assert outside.calm(lab, node) == before[node]
        assert [c for c in lab.commands(node) if c["changed"]] == []
        assert ("APPLY_STOPPED", "unknown") in codes(done, node), outside.short(done)
        assert outside.left_over(lab, node) == ""
    assert "put back" in done.all

    outside.fabric_right(lab)
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    for node in lab.nodes:
        assert mtus(lab, node) == (9000, 9000)
        assert DROP_IN in kept(lab, node)
        assert outside.fabric_set(lab, node)
    assert ping(lab, "spark01", "10.10.1.12", JUMBO)

    one_more_node(lab)


def one_more_node(lab: Lab) -> None:
    """A node that joins is proven against one that was ready before."""
    lab.reset("spark03")
    outside.fault(lab, "spark03", "mtu-hole")
    ready = {n: outside.calm(lab, n) for n in ("spark01", "spark02", "spark04")}
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert any(f.code == "PATH_MTU_HOLE" and f.status == "fail" for f in fleet.findings(done)), outside.short(done)
    assert mtus(lab, "spark03") == (1500, 1500)
    assert kept(lab, "spark03") == ""
    assert {n: outside.calm(lab, n) for n in ready} == ready  # the ready peer keeps its MTU

    outside.fabric_right(lab)
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert mtus(lab, "spark03") == (9000, 9000)
    assert {n: outside.calm(lab, n) for n in ready} == ready


def test_one_node_alone_is_reported_as_unproven(lab: Lab) -> None:
    """With -l there is no second node to ping: that is said, and not called proven."""
    done = fleet.apply(lab, "-l", "spark04", "-o", "json")
    assert mtus(lab, "spark04") == (9000, 9000)
    notes = [n for n in fleet.report(done)["notes"] if "unproven" in n]
    assert len(notes) == 1
    assert "spark04: no second node has the new MTU" in notes[0]
    assert [n for n in lab.nodes if mtus(lab, n) == (1500, 1500)] == ["spark01", "spark02", "spark03"]
