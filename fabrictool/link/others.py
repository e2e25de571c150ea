"""Owners that are only read: ifupdown, the ifcfg files of RHEL, wicked's ifcfg files of SUSE."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.ports import Netdev
from fabrictool.snapshot.model import FileText

_SET_MTU = re.compile(r"\b(?:ip link set|ifconfig)\b.*\bmtu (\d{3,5})\b")


@dataclass(frozen=True, slots=True)
class Stanza:
    """One interface in such a file. `tool` is ifupdown, ifcfg or wicked. `at_boot`: it is brought up without being asked."""

    tool: str
    path: str
    interface: str
    mac: str
    mtu: int | None
    dhcp: bool
    at_boot: bool

    def applies(self, n: Netdev) -> bool:
        if self.interface:
            return self.interface in n.names
        return bool(self.mac) and n.has_mac(self.mac)


def parse_interfaces(texts: Mapping[str, FileText]) -> tuple[Stanza, ...]:
    """interfaces(5). Only `iface` stanzas of IPv4 or IPv6; an MTU also from a hook command that sets it."""
    boot: set[str] = set()
    found: dict[str, Stanza] = {}
    for path, file in texts.items():
        name = ""
        for raw in file.text.replace("\\\n", " ").splitlines():
            words = raw.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] in ("auto", "allow-hotplug", "allow-auto"):
                boot.update(words[1:])
                name = ""
            elif words[0] == "iface" and len(words) >= 4:
                name = words[1]
                old = found.get(name)
                dhcp = words[2:4] == ["inet", "dhcp"] or bool(old and old.dhcp)
                found[name] = Stanza("ifupdown", path, name, "", old.mtu if old else None, dhcp, False)
            elif words[0] in ("source", "source-directory", "mapping", "rename"):
                name = ""
            elif name:
                old = found[name]
                hook = _SET_MTU.search(raw)
                mtu = words[1] if words[0] == "mtu" and len(words) > 1 else hook[1] if hook else ""
                if re.fullmatch(r"\d{1,6}", mtu):
                    found[name] = Stanza(old.tool, old.path, name, "", int(mtu), old.dhcp, False)
    return tuple(Stanza(s.tool, s.path, s.interface, "", s.mtu, s.dhcp, s.interface in boot) for s in found.values())


def parse_ifcfg(texts: Mapping[str, FileText]) -> tuple[Stanza, ...]:
    """KEY=value shell files; nothing is expanded."""
    out = []
    for path, file in texts.items():
        if path.endswith(("~", ".bak", ".orig", ".rpmsave", ".rpmnew", "/ifcfg-lo", ".template")):
            continue
        values: dict[str, str] = {}
        for line in file.text.splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and re.fullmatch(r"[A-Z_0-9]+", key):
                try:
                    values[key] = " ".join(shlex.split(value, comments=True))
                except ValueError:
                    continue
        wicked = path.startswith("/etc/sysconfig/network/")
        mtu = values.get("MTU", "")
        boot = values.get("STARTMODE", "manual").lower() in ("auto", "hotplug", "onboot", "nfsroot") if wicked \
            else values.get("ONBOOT", "yes").lower() in ("yes", "true", "1")
        out.append(Stanza(
            "wicked" if wicked else "ifcfg", path,
            path.rsplit("/ifcfg-", 1)[-1] if wicked else values.get("DEVICE", ""), values.get("HWADDR", "").lower(),
            int(mtu) if re.fullmatch(r"\d{1,6}", mtu) else None, values.get("BOOTPROTO", "").lower().startswith("dhcp"), boot,
        ))
    return tuple(out)
