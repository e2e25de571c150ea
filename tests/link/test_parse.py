"""Every parser: real texts, prefixes, CRLF, anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.link import ini, netplan, networkd, networkmanager, others, read
from fabrictool.link.sections import SECTIONS, file_texts
from fabrictool.model import Unreadable
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.snapshot.model import FileText
from tests.link.sample import Host, kept, keyfile
from tests.link.sample import netplan as netplan_text
from tests.ports.sample import A, B

NMCLI = ("enp1s0f0np0:connected:netplan-enp1s0f0np0\nwlP9s9:disconnected:\nlo:connected (externally):lo\n"
         "ib\\:0:connected:Wired\\: a\\\\b\ndocker0:unmanaged:\n@end\n")
NETWORKCTL = """IDX LINK         TYPE     OPERATIONAL SETUP
  1 lo           loopback carrier     unmanaged
  2 enp1s0f0np0  ether    routable    configured
  3 docker0      bridge   no-carrier  unmanaged

3 links listed.
"""


def test_nmcli() -> None:
    got = networkmanager.parse_devices(NMCLI)
    assert not isinstance(got, Unreadable)
    assert got["ib:0"] == ("connected", "Wired: a\\b")
    assert got["lo"] == ("connected (externally)", "lo")
    assert networkmanager.parse_devices(NMCLI.replace("\n", "\r\n")) == got


def test_networkctl() -> None:
    got = networkd.parse_networkctl(NETWORKCTL)
    assert got == {"lo": "unmanaged", "enp1s0f0np0": "configured", "docker0": "unmanaged"}
    assert networkd.parse_networkctl(NETWORKCTL.replace("\n", "\r\n")) == got


def test_every_prefix_is_whole_or_unreadable() -> None:
    for text, parse in ((NMCLI, networkmanager.parse_devices), (NETWORKCTL, networkd.parse_networkctl)):
        full = parse(text)
        assert not isinstance(full, Unreadable)
        for end in range(len(text)):
            got = parse(text[:end])
            assert isinstance(got, Unreadable) or got == full, end


def test_every_prefix_of_the_file_sections() -> None:
    host = Host()
    whole = host.snapshot()
    full = read(whole)
    for name in ("link.netplan", "link.nm_profiles", "link.arp", "link.netplan_own"):
        text = whole.sections[name].out
        for end in range(0, len(text) - 1, 5):
            got = read(Snapshot("x", {**whole.sections, name: Captured(0, text[:end])}, ssh=whole.ssh))
            for field in ("netplan", "profiles", "arp"):
                seen = getattr(got, field)
                assert isinstance(seen, Unreadable) or seen == getattr(full, field), (name, end, field)


def test_netplan_renderers() -> None:
    text = """network:
  version: 2
  renderer: NetworkManager
  ethernets:
    renderer: networkd
    a: {mtu: 9000}
    b: {renderer: NetworkManager, mtu: "1500"}
  bonds:
    c: {interfaces: [a]}
"""
    got = netplan.merge({"/etc/netplan/1.yaml": text})
    assert not isinstance(got, Unreadable)
    assert {d.ident: (d.kind, d.renderer, d.mtu) for d in got} == {
        "a": ("ethernets", "networkd", 9000), "b": ("ethernets", "NetworkManager", 1500), "c": ("bonds", "NetworkManager", None)}


def test_netplan_merges_maps_and_replaces_scalars() -> None:
    got = netplan.merge({"/etc/netplan/20.yaml": "network: {ethernets: {a: {match: {macaddress: 'AA:bb:cc:dd:ee:ff'}, mtu: 1}}}",
                         "/etc/netplan/10.yaml": "network: {ethernets: {a: {match: {name: x}, mtu: 2, dhcp4: yes}}}",
                         "/etc/netplan/30.yaml": "", "/etc/netplan/40.yaml": "network: {ethernets: {a: null}}"})
    assert not isinstance(got, Unreadable)
    (d,) = got
    assert (d.match_names, d.match_mac, d.mtu, d.dhcp, d.mtu_file) == (("x",), "aa:bb:cc:dd:ee:ff", 1, True, "/etc/netplan/20.yaml")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=120))
def test_any_text_never_raises(text: str) -> None:
    file = FileText("/etc/x", text)
    assert isinstance(netplan.merge({"/etc/netplan/1.yaml": text}), (tuple, Unreadable))
    assert isinstance(networkmanager.parse_devices(text), (dict, Unreadable))
    assert isinstance(networkd.parse_networkctl(text), (dict, Unreadable))
    assert isinstance(networkmanager.parse_profiles({"/etc/a": file}), tuple)
    assert isinstance(networkd.parse_units({"/etc/systemd/network/a.network": file}).networks, tuple)
    assert isinstance(others.parse_interfaces({"/etc/network/interfaces": file}), tuple)
    assert isinstance(others.parse_ifcfg({"/etc/sysconfig/network/ifcfg-a": file}), tuple)
    assert isinstance(ini.parse(text).rows, tuple)


SHAPE: Any = st.recursive(st.text(max_size=5) | st.integers() | st.none(), lambda x: st.lists(x, max_size=3) | st.dictionaries(
    st.sampled_from(("network", "ethernets", "bonds", "renderer", "match", "name", "macaddress", "driver", "mtu", "set-name", A)), x,
    max_size=5), max_leaves=15)


@settings(max_examples=150, deadline=None)
@given(SHAPE)
def test_yaml_of_any_shape_never_raises(tree: object) -> None:
    host = Host()
    assert host.netplan is not None
    host.netplan["/etc/netplan/60.yaml"] = yaml.safe_dump({"network": {"ethernets": tree}}, allow_unicode=True)
    host.tables()
    got = read(host.snapshot())
    assert isinstance(got.netplan, (netplan.Netplan, Unreadable))


def test_long_lines_and_bytes_that_are_not_utf8() -> None:
    for text in ("x" * 10_000_000, "\udcff\udcfe=1\n" * 10):
        assert isinstance(networkmanager.parse_devices(text), Unreadable)
        assert isinstance(networkd.parse_networkctl(text), Unreadable)
        assert isinstance(netplan.merge({"/etc/netplan/1.yaml": text}), Unreadable)
        assert others.parse_interfaces({"p": FileText("p", text)}) == ()


def _run(name: str, old: str, new: str) -> str:
    (section,) = [s for s in SECTIONS if s.name == name]
    shell = section.shell.replace(old, new)
    assert shell != section.shell
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout


@pytest.mark.parametrize("secret", [
    '          password: "hunter2 x"\n', "          password: hunter2\n", "          auth: {key-management: psk, password: 'hunter2'}\n",
    '          "password": "hunter2"\n', "          access-points: {home: {password: hunter2}}\n", "          keys: {private: hunter2}\n",
])
def test_wifi_keys_never_leave_the_node(tmp_path: Path, secret: str) -> None:
    (tmp_path / "50-wifi.yaml").write_text(f"network:\n  wifis:\n    w0:\n      x:\n{secret}      dhcp4: yes\n")
    out = _run("link.netplan", "/etc/netplan/", f"{tmp_path}/")
    got = file_texts(Snapshot("x", {"link.netplan": Captured(0, out)}), "link.netplan")
    assert not isinstance(got, Unreadable)
    (file,) = got.values()
    assert "hunter" not in file.text
    assert "***" in file.text
    assert "dhcp4: yes" in file.text
    assert not isinstance(netplan.merge({"/etc/netplan/5.yaml": file.text}), Unreadable)


def test_keyfile_secrets_never_leave_the_node(tmp_path: Path) -> None:
    (tmp_path / "a b.nmconnection").write_text(keyfile(mtu=9000) + "[wifi-security]\npsk=hunter2\nwep-key0=hunter2\n[802-1x]\n"
                                             "private-key-password=hunter2\npassword=hunter2\n")
    out = _run("link.nm_profiles", "/etc/NetworkManager/system-connections/", f"{tmp_path}/")
    assert "hunter2" not in out
    got = file_texts(Snapshot("x", {"p": Captured(0, out)}), "p")
    assert not isinstance(got, Unreadable)
    (profile,) = networkmanager.parse_profiles({"/etc/NetworkManager/x": next(iter(got.values()))})
    assert (profile.mtu, profile.interface) == (9000, A)


def test_plain_netplan_passes_the_filter_unchanged(tmp_path: Path) -> None:
    text = netplan_text(a=kept(A), b=kept(B))
    (tmp_path / "40-cx7.yaml").write_text(text)
    (tmp_path / "41-masked.yaml").symlink_to("/dev/null")
    (tmp_path / "42-gone.yaml").symlink_to(tmp_path / "nowhere")
    out = _run("link.netplan", "/etc/netplan/", f"{tmp_path}/")
    got = file_texts(Snapshot("x", {"p": Captured(0, out)}), "p")
    assert got == {f"{tmp_path}/40-cx7.yaml": FileText(f"{tmp_path}/40-cx7.yaml", text, 0o644, os.geteuid()), f"{tmp_path}/41-masked.yaml":
                   FileText(f"{tmp_path}/41-masked.yaml", "", 0)}
