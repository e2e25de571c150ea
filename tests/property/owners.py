"""Who keeps the fabric interfaces' configuration: drawn per interface, written as the owner's own files."""

from __future__ import annotations

import uuid
from random import Random

from fabrictool.lab.nodeside import netconf
from fabrictool.lab.plan import Cable, NodePlan
from tests.property.sim import Sim, at_home

KINDS = ("netplan NM", "netplan NM", "netplan networkd", "netplan networkd by name", "NM profile", "NM profile unbound", "networkd",
         "ifupdown", "none", "netplan and NM profile", "netplan and ifupdown")
PROFILES = "/etc/NetworkManager/system-connections"


def draw_owners(r: Random, sim: Sim, plan: NodePlan, mine: list[str], mtu: int) -> dict[str, str]:
    """Interface -> owner. Nodes mix: each interface has its own. The management interface always has a quiet owner of its own."""
    drawn: dict[str, str] = {}
    ethernets = ""
    stanzas = ""
    sim.root.write(f"{PROFILES}/management.nmconnection", profile(plan.management, "management", 0, True), 0o600)
    for number, cable in enumerate(c for c in plan.fabric if c.interface in mine):
        kind = r.choice(KINDS)
        kept = r.choice((0, 0, 1500, mtu))
        drawn[cable.interface] = f"{kind}, mtu {kept}"
        if kind.startswith("netplan"):
            ethernets += definition(cable, "networkd" if "networkd" in kind else "NetworkManager", kept, "by name" not in kind)
        if "NM profile" in kind:
            name = f"fabric-{number}"
            sim.root.write(f"{PROFILES}/{name}.nmconnection", profile(cable, name, kept, "unbound" not in kind), 0o600)
        if kind == "networkd":
            line = f"MTUBytes={kept}\n" if kept else ""
            sim.root.write(f"/etc/systemd/network/30-{cable.interface}.network",
                           f"[Match]\nMACAddress={cable.mac}\n\n[Link]\n{line}\n[Network]\nAddress={cable.address}\n")
        if "ifupdown" in kind:
            stanzas += f"auto {cable.interface}\niface {cable.interface} inet static\n  address {cable.address}\n"
            stanzas += f"  mtu {kept}\n" if kept else ""
        if "netplan" in kind and r.random() < 0.2:
            path = f"/etc/netplan/90-fabrictool-{cable.interface}.yaml"
            old = r.choice((1500, mtu))
            body = f"network:\n  version: 2\n  ethernets:\n    {cable.interface}:\n      mtu: {old}\n"
            sim.root.write(path, body, r.choice((0o600, 0o644)))
            drawn[cable.interface] += f", drop-in {old}"
    if ethernets:
        sim.root.write("/etc/netplan/40-fabric.yaml", f"network:\n  version: 2\n  ethernets:\n{ethernets}", 0o600)
    if stanzas:
        sim.root.write("/etc/network/interfaces", stanzas)
    with at_home(sim):
        netconf.generate()  # as at the last boot
    return drawn


def definition(cable: Cable, renderer: str, mtu: int, by_mac: bool) -> str:
    wanted = by_mac and renderer == "networkd"
    match = f"      match: {{macaddress: \"{cable.mac}\"}}\n      set-name: {cable.interface}\n" if wanted else ""
    line = f"      mtu: {mtu}\n" if mtu else ""
    return f"    {cable.interface}:\n      renderer: {renderer}\n{match}      dhcp4: false\n      addresses: [{cable.address}]\n{line}"


def profile(cable: Cable, name: str, mtu: int, bound: bool) -> str:
    key = uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {cable.mac}")
    where = f"interface-name={cable.interface}\n" if bound else ""
    line = f"mtu={mtu}\n" if mtu else ""
    return (f"[connection]\nid={name}\nuuid={key}\ntype=ethernet\n{where}\n[ethernet]\n{line}\n"
            f"[ipv4]\nmethod=manual\naddress1={cable.address}\n\n[ipv6]\nmethod=ignore\n")
