"""Network configuration that is kept for the next boot: netplan, NetworkManager keyfiles, systemd-networkd."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.link import netplan, networkd, networkmanager
from fabrictool.model import Code, Finding, Unreadable
from fabrictool.room import About
from fabrictool.snapshot.model import FileText
from fabrictool.snapshot.sniff import Kind, Line

KINDS = frozenset({Kind.NETPLAN, Kind.NM_KEYFILE, Kind.NETWORKD})
_WANT = "an MTU"


def judge(case: Case) -> Iterator[Judged]:
    make = {Kind.NETPLAN: _netplan, Kind.NM_KEYFILE: _keyfile, Kind.NETWORKD: _networkd}[case.piece.kind]
    yield Judged(case.piece.kind, (case.piece,), tuple(make(case)), case.piece.path,
                 ("what other files add: the owner reads all of them together",))


def _name(case: Case, fallback: str) -> str:
    return (case.piece.path or case.piece.source or fallback).rsplit("/", 1)[-1] or fallback


def _static_fabric(addresses: bool, gateway: bool, dhcp: bool) -> bool:
    """A static address and no way out of its network: what an interface of a fabric looks like, and no other."""
    return addresses and not gateway and not dhcp


def _mtu(case: Case, name: str, mtu: int | None, fabric: bool, lines: list[Line], how: str) -> Iterator[Finding]:
    about = About(Code.LINK_MTU_PERSISTED, case.function(name), "link.mtu_persisted", "")
    subject = about.subject
    spec = case.want.fabric.mtu if case.want is not None and subject.rail else None
    if spec is not None and mtu != spec:
        yield quoted(about.fail(f"{name}: {mtu or 'none set'}", str(spec), "after a reboot the interface has another MTU than fabric.mtu",
                                remedy=how.replace("9000", str(spec))), case.piece, lines)
    elif mtu is None and fabric and spec is None:
        why = ("after a reboot it gets the default, 1500: RoCE then sends packets of 1024 bytes, and loses large ones where the peers "
               "keep 9000")
        yield quoted(about.warn(f"{name}: none set", _WANT, why, remedy=how), case.piece, lines)
    elif mtu is not None or not fabric:
        shown = f"{name}: MTU {mtu}" if mtu is not None else f"{name}: MTU left alone"
        yield quoted(about.ok(shown), case.piece, lines)


def _netplan(case: Case) -> Iterator[Finding]:
    piece = case.piece
    path = f"/etc/netplan/{_name(case, 'paste.yaml')}"
    merged = netplan.merge({path: piece.text})
    if isinstance(merged, Unreadable):
        bad = About(Code.UNREADABLE, case.subject, "link.netplan", "").fail(
            "not read", "YAML as netplan takes it", merged.why.removeprefix(f"{path}: "),
            remedy="`netplan generate` on the node names the line; one broken file stops all of them")
        yield quoted(bad, piece, piece.lines[:1])
        return
    bodies = _bodies(piece.text)
    for d in merged:
        body = bodies.get(d.ident, {})
        routes = str(body.get("routes", ""))
        routed = "gateway4" in body or "gateway6" in body or "default" in routes or "0.0.0.0/0" in routes
        name = d.set_name or (d.match_names[0] if d.match_names else d.ident)
        lines = [ln for ln, _ in piece.find(rf"^\s+[\"']?{re.escape(d.ident)}[\"']?\s*:|\bmtu\s*:")]
        own = [ln for ln in lines if d.ident in ln.text] + [ln for ln in lines if d.mtu is not None and str(d.mtu) in ln.text]
        fabric = _static_fabric(bool(body.get("addresses")), routed, d.dhcp)
        yield from _mtu(case, name, d.mtu, fabric, own[:2] or list(piece.lines[:1]), f"add `mtu: 9000` below {d.ident}:")
        if d.mtu is not None and d.kind == "ethernets" and d.renderer != "NetworkManager" and not d.match_mac:
            unsure = About(Code.LINK_MTU_PERSISTED, case.function(name), "link.mtu_match", "").warn(
                f"{d.ident} is matched by name", "match: {macaddress: ...} and set-name",
                "udev applies the MTU before it renames the interface: matched by name alone it may be left at 1500",
                remedy="add match.macaddress and set-name to this id")
            yield quoted(unsure, piece, own[:1] or list(piece.lines[:1]))
    if not merged:
        yield quoted(About(Code.LINK_NO_OWNER, case.subject, "link.netplan", "").ok("no interface is defined here"), piece, piece.lines[:1])


def _bodies(text: str) -> dict[str, dict[str, object]]:
    """The definitions by their id, as text."""
    try:
        tree = yaml.load(text, netplan.Loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    network = tree.get("network") if isinstance(tree, dict) else None
    groups = [g for g in network.values() if isinstance(g, dict)] if isinstance(network, dict) else []
    return {str(k): v for g in groups for k, v in g.items() if isinstance(v, dict)}


def _keyfile(case: Case) -> Iterator[Finding]:
    piece = case.piece
    path = f"/etc/NetworkManager/system-connections/{_name(case, 'paste.nmconnection')}"
    for p in networkmanager.parse_profiles({path: FileText(path, piece.text)}):
        name = p.interface or p.name or "?"
        lines = [ln for ln, _ in piece.find(r"^\s*(?:mtu|interface-name|method)\s*=")]
        gateway = re.search(r"^\s*(?:gateway\s*=|address1\s*=[^,\n]{3,60},)", piece.text, re.M)
        fabric = _static_fabric(p.method == "manual", gateway is not None, False)
        yield from _mtu(case, name, p.mtu, fabric, lines or list(piece.lines[:1]), "nmcli connection modify NAME ethernet.mtu 9000")
        if p.method == "auto" and case.function(name).rail:
            dhcp = About(Code.LINK_DHCP_PROFILE, case.function(name), "link.dhcp", "").fail(
                "ipv4.method auto", "a static address", "DHCP on a fabric port may take the address away or reset the MTU",
                remedy="give the profile the rail's static address: ipv4.method manual")
            yield quoted(dhcp, piece, lines)


def _networkd(case: Case) -> Iterator[Finding]:
    piece = case.piece
    base = _name(case, "paste.network")
    ends = base.endswith((".network", ".link"))
    kind = base if ends else f"{base}{'.link' if 'OriginalName=' in piece.text or '[Network]' not in piece.text else '.network'}"
    path = f"/etc/systemd/network/{kind}"
    units = networkd.parse_units({path: FileText(path, piece.text)})
    for unit in (*units.networks, *units.links):
        name = unit.ini.last("Match", "Name") or unit.ini.last("Match", "OriginalName", "MACAddress") or "?"
        lines = [ln for ln, _ in piece.find(r"^\s*(?:MTUBytes|Name|MACAddress|DHCP)\s*=")]
        fabric = unit in units.networks and _static_fabric(
            bool(unit.ini.all("Network", "Address") or unit.ini.all("Address", "Address")),
            bool(unit.ini.all("Network", "Gateway") or unit.ini.all("Route", "Gateway")), unit.dhcp)
        yield from _mtu(case, name, unit.mtu, fabric, lines or list(piece.lines[:1]), "add `MTUBytes=9000` to [Link]")
