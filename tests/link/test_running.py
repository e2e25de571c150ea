"""The running link: each code in one state, and not in the healthy twin."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool import link
from fabrictool.model import Code, Finding, Risk, Run, Status
from fabrictool.room import Fleet
from tests.link.sample import Host
from tests.ports.sample import A1, HANGS, MACS, A, B
from tests.specs import node_spec


def judged(host: Host, **spec: Any) -> list[Finding]:
    return list(link.ROOM.findings(node_spec(**spec), host.snapshot(), Fleet()))


def bad(found: list[Finding], aspect: str | None = None) -> set[tuple[Code, Status]]:
    return {(f.code, f.status) for f in found if f.bad and (aspect is None or f.aspect == aspect)}


def one(found: list[Finding], path: str, interface: str = A) -> Finding:
    (f,) = [f for f in found if f.path == path and f.subject.function == interface]
    return f


def persisted(host: Host, interface: str = A, **spec: Any) -> Finding:
    host.tables()
    return one(judged(host, **spec), "link.mtu_persisted", interface)


FABRIC_MTU_9000: dict[str, Any] = {"mtu": 9000, "rails": {"a": {"subnet": "10.10.1.0/24"}, "b": {"subnet": "10.10.2.0/24"}}}


def only(interface: str, **more: Any) -> dict[str, Any]:
    return {"ports": {"p0": {"functions": [{"rail": "a", "interface": interface, **more}]}}}


def test_healthy_host_passes_everything() -> None:
    found = judged(Host())
    assert bad(found) == set()
    assert {f.path for f in found if f.status is Status.PASS} == {
        "link.mtu_range", "link.mtu", "link.state", "link.speed", "link.owner", "link.mtu_persisted", "link.dhcp", "link.arp"}
    assert not [f for f in found if f.steps]


def test_running_mtu_has_one_step_with_its_undo() -> None:
    host = Host()
    host.netdevs[A]["mtu"] = 1500
    f = one(judged(host), "link.mtu")
    assert (f.code, f.status, f.risk, f.got, f.want) == (Code.LINK_MTU_RUNNING, Status.FAIL, Risk.FLAP, "1500", "9000")
    assert f.steps == (Run(("ip", "link", "set", "dev", A, "mtu", "9000"), undo=("ip", "link", "set", "dev", A, "mtu", "1500")),)
    assert one(judged(host), "link.mtu", B).status is Status.PASS


def test_no_mtu_in_the_spec_is_skipped() -> None:
    found = judged(Host(), fabric={"rails": FABRIC_MTU_9000["rails"]})
    assert {f.status for f in found if f.path in ("link.mtu", "link.mtu_persisted")} == {Status.SKIP}


def test_device_maximum() -> None:
    host = Host()
    host.netdevs[A] |= {"mtu": 1500, "max_mtu": 4096}
    found = judged(host)
    assert (Code.LINK_MTU_RANGE, Status.FAIL) in bad(found)
    assert one(found, "link.mtu").steps == ()
    host.netdevs[A] |= {"max_mtu": 9000}
    assert one(judged(host), "link.mtu").steps


def test_device_minimum_and_no_limit() -> None:
    host = Host()
    host.netdevs[A] |= {"min_mtu": 9500}
    assert (Code.LINK_MTU_RANGE, Status.FAIL) in bad(judged(host))
    host.netdevs[A] |= {"min_mtu": 68, "max_mtu": 0}
    assert one(judged(host), "link.mtu_range").got == "no limit"


def test_limits_not_told_are_not_judged() -> None:
    host = Host()
    for key in ("min_mtu", "max_mtu"):
        del host.netdevs[A][key]
    found = judged(host)
    assert bad(found) == set()
    assert not [f for f in found if f.path == "link.mtu_range" and f.subject.function == A]


@pytest.mark.parametrize(("parent_mtu", "codes"), [(1500, {Code.LINK_MTU_RANGE, Code.LINK_MTU_RUNNING}), (9000, {Code.LINK_MTU_RUNNING})])
def test_vlan_needs_a_parent_as_large(parent_mtu: int, codes: set[Code]) -> None:
    host = Host().vlan("fab.100", A, "10.10.1.1/24", mtu=1500)
    host.netdevs[A]["mtu"] = parent_mtu
    found = judged(host, **only("fab.100"))  # type: ignore[arg-type]
    assert {f.code for f in found if f.bad and f.aspect == "running"} == codes
    assert bool(one(found, "link.mtu", "fab.100").steps) is (parent_mtu == 9000)


@pytest.mark.parametrize(("pf_mtu", "status"), [(1500, Status.FAIL), (9000, Status.PASS)])
def test_virtual_function_needs_its_physical_one(pf_mtu: int, status: Status) -> None:
    host = Host()
    host.add("ens1v0", "10.10.1.9/24", pci="0000:01:00.2")
    host.physfn["ens1v0"] = "0000:01:00.0"
    host.netdevs[A]["mtu"] = pf_mtu
    assert one(judged(host, **only("ens1v0")), "link.mtu_range", "ens1v0").status is status


def test_bond_is_set_itself_and_its_members_follow() -> None:
    host = Host()
    host.bond("bond0", A, B, ip="10.10.1.1/24", mtu=1500)
    assert one(judged(host, **only("bond0", members=[A, B])), "link.mtu", "bond0").steps
    host.netdevs[A]["mtu"] = 1500
    f = one(judged(host, **only(A)), "link.mtu")
    assert (f.status, f.steps) == (Status.FAIL, ())
    assert "bond0" in f.remedy


@pytest.mark.parametrize(("change", "status"), [
    ({"flags": ["BROADCAST", "UP", "NO-CARRIER"], "operstate": "DOWN"}, Status.FAIL),
    ({"flags": ["BROADCAST"], "operstate": "DOWN"}, Status.FAIL),
    ({"flags": ["BROADCAST", "UP"], "operstate": "UNKNOWN"}, Status.FAIL),
    ({"flags": ["BROADCAST", "UP", "LOWER_UP"], "operstate": "LOWERLAYERDOWN"}, Status.FAIL),
    ({"flags": ["BROADCAST", "UP", "LOWER_UP"], "operstate": "UNKNOWN"}, Status.PASS),
    ({"flags": ["BROADCAST", "UP", "LOWER_UP"], "operstate": "UP"}, Status.PASS),
])
def test_link_state(change: dict[str, Any], status: Status) -> None:
    host = Host()
    host.netdevs[A] |= change
    found = judged(host)
    assert (one(found, "link.state").code, one(found, "link.state").status) == (Code.LINK_DOWN, status)
    assert (one(found, "link.speed").status is Status.UNKNOWN) is (status is Status.FAIL)


def test_down_and_the_cable_in_the_other_cage() -> None:
    host = Host()
    host.netdevs[A] |= {"flags": ["BROADCAST", "UP", "NO-CARRIER"], "operstate": "DOWN"}
    host.add(A1, pci="0000:01:00.1", port="p1", rdma="rocep1s0f1")
    f = one(judged(host), "link.state")
    assert A1 in f.why
    assert "other cage" in f.why


@pytest.mark.parametrize(("speed", "status"), [
    ("200000", Status.PASS), ("100000", Status.FAIL), ("400000", Status.FAIL), ("-1", Status.UNKNOWN)])
def test_speed_against_the_spec(speed: str, status: Status) -> None:
    host = Host()
    host.speed[A] = speed
    f = one(judged(host), "link.speed")
    assert f.status is status
    assert f.want == "200 Gb/s"


def test_speed_without_rate_in_the_spec_is_skipped() -> None:
    assert one(judged(Host(), **only(A)), "link.speed").status is Status.SKIP


def test_missing_interface_is_blocked_not_failed_here() -> None:
    host = Host()
    host.remove(A)
    found = [f for f in judged(host) if f.subject.function == A]
    assert {(f.code, f.status) for f in found} == {(Code.BLOCKED, Status.UNKNOWN)}
    assert all("LINK_ABSENT" in f.why for f in found)


def test_unreadable_interfaces_are_unknown_without_steps() -> None:
    host = Host()
    host.sections["ports.ip"] = HANGS
    found = judged(host)
    assert bad(found) == {(Code.TOOL_TIMEOUT, Status.UNKNOWN)}
    assert not [f for f in found if f.steps]


SAME_SUBNET = {**FABRIC_MTU_9000, "rails": {"a": {"subnet": "10.10.0.0/16"}, "b": {"subnet": "10.10.2.0/24"}}}


@pytest.mark.parametrize(("sysctl", "status"), [
    ({"arp_ignore": 0, "arp_announce": 0, "rp_filter": 2}, Status.WARN),
    ({"arp_ignore": 1, "arp_announce": 2, "rp_filter": 1}, Status.WARN),
    ({"arp_ignore": 1, "arp_announce": 1, "rp_filter": 2}, Status.WARN),
    ({"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}, Status.PASS),
    ({"arp_ignore": 1, "arp_announce": 2}, Status.UNKNOWN),
])
def test_two_rails_in_one_subnet(sysctl: dict[str, int], status: Status) -> None:
    host = Host()
    host.sysctl = sysctl
    host.tables()
    (f,) = [f for f in judged(host, fabric=SAME_SUBNET) if f.path == "link.arp"]
    assert f.status is status
    (apart,) = [f for f in judged(host) if f.path == "link.arp"]
    assert (apart.code, apart.status) == (Code.ARP_FLUX, Status.PASS)


def test_addresses_in_one_subnet_though_the_rails_differ() -> None:
    host = Host()
    host.netdevs[B]["addr_info"].append({"family": "inet", "local": "10.10.1.77", "prefixlen": 24, "scope": "global"})
    assert (Code.ARP_FLUX, Status.WARN) in bad(judged(host))
    assert MACS[A] != MACS[B]
