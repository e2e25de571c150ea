"""What would be after a reboot: owners, the MTU in their files, the steps, and each code with its healthy twin."""

from __future__ import annotations

import pytest

from fabrictool.link import Owner
from fabrictool.model import Code, Risk, Run, Status
from fabrictool.snapshot import Captured
from tests.link.sample import NETPLAN, UUID, Host, kept, keyfile, netplan, stream
from tests.link.test_running import bad, judged, one, only, persisted
from tests.ports.sample import DENIED, HANGS, MACS, MGMT, A, B


def by_profile(mtu: int = 0, active: bool = True, **more: str) -> Host:
    host = Host()
    host.netplan = None
    host.profiles = {"/etc/NetworkManager/system-connections/fab-a.nmconnection": keyfile(mtu=mtu, **more),  # type: ignore[arg-type]
                     "/etc/NetworkManager/system-connections/fab-b.nmconnection": keyfile("fab-b", UUID[:-1] + "2", B, 9000)}
    host.nm = {A: "connected:fab-a" if active else "disconnected:", B: "connected:fab-b", MGMT: "connected:office"}
    return host


def test_networkmanager_profile() -> None:
    f = persisted(by_profile())
    modify = ("nmcli", "connection", "modify", UUID, "802-3-ethernet.mtu")
    again = ("nmcli", "device", "reapply", A)
    then = ("sh", "-c", 'nmcli device reapply "$1"; ip link set dev "$1" mtu "$2"', "sh", A, "9000")
    assert f.steps == (Run((*modify, "9000"), undo=then), Run(again, undo=(*modify, "0")))  # undone from the last to the first
    assert (f.code, f.risk) == (Code.LINK_MTU_PERSISTED, Risk.NONE)
    assert persisted(by_profile(mtu=9000)).status is Status.PASS


def test_reapply_flaps_while_the_running_mtu_is_wrong() -> None:
    host = by_profile(mtu=4200)
    host.netdevs[A]["mtu"] = 4200
    f = persisted(host)
    assert f.risk is Risk.FLAP
    assert isinstance(f.steps[1], Run)
    assert f.steps[1].undo[-1] == "4200"


def test_inactive_profile_is_not_reapplied() -> None:
    f = persisted(by_profile(active=False))
    assert [s.argv[1] for s in f.steps if isinstance(s, Run)] == ["connection"]


@pytest.mark.parametrize("other", [
    keyfile("Wired connection 1", UUID[:-1] + "9", "", 0, "auto", mac=MACS[A].upper()),
    keyfile("any", UUID[:-1] + "9", "", 0, "auto"),
])
def test_a_second_profile_may_win(other: str) -> None:
    host = by_profile(mtu=9000)
    host.profiles["/etc/NetworkManager/system-connections/other.nmconnection"] = other
    host.tables()
    assert one(judged(host), "link.owner").code is Code.LINK_TWO_OWNERS


@pytest.mark.parametrize("other", [
    keyfile("Wired connection 1", UUID[:-1] + "9", "", 0, "auto", mac=MACS[A], priority="-999"),
    keyfile("x", UUID[:-1] + "9", A, 0, autoconnect="false"), keyfile("x", UUID[:-1] + "9", "wlP9s9", type="wifi"),
    keyfile("x", UUID[:-1] + "9", "eth7"), keyfile("x", UUID[:-1] + "9", "", 0, mac="00:00:00:00:00:01"),
])
def test_profiles_that_do_not_compete(other: str) -> None:
    host = by_profile(mtu=9000)
    host.profiles["/etc/NetworkManager/system-connections/other.nmconnection"] = other
    assert persisted(host).status is Status.PASS


def test_profile_for_any_interface_is_not_written() -> None:
    host = by_profile()
    host.profiles = {"/etc/NetworkManager/system-connections/any.nmconnection": keyfile("any", UUID, "")}
    f = persisted(host)
    assert (f.code, f.steps) == (Code.LINK_OWNER_UNSUPPORTED, ())


def test_unmanaged_or_only_observed_is_no_owner() -> None:
    for state in ("unmanaged:", "connected (externally):enp1s0f0np0"):
        host = by_profile()
        host.nm = {A: state}
        host.profiles = {"/etc/NetworkManager/system-connections/any.nmconnection": keyfile("any", UUID, "")}
        host.tables()
        assert one(judged(host), "link.owner").code is Code.LINK_NO_OWNER


def test_two_owners_networkd_and_networkmanager() -> None:
    host = by_profile(mtu=9000)
    host.networkd = {A: "configured", B: "unmanaged"}
    host.units = {"/etc/systemd/network/20-a.network": f"[Match]\nName={A}\n[Link]\nMTUBytes=9000\n"}
    host.tables()
    found = judged(host)
    assert one(found, "link.owner").code is Code.LINK_TWO_OWNERS
    assert one(found, "link.owner", B).status is Status.PASS
    assert not [f for f in found if f.steps]


def by_networkd(match: str = f"Name={A}", mtu: str = "9000") -> Host:
    host = Host()
    host.netplan, host.nm, host.profiles = None, None, {}
    host.networkd = {A: "configured", B: "unmanaged", MGMT: "configured"}
    link = f"[Link]\nMTUBytes={mtu}\n" if mtu else ""
    host.units = {"/etc/systemd/network/20-a.network": f"[Match]\n{match}\n{link}[Network]\nAddress=10.10.1.1/24\n"}
    return host


@pytest.mark.parametrize("match", [f"Name={A}", "Name=en*np0 eth0", f"PermanentMACAddress={MACS[A].upper()}", "Name=!wl* lo\nType=ether",
                                   "Driver=mlx5_core"])
def test_networkd_files(match: str) -> None:
    assert persisted(by_networkd(match)).status is Status.PASS
    f = persisted(by_networkd(match, mtu="1500"))
    assert (f.code, f.status, f.steps) == (Code.LINK_OWNER_UNSUPPORTED, Status.FAIL, ())
    assert "MTUBytes=9000" in f.remedy
    assert "20-a.network" in f.remedy


def test_networkd_first_file_wins_and_dropins_count() -> None:
    host = by_networkd()
    host.units["/usr/lib/systemd/network/10-first.network"] = "[Match]\nName=*\n[Link]\nMTUBytes=1500\n"
    assert persisted(host).status is Status.FAIL
    host.units["/etc/systemd/network/10-first.network"] = ""  # masked
    assert persisted(host).status is Status.PASS
    host.units["/etc/systemd/network/20-a.network.d/mtu.conf"] = "[Link]\nMTUBytes=1500\n"
    assert persisted(host).status is Status.FAIL


def test_networkd_match_that_cannot_be_judged_is_unknown() -> None:
    assert persisted(by_networkd("Path=pci-0000:01:00.0")).status is Status.UNKNOWN
    assert persisted(by_networkd("Name=eth7\nPath=pci-0000:01:00.0")).status is Status.UNKNOWN  # managed, by no file we know


@pytest.mark.parametrize(("lines", "status", "code"), [
    ("    mtu 9000\n", Status.PASS, Code.LINK_MTU_PERSISTED), ("", Status.FAIL, Code.LINK_OWNER_UNSUPPORTED),
    ("    post-up ip link set dev $IFACE mtu 9000\n", Status.PASS, Code.LINK_MTU_PERSISTED),
    ("    mtu 1500\n", Status.FAIL, Code.LINK_OWNER_UNSUPPORTED),
])
def test_ifupdown(lines: str, status: Status, code: Code) -> None:
    host = Host()
    host.netplan, host.nm, host.profiles = None, None, {}
    host.interfaces = {"/etc/network/interfaces": "source /etc/network/interfaces.d/*\nauto lo\niface lo inet loopback\n",
                       "/etc/network/interfaces.d/fab": f"auto {A}\niface {A} inet static\n    address 10.10.1.1/24\n{lines}\n"}
    f = persisted(host)
    assert (f.status, f.code, f.steps) == (status, code, ())
    assert status is Status.PASS or "mtu 9000" in f.remedy


def test_a_stanza_that_nothing_brings_up_is_no_owner() -> None:
    host = Host()
    host.netplan, host.nm, host.profiles = None, None, {}
    for auto, code in (("", Code.LINK_NO_OWNER), (f"allow-hotplug {A}\n", Code.LINK_TWO_OWNERS)):
        host.interfaces = {"/etc/network/interfaces": f"{auto}iface {A} inet static\n    address 10.10.1.1/24\n    mtu 9000\n"}
        host.tables()
        assert one(judged(host), "link.owner").code is code  # LINK_TWO_OWNERS is also the code under which one owner passes


@pytest.mark.parametrize(("path", "owner"), [("/etc/sysconfig/network-scripts/ifcfg-" + A, Owner.IFCFG),
                                             ("/etc/sysconfig/network/ifcfg-" + A, Owner.WICKED)])
def test_ifcfg_and_wicked(path: str, owner: Owner) -> None:
    host = Host()
    host.netplan, host.nm, host.profiles = None, None, {}
    text = f"DEVICE={A}\nONBOOT=yes\nSTARTMODE='auto'\nBOOTPROTO=none\n"
    host.ifcfg = {path: text + "MTU='9000'\n"}
    assert persisted(host).status is Status.PASS
    host.ifcfg = {path: text}
    f = persisted(host)
    assert f.code is Code.LINK_OWNER_UNSUPPORTED
    assert owner in f.got


def test_no_owner_warns_with_the_lines_to_write() -> None:
    host = Host()
    host.netplan, host.nm, host.profiles = None, None, {}
    host.tables()
    found = judged(host)
    assert bad(found) == {(Code.LINK_NO_OWNER, Status.WARN), (Code.LINK_MTU_PERSISTED, Status.WARN)}
    assert MACS[A] in one(found, "link.owner").remedy


def test_a_link_file_keeps_the_mtu() -> None:
    host = Host()
    host.netplan, host.nm, host.profiles = None, None, {}
    host.units = {"/usr/lib/systemd/network/99-default.link": "[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep\n"}
    assert persisted(host).status is Status.WARN
    host.units["/etc/systemd/network/10-cx7.link"] = f"[Match]\nPermanentMACAddress={MACS[A]}\n[Link]\nMTUBytes=9000\n"
    assert persisted(host).status is Status.PASS
    host.units["/etc/systemd/network/05-other.link"] = f"[Match]\nOriginalName={A}\n[Link]\nMTUBytes=9000\n"
    assert persisted(host).status is Status.WARN  # whether the earlier file matches cannot be told


@pytest.mark.parametrize(("dhcp", "code"), [(True, {(Code.LINK_DHCP_PROFILE, Status.WARN)}), (False, set())])
def test_dhcp_on_a_fabric_port(dhcp: bool, code: set[tuple[Code, Status]]) -> None:
    host = by_profile(mtu=9000)
    host.profiles["/etc/NetworkManager/system-connections/fab-a.nmconnection"] = keyfile(mtu=9000, method="auto" if dhcp else "manual")
    host.tables()
    assert bad(judged(host)) == code
    host = Host()
    host.netplan = {NETPLAN: netplan(a=kept(A), b=kept(B)).replace("dhcp4: no", f"dhcp4: {'true' if dhcp else 'false'}", 1)}
    host.tables()
    assert bad(judged(host)) == code


def test_bond_and_vlan_are_reported_with_the_remedy() -> None:
    host = Host()
    host.bond("bond0", A, B, ip="10.10.1.1/24")
    for mtu, code in ((1500, Code.LINK_OWNER_UNSUPPORTED), (9000, Code.LINK_MTU_PERSISTED)):
        host.netplan = {NETPLAN: f"network: {{version: 2, bonds: {{bond0: {{interfaces: [{A}, {B}], mtu: {mtu}}}}}}}"}
        f = persisted(host, "bond0", **only("bond0", members=[A, B]))
        assert (f.code, f.steps) == (code, ())
    host = Host()
    host.vlan("fab.100", A, "10.10.1.1/24")
    for mtu, code in ((1500, Code.LINK_OWNER_UNSUPPORTED), (9000, Code.LINK_MTU_PERSISTED)):
        host.netplan = {NETPLAN: f"network: {{version: 2, vlans: {{fab.100: {{id: 100, link: {A}, mtu: {mtu}}}}}}}"}
        f = persisted(host, "fab.100", **only("fab.100"))
        assert (f.code, f.steps) == (code, ())


@pytest.mark.parametrize(("section", "seen", "code"), [
    ("link.nm_devices", HANGS, Code.TOOL_TIMEOUT), ("link.netplan", DENIED, Code.NEEDS_ROOT), ("link.nm_profiles", DENIED, Code.NEEDS_ROOT),
    ("link.netplan", Captured(0, f"@ denied - - {NETPLAN}\n"), Code.UNREADABLE), ("link.ifupdown", HANGS, Code.TOOL_TIMEOUT),
    ("link.networkctl", HANGS, Code.TOOL_TIMEOUT), ("link.netplan_tool", HANGS, Code.TOOL_TIMEOUT),
    ("link.netplan_own", DENIED, Code.NEEDS_ROOT),
    ("link.nm_devices", Captured(1, "", "Error: Could not create NMClient"), Code.UNREADABLE),
    ("link.nm_devices", Captured(0, ""), Code.UNREADABLE), ("link.nm_devices", Captured(0, "enp1s0f0np0:conn"), Code.UNREADABLE),
])
def test_an_owner_that_cannot_be_read_is_unknown(section: str, seen: Captured, code: Code) -> None:
    host = Host()
    host.tables()
    assert one(judged(host), "link.mtu_persisted").status is Status.PASS
    host.sections[section] = seen
    f = one(judged(host), "link.mtu_persisted")
    assert (f.status, f.code, f.steps) == (Status.UNKNOWN, code, ())


def test_denied_file_is_needs_root() -> None:
    host = Host()
    host.tables()
    host.sections["link.netplan"] = Captured(0, f"@ denied - - {NETPLAN}\n" + stream({}).out)
    assert one(judged(host), "link.mtu_persisted").code is Code.NEEDS_ROOT


@pytest.mark.parametrize("seen", [Captured(127, "", "nmcli: not found"), Captured(8, "", "Error: NetworkManager is not running.")])
def test_no_networkmanager_is_no_owner_of_that_kind(seen: Captured) -> None:
    host = by_profile(mtu=9000)
    host.tables()
    host.sections["link.nm_devices"] = seen
    assert one(judged(host), "link.owner").code is Code.LINK_NO_OWNER


def test_no_system_bus_is_no_networkd() -> None:
    host = Host()
    host.tables()
    host.sections["link.networkctl"] = Captured(1, "", "Failed to connect system bus: No such file or directory")
    assert one(judged(host), "link.mtu_persisted").status is Status.PASS
