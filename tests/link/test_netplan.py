"""MTU kept by netplan, with either renderer: merging, the drop-in, and what is not written."""

from __future__ import annotations

import pytest
import yaml

from fabrictool.model import Code, Risk, Run, Status, WriteFile
from fabrictool.snapshot import Captured
from tests.link.sample import NETPLAN, OWN, UUID, Host, kept, netplan
from tests.link.test_running import bad, judged, one, persisted
from tests.ports.sample import MACS, MGMT, A, B

GENERATE = Run(("netplan", "generate"), undo=("netplan", "generate"))


def plain(renderer: str = "NetworkManager", a: str = "") -> Host:
    host = Host()
    host.netplan = {NETPLAN: netplan(renderer, a=a, b=kept(B))}
    if renderer == "networkd":
        host.nm, host.networkd = None, {A: "configured", B: "configured", MGMT: "configured"}
        host.units = {f"/run/systemd/network/10-netplan-{n}.network": f"[Match]\nName={n}\n" for n in (A, B)}
    return host


@pytest.mark.parametrize("renderer", ["NetworkManager", "networkd"])
def test_netplan_without_mtu_writes_a_dropin_on_the_existing_id(renderer: str) -> None:
    f = persisted(plain(renderer))
    assert (f.code, f.status, f.risk) == (Code.LINK_MTU_PERSISTED, Status.FAIL, Risk.NONE)
    write, generate = f.steps
    assert generate == GENERATE
    assert isinstance(write, WriteFile)
    assert (write.path, write.before, write.mode) == (OWN, "", 0o600)
    assert yaml.safe_load(write.text) == {"network": {"version": 2, "ethernets": {
        A: {"match": {"macaddress": MACS[A]}, "set-name": A, "mtu": 9000}}}}


@pytest.mark.parametrize("renderer", ["NetworkManager", "networkd"])
def test_the_dropin_makes_it_pass(renderer: str) -> None:
    host = plain(renderer)
    write = persisted(host).steps[0]
    assert isinstance(write, WriteFile)
    assert host.netplan is not None
    host.netplan[OWN] = write.text
    f = persisted(host)
    assert (f.status, f.steps) == (Status.PASS, ())


def test_a_wrong_dropin_is_replaced_by_its_digest() -> None:
    host = plain()
    assert host.netplan is not None
    host.netplan[OWN] = f"network: {{version: 2, ethernets: {{{A}: {{mtu: 1500}}}}}}\n"
    write = persisted(host).steps[0]
    assert isinstance(write, WriteFile)
    assert len(write.before) == 64


def test_a_dropin_that_others_can_read_is_written_anew() -> None:
    host = Host()
    assert host.netplan is not None
    host.netplan[OWN] = f"network: {{version: 2, ethernets: {{{A}: {{mtu: 9000}}}}}}\n"
    assert persisted(host).status is Status.PASS
    host.own_mode = "644"
    assert persisted(host).steps


def test_networkd_by_name_alone_is_not_reliable() -> None:
    f = persisted(plain("networkd", a="      mtu: 9000\n"))
    assert (f.status, f.got) == (Status.FAIL, "9000 (netplan (networkd))")
    assert "name only" in f.why
    assert f.steps
    assert persisted(plain("NetworkManager", a="      mtu: 9000\n")).status is Status.PASS
    assert persisted(plain("networkd", a=kept(A))).status is Status.PASS


def test_running_state_is_no_evidence_of_persistence() -> None:
    host = plain()
    assert host.netdevs[A]["mtu"] == 9000
    assert persisted(host).status is Status.FAIL
    host = Host()
    host.netdevs[A]["mtu"] = 1500
    assert persisted(host).status is Status.PASS


@pytest.mark.parametrize(("name", "wins"), [("/etc/netplan/10-early.yaml", False), ("/etc/netplan/50-late.yaml", True),
                                            ("/run/netplan/40-cx7.yaml", True), ("/lib/netplan/40-cx7.yaml", False)])
def test_order_and_hiding_of_netplan_files(name: str, wins: bool) -> None:
    host = Host()
    assert host.netplan is not None
    host.netplan[name] = netplan(a=kept(A, 1500), b=kept(B))
    f = persisted(host)
    assert f.status is (Status.FAIL if wins else Status.PASS)
    assert bool(f.steps) is wins


def test_a_later_file_that_would_win_gets_no_steps() -> None:
    host = plain()
    assert host.netplan is not None
    host.netplan["/etc/netplan/99-site.yaml"] = f"network: {{version: 2, ethernets: {{{A}: {{mtu: 1500}}}}}}"
    f = persisted(host)
    assert (f.code, f.status, f.steps) == (Code.LINK_OWNER_UNSUPPORTED, Status.FAIL, ())
    assert "99-site.yaml" in f.why
    assert "mtu: 9000" in f.remedy


def test_a_definition_for_several_interfaces_is_not_narrowed() -> None:
    host = Host()
    host.netplan = {NETPLAN: "network: {version: 2, renderer: networkd, ethernets: {all: {match: {name: 'en*np0'}, dhcp4: no}}}"}
    f = persisted(host)
    assert (f.code, f.steps) == (Code.LINK_OWNER_UNSUPPORTED, ())
    assert B in f.why
    host.netplan = {NETPLAN: f"network: {{version: 2, renderer: networkd, ethernets: {{one: {{match: {{name: '{A}'}}, dhcp4: no}}}}}}"}
    write = persisted(host).steps[0]
    assert isinstance(write, WriteFile)
    assert list(yaml.safe_load(write.text)["network"]["ethernets"]) == ["one"]


def test_exact_match_of_networkmanager_is_left_alone() -> None:
    host = Host()
    host.netplan = {NETPLAN: f"""network:
  version: 2
  ethernets:
    NM-{UUID}:
      renderer: NetworkManager
      match:
        name: "{A}"
      addresses: [10.10.1.1/24]
      networkmanager: {{uuid: "{UUID}", name: "fab a"}}
"""}
    write = persisted(host).steps[0]
    assert isinstance(write, WriteFile)
    assert yaml.safe_load(write.text)["network"]["ethernets"] == {f"NM-{UUID}": {"mtu": 9000}}
    host.netplan[OWN] = write.text
    assert persisted(host).status is Status.PASS


def test_two_definitions_are_two_owners() -> None:
    host = Host()
    assert host.netplan is not None
    host.netplan["/etc/netplan/60-x.yaml"] = "network: {version: 2, ethernets: {any: {match: {name: 'enp1*'}, mtu: 9000}}}"
    host.tables()
    found = judged(host)
    assert one(found, "link.owner").code is Code.LINK_TWO_OWNERS
    assert (one(found, "link.mtu_persisted").code, one(found, "link.mtu_persisted").steps) == (Code.BLOCKED, ())
    assert one(found, "link.owner", B).status is Status.PASS


def test_broken_yaml_aliases_and_bombs_are_unknown() -> None:
    bomb = "a: &a [x]\nb: &b [*a, *a]\nnetwork: {version: 2}\n"
    for text in ("network: [", "network: {version: 2, ethernets: {\x00}}", bomb, "[" * 5000, "x" * 70_000, "\udcff: 1"):
        host = Host()
        assert host.netplan is not None
        host.netplan["/etc/netplan/60-x.yaml"] = text
        f = persisted(host)
        assert (f.status, f.steps) == (Status.UNKNOWN, ()), text[:30]


def test_netplan_files_without_netplan_are_not_read() -> None:
    host = Host()
    host.tables()
    host.sections["link.netplan_tool"] = Captured(0, "no\n")
    assert (Code.LINK_NO_OWNER, Status.WARN) in bad(judged(host))
