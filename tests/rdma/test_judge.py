"""Every code in a failing and in a healthy state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.model import Code, Reason, Status, Unreadable
from fabrictool.ports import Netdev
from fabrictool.rdma import ROOM
from fabrictool.rdma.judge import expected_mtus
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot
from tests.rdma.nodes import ADDRESS, DEV, IF, SYS, at, bad, gid_lines, gid_of, judged, node, ports_of, spec
from tests.specs import node_spec


def port(state: str = "4: ACTIVE", phys: str = "5: LinkUp", rate: str = "200 Gb/sec (4X HDR)", layer: str = "Ethernet") -> Captured:
    return Captured(0, f"{SYS}/state:{state}\n{SYS}/phys_state:{phys}\n{SYS}/rate:{rate}\n{SYS}/link_layer:{layer}\n")


def link(state: str, physical: str = "LINK_UP", name: str = DEV) -> Captured:
    return Captured(0, f'[{{"ifindex":1,"ifname":"{name}","port":1,"state":"{state}","physical_state":"{physical}"}}]\n')


def test_a_healthy_port_passes_with_evidence() -> None:
    findings = judged(node())
    assert not bad(findings)
    assert {f.path for f in findings} == {"rdma.device", "rdma.state", "rdma.link_layer", "rdma.rate", "rdma.active_mtu", "rdma.gid",
                                          "rdma.traffic_class"}
    assert all(f.status is Status.PASS and f.got for f in findings)
    assert at(findings, "gid").got == f"GID 3: RoCE v2, {ADDRESS}, {IF}"


def test_nothing_here_is_ever_written() -> None:
    for findings in (judged(node()), judged(node({"port": port("1: DOWN", "3: Disabled")})), judged(node(ports=ports_of(rdma=False)))):
        assert not any(f.steps or f.aspect for f in findings)
    assert ROOM.aspects == ()


@pytest.mark.parametrize(("name", "got", "path", "code"), [
    ("port", port("4: ACTIVE", layer="InfiniBand"), "link_layer", Code.RDMA_LINK_LAYER),
    ("port", port(rate="100 Gb/sec (4X EDR)"), "rate", Code.RDMA_RATE),
    ("port", port(phys="3: Disabled"), "state", Code.RDMA_DOWN),
    ("devinfo", Captured(0, "\t\t\tactive_mtu:\t\t1024 (3)\n"), "active_mtu", Code.RDMA_ACTIVE_MTU),
    ("gids", Captured(0, gid_lines((0, gid_of("10.10.9.9"), IF, "RoCE v2"))), "gid", Code.NO_ROCEV2_GID),
    ("gids", Captured(0, gid_lines((2, gid_of(ADDRESS), IF, "IB/RoCE v1"))), "gid", Code.NO_ROCEV2_GID),
    ("gids", Captured(0, gid_lines((3, gid_of(ADDRESS), "vlan7", "RoCE v2"))), "gid", Code.NO_ROCEV2_GID),
    ("gids", Captured(0, "end of GIDs\n"), "gid", Code.NO_ROCEV2_GID),
    ("tclass", Captured(0, "file\nGlobal tclass=160\nend of file\n"), "traffic_class", Code.RDMA_TCLASS_OVERRIDE),
])
def test_one_fault_is_one_code(name: str, got: Captured, path: str, code: Code) -> None:
    findings = judged(node({name: got}))
    assert bad(findings) == [(code, Status.FAIL)]
    assert at(findings, path).why
    assert at(findings, path).remedy


def test_a_port_that_is_down_shows_no_rate() -> None:
    findings = judged(node({"port": port("1: DOWN", "3: Disabled", "40 Gb/sec (4X QDR)"), "rdma.link": link("DOWN", "DISABLED")}))
    assert bad(findings) == [(Code.RDMA_DOWN, Status.FAIL), (Code.BLOCKED, Status.UNKNOWN)]
    assert "RDMA_DOWN" in at(findings, "rate").why


def test_a_class_with_the_same_dscp_overrides_nothing() -> None:
    for text, status in (("Global tclass=106", Status.PASS), ("Global tclass=104", Status.PASS), ("", Status.PASS),
                         ("Global tclass=0", Status.FAIL), ("Global tclass=999", Status.UNKNOWN), ("src 1.2.3.4 tclass=3", Status.UNKNOWN)):
        body = f"file\n{text}\nend of file\n" if text else "file\nend of file\n"
        assert at(judged(node({"tclass": Captured(0, body)})), "traffic_class").status is status, text
    assert at(judged(node({"tclass": Captured(1, "file\n", "cat: Permission denied")})), "traffic_class").code is Code.NEEDS_ROOT
    assert at(judged(node(), spec(traffic_class=None)), "traffic_class").status is Status.SKIP


def test_readers_that_disagree_give_no_verdict() -> None:
    findings = judged(node({"rdma.link": link("DOWN")}))
    assert bad(findings) == [(Code.RDMA_READERS_DISAGREE, Status.UNKNOWN)]
    assert at(judged(node({"rdma.link": Captured(127, "", "rdma: not found")})), "state").status is Status.PASS
    alone = judged(node({"port": Captured(0, "")}))
    assert at(alone, "state").got == "ACTIVE (rdma link alone)"
    neither = node({"port": Captured(0, ""), "rdma.link": Captured(127, "", "rdma: not found")})
    assert at(judged(neither), "state").status is Status.UNKNOWN


def test_a_missing_device_is_told_from_a_missing_tool_and_a_missing_stack() -> None:
    gone = judged(node({"rdma.link": Captured(0, "[]\n")}, ports_of(rdma=False)))
    assert bad(gone) == [(Code.RDMA_ABSENT, Status.FAIL)]
    assert "not on the node" in at(gone, "device").why
    stack = judged(node({"rdma.link": Captured(1, "", "Failed to open NETLINK_RDMA socket\n")}, ports_of(rdma=False)))
    assert bad(stack) == [(Code.RDMA_ABSENT, Status.FAIL)]
    assert "RDMA core" in at(stack, "device").why
    tool = judged(node({"devinfo": Captured(127, "", "ibv_devinfo: not found")}))
    assert bad(tool) == [(Code.TOOL_MISSING, Status.UNKNOWN)]
    unread = replace(ports_of(), rdma=Unreadable(Reason.CUT, "cut"))
    assert bad(judged(node(ports=unread))) == [(Code.UNREADABLE, Status.UNKNOWN)]


def test_no_address_no_gid() -> None:
    findings = judged(node(ports=ports_of(address="")))
    assert bad(findings) == [(Code.NO_ROCEV2_GID, Status.FAIL)]
    other = judged(node(ports=ports_of(address="10.10.2.11")))
    assert bad(other) == [(Code.NO_ROCEV2_GID, Status.FAIL)]


def test_a_gid_whose_type_or_interface_is_unread_proves_nothing() -> None:
    for row in ((3, gid_of(ADDRESS), "", "RoCE v2"), (3, gid_of(ADDRESS), IF, "")):
        assert at(judged(node({"gids": Captured(0, gid_lines(row))})), "gid").status is Status.UNKNOWN
    cut = Captured(0, gid_lines((3, gid_of(ADDRESS), IF, "RoCE v2")).replace("end of GIDs\n", ""))
    assert at(judged(node({"gids": cut})), "gid").status is Status.UNKNOWN


@pytest.mark.parametrize(("mtu", "fits"), [
    (1500, {1024}), (2200, {2048}), (4191, {2048, 4096}), (4192, {4096}), (9000, {4096}), (1119, {512, 1024}), (200, set()), (340, {256}),
])
def test_rdma_mtus_of_an_interface_mtu(mtu: int, fits: set[int]) -> None:
    assert expected_mtus(mtu) == fits


def test_the_active_mtu_follows_the_interface_and_not_the_spec() -> None:
    """A wrong interface MTU is the link room's finding, once."""
    small = Captured(0, "\t\t\tactive_mtu:\t\t1024 (3)\n")
    assert at(judged(node({"devinfo": small}, ports_of(mtu=1500))), "active_mtu").status is Status.PASS
    assert at(judged(node(ports=ports_of(mtu=1500))), "active_mtu").code is Code.RDMA_ACTIVE_MTU
    unread = replace(ports_of(), netdevs={IF: Netdev(IF)})
    assert at(judged(node(ports=unread)), "active_mtu").code is Code.BLOCKED


def test_a_lag_may_show_one_member_or_all() -> None:
    fn = {"rail": "a", "rdma": DEV, "interface": IF, "members": ["m0", "m1"]}
    want = node_spec(ports={"p0": {"rate_gbit": 400, "functions": [fn]}})
    assert at(judged(node(), want), "rate").status is Status.PASS
    assert at(judged(node({"port": port(rate="400 Gb/sec (4X NDR)")}), want), "rate").status is Status.PASS
    assert at(judged(node({"port": port(rate="100 Gb/sec (4X EDR)")}), want), "rate").status is Status.FAIL


def test_a_spec_without_ports_or_rate_skips() -> None:
    assert {f.status for f in judged(node(), node_spec(ports={}))} == {Status.SKIP}
    want = node_spec(ports={"p0": {"functions": [{"rail": "a", "rdma": DEV, "interface": IF}]}})
    assert at(judged(node(), want), "rate").status is Status.SKIP


def test_an_unreachable_node_gets_no_verdict() -> None:
    snap = Snapshot("spark01", error=Unreadable(Reason.UNREACHABLE, "connection refused"))
    findings = ROOM.findings(node_spec(), snap, Fleet())
    assert findings
    assert {f.status for f in findings} == {Status.UNKNOWN}
    assert {f.code for f in findings} == {Code.UNREACHABLE}
