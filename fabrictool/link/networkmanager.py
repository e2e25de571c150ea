"""NetworkManager: `nmcli device`, and the profiles in the files that it reads at boot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fabrictool.link.ini import parse
from fabrictool.model import Reason, Unreadable
from fabrictool.ports import Netdev
from fabrictool.snapshot.model import FileText

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TYPES = {"ethernet": "", "802-3-ethernet": "", "bond": "bond", "vlan": "vlan"}
_DIRS = ("/usr/lib/", "/etc/", "/run/")  # the same UUID in a later one hides the earlier (nm-settings-keyfile(5))


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile. `kind` is iproute2's word for its type. `mtu` None = automatic (unset or 0). `method` is ipv4's."""

    path: str
    name: str
    uuid: str
    kind: str
    interface: str
    mac: str
    patterns: tuple[str, ...]
    autoconnect: bool
    priority: int
    mtu: int | None
    method: str

    @property
    def from_netplan(self) -> bool:
        """Generated from a netplan definition: not an owner of its own."""
        return self.path.startswith("/run/") and self.path.rsplit("/", 1)[-1].startswith("netplan-")

    @property
    def bound(self) -> bool:
        """Bound to one interface by name or MAC; others apply to any that fits."""
        return bool(self.interface or self.mac)

    def applies(self, n: Netdev) -> bool:
        if self.kind != (n.kind if n.kind in ("bond", "vlan") else ""):
            return False
        if self.interface and self.interface != n.name:
            return False
        if self.mac and self.mac.lower() not in (n.permanent_mac or n.mac, n.mac):
            return False
        return not self.patterns or any(fnmatchcase(n.name, p.lstrip("|&")) for p in self.patterns)


def split_terse(line: str) -> list[str]:
    r"""`nmcli -t`: fields between colons; `\:` and `\\` inside a field."""
    fields, now, it = [], "", iter(line)
    for ch in it:
        if ch == "\\":
            now += next(it, "")
        elif ch == ":":
            fields.append(now)
            now = ""
        else:
            now += ch
    return [*fields, now]


def parse_devices(text: str) -> Mapping[str, tuple[str, str]] | Unreadable:
    """`nmcli -t -f DEVICE,STATE,CONNECTION device`, then `@end` -> interface: (state, connection)."""
    out = {}
    lines = text.splitlines()
    if not lines or lines[-1].strip() != "@end":
        return Unreadable(Reason.CUT, "nmcli device: the end is missing")
    for line in lines[:-1]:
        fields = split_terse(line.rstrip("\r"))
        if len(fields) != 3:
            return Unreadable(Reason.GARBLED, f"nmcli device: not understood: {line[:80]!r}")
        out[fields[0]] = (fields[1], fields[2])
    return out


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None


def parse_profiles(texts: Mapping[str, FileText]) -> tuple[Profile, ...]:
    """Profiles of the types that an interface of the fabric can have. Without a UUID the path stands for it."""
    found: dict[str, Profile] = {}
    for directory in _DIRS:
        for path, file in texts.items():
            if not path.startswith(directory):
                continue
            ini = parse(file.text)
            kind = _TYPES.get(ini.last("connection", "type"))
            if kind is None:
                continue
            mtu = _int(ini.last("vlan" if kind == "vlan" else "ethernet", "mtu") or ini.last("ethernet", "mtu")
                       or ini.last("802-3-ethernet", "mtu"))
            uuid = ini.last("connection", "uuid")
            patterns = tuple(p for p in re.split(r"[;\s]+", ini.last("match", "interface-name")) if p)
            found[uuid or path] = Profile(
                path, ini.last("connection", "id"), uuid if _UUID.fullmatch(uuid) else "", kind,
                ini.last("connection", "interface-name"),
                (ini.last("ethernet", "mac-address") or ini.last("802-3-ethernet", "mac-address")).lower(), patterns,
                ini.last("connection", "autoconnect").lower() not in ("false", "0", "no"),
                _int(ini.last("connection", "autoconnect-priority")) or 0, mtu or None, ini.last("ipv4", "method"),
            )
    return tuple(found.values())


def candidates(profiles: tuple[Profile, ...], n: Netdev, state: str) -> tuple[Profile, ...]:
    """The profiles that may be activated on the interface at boot: of those that apply, the ones with the highest priority. Where
    two are left, the one used last wins, which no file tells. On an interface that NetworkManager only observes, a profile counts
    only if it names the interface."""
    external = "externally" in state
    fit = [p for p in profiles if p.autoconnect and p.applies(n) and (p.bound or not external)]
    top = max((p.priority for p in fit), default=0)
    return tuple(p for p in fit if p.priority == top)
