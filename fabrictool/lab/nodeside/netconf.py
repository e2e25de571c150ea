"""Persistent network configuration, as far as a lab node's boot obeys it: netplan, NetworkManager keyfiles, networkd, ifupdown.

Addresses are the lab's own (a node must stay reachable); what the files decide is the MTU after a boot.
"""

from __future__ import annotations

import configparser
import fnmatch
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NETPLAN_DIRS = ("/lib/netplan", "/etc/netplan", "/run/netplan")
KEYFILE_DIRS = ("/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections")
NETWORK_DIRS = ("/etc/systemd/network", "/run/systemd/network")


class NetplanError(Exception):
    """Text as netplan prints it."""


@dataclass(frozen=True)
class Ethernet:
    """One id under `ethernets:` of the merged netplan configuration."""

    id: str
    renderer: str
    mac: str
    mtu: int | None
    addresses: tuple[str, ...]
    dhcp4: bool
    named: bool  # by its id, without a match

    @property
    def interface(self) -> str:
        return self.id if self.named else ""


def netplan_files() -> list[Path]:
    """In the order of merging: by base name; a later folder hides the same name in an earlier one."""
    found: dict[str, Path] = {}
    for folder in NETPLAN_DIRS:
        for path in Path(folder).glob("*.yaml"):
            found[path.name] = path
    return [found[name] for name in sorted(found)]


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif isinstance(value, list) and isinstance(into.get(key), list):
            into[key] = into[key] + [v for v in value if v not in into[key]]
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def read_netplan() -> list[Ethernet]:
    """NetplanError on the first file that is no good."""
    import yaml  # bound into the node by the lab; only netplan needs it

    merged: dict[str, Any] = {}
    for path in netplan_files():
        try:
            raw = yaml.safe_load(path.read_text()) or {}
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
            raise NetplanError(f"{path}:{where}: Invalid YAML: {getattr(error, 'problem', None) or 'cannot be read'}") from error
        if not isinstance(raw, dict) or not isinstance(raw.get("network", {}), dict):
            raise NetplanError(f"{path}:1:1: Error in network definition: expected mapping")
        unknown = set(raw) - {"network"}
        if unknown:
            raise NetplanError(f"{path}:1:1: Error in network definition: unknown key '{sorted(unknown)[0]}'")
        _merge(merged, raw.get("network") or {})
    return [_ethernet(key, value, str(merged.get("renderer", "networkd"))) for key, value in (merged.get("ethernets") or {}).items()]


def _ethernet(key: str, raw: object, renderer: str) -> Ethernet:
    if not isinstance(raw, dict):
        raise NetplanError(f"Error in network definition: {key}: expected mapping")
    match = raw.get("match") or {}
    mtu = raw.get("mtu")
    if mtu is not None and not isinstance(mtu, int):
        raise NetplanError(f"Error in network definition: invalid unsigned int value '{mtu}'")
    return Ethernet(str(key), str(raw.get("renderer", renderer)), str(match.get("macaddress", "")).lower(), mtu,
                    tuple(str(a) for a in raw.get("addresses") or ()), bool(raw.get("dhcp4", False)), not match)


def keyfile(e: Ethernet) -> str:
    """As netplan's generator writes it for NetworkManager."""
    lines = ["[connection]", f"id=netplan-{e.id}", "type=ethernet"]
    lines += [f"interface-name={e.id}"] if e.named else []
    lines += ["", "[ethernet]", "wake-on-lan=0"]
    lines += [f"mac-address={e.mac.upper()}"] if e.mac else []
    lines += [f"mtu={e.mtu}"] if e.mtu else []
    lines += ["", "[ipv4]"]
    lines += ["method=auto"] if e.dhcp4 else ["method=manual"] if e.addresses else ["method=link-local"]
    lines += [f"address{i}={a}" for i, a in enumerate(e.addresses, 1)]
    return "\n".join([*lines, "", "[ipv6]", "method=link-local", ""])


def network_unit(e: Ethernet) -> str:
    """As netplan's generator writes it for systemd-networkd."""
    lines = ["[Match]", f"PermanentMACAddress={e.mac}" if e.mac else f"Name={e.id}", "", "[Link]"]
    lines += [f"MTUBytes={e.mtu}"] if e.mtu else []
    lines += ["", "[Network]", *(["DHCP=ipv4"] if e.dhcp4 else []), "LinkLocalAddressing=ipv6"]
    return "\n".join([*lines, *(f"Address={a}" for a in e.addresses), ""])


def generate() -> None:
    """What `netplan generate` does: the back ends' files under /run, old ones removed. NetplanError leaves all as it was."""
    ethernets = read_netplan()
    for folder, pattern in ((KEYFILE_DIRS[1], "netplan-*.nmconnection"), (NETWORK_DIRS[1], "10-netplan-*.network")):
        for old in Path(folder).glob(pattern):
            old.unlink()
    for e in ethernets:
        if e.renderer == "NetworkManager":
            target = Path(KEYFILE_DIRS[1], f"netplan-{e.id}.nmconnection")
            text = keyfile(e)
        else:
            target = Path(NETWORK_DIRS[1], f"10-netplan-{e.id}.network")
            text = network_unit(e)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        os.chmod(target, 0o600 if target.suffix == ".nmconnection" else 0o640)


class _CaseParser(configparser.ConfigParser):
    """Keys keep their case."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def ini(path: Path) -> configparser.ConfigParser:
    """A keyfile or a unit-like file; what cannot be parsed is empty, as its owner would ignore it."""
    parser = _CaseParser(interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#", ";"))
    try:
        parser.read_string(path.read_text())
    except (OSError, configparser.Error, UnicodeDecodeError):
        parser.clear()
    return parser


@dataclass(frozen=True)
class Keyfile:
    """A NetworkManager profile on disk (or, from netplan, under /run)."""

    path: Path
    id: str
    uuid: str
    interface: str
    mac: str
    mtu: int
    method: str
    autoconnect: bool
    priority: int

    def fits(self, interface: str, mac: str) -> bool:
        if not (self.interface or self.mac):
            return False
        return (not self.interface or self.interface == interface) and (not self.mac or self.mac == mac.lower())


def keyfiles() -> list[Keyfile]:
    """Ethernet profiles, best first. NetworkManager ignores a file that others could read."""
    found = []
    for folder in KEYFILE_DIRS:
        for path in sorted(Path(folder).glob("*")):
            if not path.is_file() or path.stat().st_mode & 0o077:
                continue
            raw = ini(path)
            if raw.get("connection", "type", fallback="") not in ("ethernet", "802-3-ethernet"):
                continue
            section = "ethernet" if raw.has_section("ethernet") else "802-3-ethernet"
            found.append(Keyfile(
                path, raw.get("connection", "id", fallback=path.stem), raw.get("connection", "uuid", fallback=""),
                raw.get("connection", "interface-name", fallback=""), raw.get(section, "mac-address", fallback="").lower(),
                _int(raw.get(section, "mtu", fallback="0")), raw.get("ipv4", "method", fallback="auto"),
                raw.get("connection", "autoconnect", fallback="true") != "false",
                _int(raw.get("connection", "autoconnect-priority", fallback="0"))))
    return sorted(found, key=lambda k: -k.priority)


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def networks() -> list[Path]:
    """networkd's files in its order: by base name; /etc hides the same name in /run."""
    found: dict[str, Path] = {}
    for folder in reversed(NETWORK_DIRS):
        for path in Path(folder).glob("*.network"):
            found[path.name] = path
    return [found[name] for name in sorted(found)]


def network_of(interface: str, mac: str) -> Path | None:
    """The one .network file that networkd takes for an interface: the first that matches."""
    for path in networks():
        match = dict(ini(path).items("Match")) if ini(path).has_section("Match") else {}
        names = match.get("Name", "*").split()
        macs = (match.get("PermanentMACAddress") or match.get("MACAddress") or mac).lower().split()
        if match and any(fnmatch.fnmatchcase(interface, n) for n in names) and mac.lower() in macs:
            return path
    return None


def ifupdown_mtus() -> dict[str, int]:
    """`mtu N` of the `iface` stanzas in /etc/network/interfaces and its .d folder."""
    found: dict[str, int] = {}
    for path in (Path("/etc/network/interfaces"), *sorted(Path("/etc/network/interfaces.d").glob("*"))):
        name = ""
        for words in (line.split() for line in (path.read_text() if path.is_file() else "").splitlines()):
            if words[:1] == ["iface"] and len(words) > 1:
                name = words[1]
            elif words[:1] == ["mtu"] and len(words) == 2 and name:
                found[name] = _int(words[1])
    return found


def boot_mtus(macs: Mapping[str, str]) -> dict[str, int]:
    """Interface -> MTU as the configuration sets it at a boot; interfaces about which nothing is said are not in it."""
    found = ifupdown_mtus()
    profiles = [k for k in keyfiles() if k.autoconnect]
    for interface, mac in macs.items():
        path = network_of(interface, mac)
        if path is not None:
            found[interface] = _int(ini(path).get("Link", "MTUBytes", fallback="0"))
        profile = next((k for k in profiles if k.fits(interface, mac)), None)
        if profile is not None:
            found[interface] = profile.mtu
    return {name: mtu for name, mtu in found.items() if mtu > 0}
