"""Binding selectors to devices: by name, altname, MAC, RDMA device; twins, LAGs, and selectors that disagree."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool import ports
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports import BoundFunction, Netdev
from tests.ports.sample import A1, B1, HANGS, MACS, A, B, Node
from tests.specs import node_spec


def bound(node: Node, *functions: dict[str, Any], **spec: Any) -> tuple[BoundFunction, ...]:
    changes = {"ports": {"p0": {"rate_gbit": 200, "functions": list(functions)}}} if functions else {}
    return ports.bind(node_spec(**{**changes, **spec}), ports.read(node.snapshot()))


def name(seen: Observed[Netdev]) -> str:
    assert isinstance(seen, Value), seen
    return seen.value.name


def test_spark_as_written() -> None:
    a, b = bound(Node())
    assert (name(a.netdev), a.rdma_name, a.twins) == (A, "rocep1s0f0", (B,))
    assert (name(b.netdev), b.rdma_name, b.twins) == (B, "roceP2p1s0f0", (A,))


@pytest.mark.parametrize("selector", [
    {"interface": A}, {"interface": "cx7a"}, {"mac": MACS[A]}, {"mac": MACS[A].upper()}, {"rdma": "rocep1s0f0"},
    {"interface": "cx7a", "mac": MACS[A].upper(), "rdma": "rocep1s0f0"},
])
def test_each_selector_alone_and_together(selector: dict[str, str]) -> None:
    node = Node()
    node.netdevs[A]["altnames"] = ["cx7a"]
    (fn,) = bound(node, {"rail": "a", **selector})
    assert (name(fn.netdev), fn.rdma_name) == (A, "rocep1s0f0")
    assert fn.interface == A


@pytest.mark.parametrize("selectors", [
    {"interface": A, "rdma": "roceP2p1s0f0"}, {"interface": A, "mac": MACS[B]}, {"mac": MACS[A], "rdma": "roceP2p1s0f0"},
    {"interface": "renamed0", "rdma": "rocep1s0f0"}, {"interface": A, "mac": "00:00:00:00:00:01"},
])
def test_selectors_that_disagree_bind_nothing(selectors: dict[str, str]) -> None:
    (fn,) = bound(Node(), {"rail": "a", **selectors})
    assert isinstance(fn.netdev, Unreadable)
    assert fn.netdev.reason is Reason.BLOCKED
    assert fn.netdev.why.startswith("LINK_BINDING: ")


@pytest.mark.parametrize("selector", [{"interface": "nope0"}, {"mac": "00:00:00:00:00:01"}, {"rdma": "mlx5_9"},
                                      {"interface": "nope0", "rdma": "mlx5_9"}])
def test_what_is_not_there_is_absent(selector: dict[str, str]) -> None:
    (fn,) = bound(Node(), {"rail": "a", **selector})
    assert isinstance(fn.netdev, Absent)


def test_missing_rdma_device_leaves_the_interface_bound() -> None:
    node = Node()
    node.rdma.pop("rocep1s0f0")
    (fn,) = bound(node, {"rail": "a", "interface": A, "rdma": "rocep1s0f0"})
    assert name(fn.netdev) == A
    assert isinstance(fn.rdma, Absent)


def test_unreadable_stays_unreadable() -> None:
    node = Node()
    node.sections["ports.ip"] = HANGS
    for fn in bound(node):
        assert isinstance(fn.netdev, Unreadable)
        assert fn.netdev.reason is Reason.TIMEOUT
    node = Node()
    node.sections["ports.rdma"] = HANGS
    a, _ = bound(node)
    assert name(a.netdev) == A
    assert isinstance(a.rdma, Unreadable)
    (only,) = bound(node, {"rail": "a", "rdma": "rocep1s0f0"})
    assert isinstance(only.netdev, Unreadable)


def test_mac_means_the_nic_not_its_vlan() -> None:
    node = Node().vlan(f"{A}.100", A)
    (fn,) = bound(node, {"rail": "a", "mac": MACS[A]})
    assert name(fn.netdev) == A


def test_mac_shared_without_reason_is_ambiguous() -> None:
    node = Node().add("copy0", address=MACS[A])
    (fn,) = bound(node, {"rail": "a", "mac": MACS[A]})
    assert isinstance(fn.netdev, Unreadable)
    assert "several interfaces" in fn.netdev.why


def test_lag_by_rdma_mac_and_name() -> None:
    node = Node().bond("bond0", A, B, ip="10.10.1.1/24")
    node.rdma = {"mlx5_bond_0": A}
    node.guid = {"mlx5_bond_0": "fc6a:1c03:00ab:cd00"}
    for selector in ({"rdma": "mlx5_bond_0"}, {"mac": MACS[A], "members": [A, B]}, {"interface": "bond0"},
                     {"interface": "bond0", "rdma": "mlx5_bond_0"}):
        (fn,) = bound(node, {"rail": "a", **selector})
        assert (name(fn.netdev), fn.members, fn.rdma_name) == ("bond0", (A, B), "mlx5_bond_0")


def test_member_keeps_its_own_mac() -> None:
    node = Node().bond("bond0", A, B)
    (fn,) = bound(node, {"rail": "a", "mac": MACS[B]})
    assert name(fn.netdev) == B


def test_vlan_by_name() -> None:
    node = Node().vlan(f"{A}.100", A, "10.10.1.1/24")
    (fn,) = bound(node, {"rail": "a", "interface": f"{A}.100"})
    assert name(fn.netdev) == f"{A}.100"


def test_twin_outside_the_spec_is_found_in_sysfs() -> None:
    (fn,) = bound(Node(), {"rail": "a", "interface": A})
    assert fn.twins == (B,)


def test_other_cage_is_no_twin() -> None:
    node = Node().add(A1, pci="0000:01:00.1", port="p1", rdma="rocep1s0f1").add(B1, pci="0002:01:00.1", port="p1", rdma="roceP2p1s0f1")
    a, b = bound(node)
    assert (a.twins, b.twins) == ((B,), (A,))


def test_spec_overrides_sysfs_for_twins() -> None:
    two = {"p0": {"functions": [{"rail": "a", "interface": A}]}, "p1": {"functions": [{"rail": "b", "interface": B}]}}
    a, b = bound(Node(), ports=two)
    assert (a.twins, b.twins) == ((), ())
    node = Node()
    node.port_names = {A: "p0", B: "p1"}
    a, b = bound(node)
    assert (a.twins, b.twins) == ((B,), (A,))


def test_bootstrap_and_addresses() -> None:
    node, want = Node(), node_spec()
    got = ports.read(node.snapshot())
    assert name(ports.bootstrap(want, got)) == A
    assert ports.bootstrap_address(want, got) == Value("10.10.1.1")
    a, b = ports.bind(want, got)
    assert (ports.rail_address(a, want), ports.rail_address(b, want)) == (Value("10.10.1.1"), Value("10.10.2.1"))


def test_bootstrap_prefers_ipv4_and_refuses_link_local() -> None:
    node, want = Node(), node_spec()
    node.add(A, "fe80::2/64", "fd00::2/64", "169.254.3.3/16", "10.10.1.7/24")
    assert ports.bootstrap_address(want, ports.read(node.snapshot())) == Value("10.10.1.7")
    node.add(A, "fe80::2/64", "fd00::2/64")
    assert ports.bootstrap_address(want, ports.read(node.snapshot())) == Value("fd00::2")
    node.add(A, "fe80::2/64")
    assert isinstance(ports.bootstrap_address(want, ports.read(node.snapshot())), Absent)


def test_rail_address_of_the_wrong_subnet_is_absent() -> None:
    node, want = Node(), node_spec()
    node.add(A, "10.99.1.1/24", pci="0000:01:00.0", port="p0", rdma="rocep1s0f0")
    a, _ = ports.bind(want, ports.read(node.snapshot()))
    assert isinstance(ports.rail_address(a, want), Absent)


def test_no_bootstrap_in_the_spec() -> None:
    want = node_spec(bootstrap=None)
    assert isinstance(ports.bootstrap(want, ports.read(Node().snapshot())), Absent)


def test_h20_ranges_need_no_neighbour_devices() -> None:
    """Prefixes are never matched: mlx5_1 is not mlx5_10."""
    node = Node()
    for i in (1, 10):
        node.add(f"ens{i}np0", f"10.20.{i}.1/24", pci=f"0000:{i:02x}:00.0", port="p0", rdma=f"mlx5_{i}")
    (fn,) = bound(node, {"rail": "a", "rdma": "mlx5_1"})
    assert name(fn.netdev) == "ens1np0"


def test_hostile_names_from_the_node_are_only_names() -> None:
    node = Node().add("$(reboot)", pci="0000:09:00.0", rdma="mlx5_7")
    (fn,) = bound(node, {"rail": "a", "rdma": "mlx5_7"})
    assert name(fn.netdev) == "$(reboot)"
