"""Reading a node's interfaces: every format, every way of not answering."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool import ports
from fabrictool.model import Reason, Unreadable, Value
from fabrictool.ports.parse import parse_addr, parse_queue_pairs, parse_route_devices, parse_ssh
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.values import Rate
from tests.ports.sample import A1, MGMT, A, B, Node, address

CAPTURES = Path(__file__).parent.parent / "captures" / "ports"
BODY = (CAPTURES / "ip.json.txt").read_text().split("\n")[1]


def netdevs(snap: Snapshot) -> Any:
    got = ports.read(snap).netdevs
    assert not isinstance(got, Unreadable)
    return got


def test_real_capture() -> None:
    got = parse_addr(BODY)
    assert not isinstance(got, Unreadable)
    assert [n.name for n in got] == ["lo", "eth0", "eth1"]
    eth1 = got[2]
    assert (eth1.mtu, eth1.min_mtu, eth1.max_mtu, eth1.up, eth1.operstate) == (Value(9000), Value(68), Value(65535), True, "UP")
    assert [str(a) for a in eth1.addresses] == ["198.18.0.1/24", "fe80::5054:ff:fe00:101/64"]
    assert eth1.mac == "52:54:00:00:01:01"


def test_every_prefix_of_the_capture_is_unreadable() -> None:
    assert not isinstance(parse_addr(BODY), Unreadable)
    for end in range(len(BODY)):
        assert isinstance(parse_addr(BODY[:end]), Unreadable), end


def test_spark() -> None:
    got = ports.read(Node().snapshot())
    assert isinstance(got.netdevs, dict)
    assert isinstance(got.rdma, dict)
    a = got.netdevs[A]
    assert (a.driver, a.bus, a.phys_port_name) == (Value("mlx5_core"), Value("0000:01:00.0"), Value("p0"))
    assert (a.speed, a.carrier, a.carrier_changes, a.rdma) == (Value(Rate.gbit(200)), Value(True), Value(2), ("rocep1s0f0",))
    assert isinstance(a.pcie, Value)
    assert (a.pcie.value.width, a.pcie.value.max_width) == (4, 4)
    assert a.pcie.value.gbit_per_s == pytest.approx(126.03, abs=0.01)
    assert got.rdma["rocep1s0f0"].netdevs == (A,)
    assert (got.ssh_interface, got.default_routes) == (Value(MGMT), (MGMT,))


def test_every_prefix_of_every_section_is_the_same_or_unreadable() -> None:
    """A field may be lost, never changed: a mapping that can be read is the full one, key by key."""
    whole = Node().snapshot()
    full = ports.read(whole)
    assert isinstance(full.netdevs, dict)
    for name in ("ports.net", "ports.links", "ports.rdma", "ports.route4", "ports.qps"):
        text = whole.sections[name].out
        for end in range(0, len(text), 7):
            cut = replace(whole, sections={**whole.sections, name: Captured(0, text[:end])})
            got = ports.read(cut)
            assert isinstance(got.netdevs, dict)
            assert got.rdma == full.rdma or isinstance(got.rdma, Unreadable)
            assert got.default_routes == full.default_routes or isinstance(got.default_routes, Unreadable)
            assert got.queue_pairs == full.queue_pairs or isinstance(got.queue_pairs, Unreadable)
            for key, n in got.netdevs.items():
                for f in fields(n):
                    seen, before = getattr(n, f.name), getattr(full.netdevs[key], f.name)
                    lost = isinstance(seen, Unreadable) or seen in ((), "", False)
                    assert seen == before or lost, (name, end, f.name, seen)


def test_busybox_ip_is_unreadable_not_absent() -> None:
    node = Node()
    node.sections["ports.ip"] = Captured(1, "", "ip: invalid option -- 'd'\nBusyBox v1.35.0 multi-call binary.")
    got = ports.read(node.snapshot()).netdevs
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.FAILED


def test_ip_that_prints_text_is_garbled() -> None:
    node = Node()
    node.sections["ports.ip"] = Captured(0, "1: lo: <LOOPBACK,UP> mtu 65536\n")
    got = ports.read(node.snapshot()).netdevs
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.GARBLED


def test_no_rdma_subsystem_is_an_empty_mapping_but_no_sysfs_is_unreadable() -> None:
    node = Node()
    node.rdma = {}
    assert ports.read(node.snapshot()).rdma == {}
    node.sections["ports.rdma"] = Captured(0, "/proc/sys/kernel/ostype:Linux\n")
    got = ports.read(node.snapshot()).rdma
    assert isinstance(got, Unreadable)
    assert "sysfs" in got.why


def test_soft_roce_has_its_interface_from_parent() -> None:
    node = Node()
    node.sections["ports.rdma"] = Captured(0, (
        "/sys/class/infiniband/rxe0/node_type:1: CA\n/sys/class/infiniband/rxe0/sys_image_guid:5054:00ff:fe00:0101\n"
        f"/sys/class/infiniband/rxe0/parent:{MGMT}\n/sys/class/net/lo/ifindex:1\n/proc/sys/kernel/ostype:Linux\n"))
    got = ports.read(node.snapshot())
    assert isinstance(got.rdma, dict)
    assert got.rdma["rxe0"].netdevs == (MGMT,)


def test_vlan_owner_of_gids_comes_after_the_nic() -> None:
    node = Node().vlan(f"{A}.100", A, "10.10.9.1/24")
    text = node._rdma().replace("ndevs/0:enp1s0f0np0\n", f"ndevs/0:{A}.100\n", 1)
    node.sections["ports.rdma"] = Captured(0, text)
    got = ports.read(node.snapshot())
    assert isinstance(got.rdma, dict)
    assert got.rdma["rocep1s0f0"].netdevs == (A, f"{A}.100")


def test_representors_are_not_the_interface() -> None:
    node = Node().add("eth9", pci="0000:01:00.0", port="pf0vf0")
    got = ports.read(node.snapshot())
    assert isinstance(got.rdma, dict)
    assert got.rdma["rocep1s0f0"].netdevs == (A,)


def test_crlf_and_blanks() -> None:
    node = Node()
    for name in ("ports.net", "ports.rdma"):
        node.sections[name] = Captured(0, node.snapshot().sections[name].out.replace("\n", "\r\n"))
    assert netdevs(node.snapshot())[A].phys_port_name == Value("p0")


@pytest.mark.parametrize(("speed", "ok"), [("200000", True), ("-1", False), ("4294967295", False), ("fast", False), ("", False)])
def test_speed(speed: str, ok: bool) -> None:
    node = Node()
    node.speed[A] = speed
    assert isinstance(netdevs(node.snapshot())[A].speed, Value) is ok


def test_old_iproute2_does_not_tell_the_limits() -> None:
    node = Node()
    for key in ("min_mtu", "max_mtu"):
        del node.netdevs[A][key]
    assert isinstance(netdevs(node.snapshot())[A].max_mtu, Unreadable)


def test_held_back_addresses_are_left_out() -> None:
    node = Node()
    node.netdevs[A]["addr_info"] = [address("fd00::1/64", tentative=True), address("fd00::2/64", dadfailed=True),
                                    address("10.10.1.5/24")]
    assert [str(a) for a in netdevs(node.snapshot())[A].addresses] == ["10.10.1.5/24"]


def test_altnames_bond_members_and_virtual_functions() -> None:
    node = Node().bond("bond0", A, B, ip="10.10.1.1/24").add("ens9v0", pci="0000:01:00.2")
    node.physfn["ens9v0"] = "0000:01:00.0"
    node.netdevs[A]["altnames"] = ["enp1s0f0"]
    got = netdevs(node.snapshot())
    assert (got[A].master, got[A].permanent_mac, got[A].altnames) == ("bond0", "fc:6a:1c:ab:cd:01", ("enp1s0f0",))
    assert got["bond0"].kind == "bond"
    assert (got["ens9v0"].virtual_function, got["ens9v0"].physfn) == (True, "0000:01:00.0")
    assert ports.read(node.snapshot()).netdev("enp1s0f0") == Value(got[A])


JSON: Any = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda x: st.lists(x, max_size=4)
                         | st.dictionaries(st.sampled_from(("ifname", "mtu", "flags", "linkinfo", "addr_info", "altnames", "link", "dev",
                                                            "nexthops", "info_slave_data", "lqpn", "type", "pid", "local",
                                                            "prefixlen")), x, max_size=6), max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_wrong_types_never_raise(data: Any) -> None:
    text = json.dumps([data])
    parsers: tuple[Callable[[str], object], ...] = (parse_addr, parse_route_devices, parse_queue_pairs)
    for parse in parsers:
        assert isinstance(parse(text), (tuple, Unreadable))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_never_raises(text: str) -> None:
    for parse in (parse_addr, parse_route_devices, parse_queue_pairs):
        assert isinstance(parse(text), (tuple, Unreadable))
    assert isinstance(parse_ssh(text), (Value, Unreadable))
    sections = {n: Captured(0, text) for n in ("ports.ip", "ports.net", "ports.links", "ports.rdma", "ports.qps", "ports.route4")}
    assert isinstance(ports.read(Snapshot("x", sections, ssh=text)).netdevs, Unreadable)


def test_deep_and_long_input() -> None:
    assert isinstance(parse_addr("[" * 100_000), Unreadable)
    assert isinstance(parse_addr("x" * 10_000_000), Unreadable)
    node = Node()
    node.sections["ports.net"] = Captured(0, "/sys/class/net/a/speed:" + "9" * 10_000_000 + "\n/sys/class/net/lo/ifindex:1\n"
                                          "/proc/sys/kernel/ostype:Linux\n")
    assert isinstance(netdevs(node.snapshot())[A].speed, Unreadable)


def test_nothing_collected_is_unreadable_everywhere() -> None:
    got = ports.read(Snapshot("x"))
    for seen in (got.netdevs, got.rdma, got.default_routes, got.queue_pairs):
        assert isinstance(seen, Unreadable)
    assert A1 not in Node().netdevs
    assert B in Node().netdevs
