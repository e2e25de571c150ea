"""systemd-networkd's .network files and udev's .link files: the first one that matches wins, in the order of base names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from fabrictool.link.ini import Ini, parse
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports import Netdev
from fabrictool.snapshot.model import FileText

_DIRS = ("/lib/", "/usr/lib/", "/run/", "/etc/")  # later hides earlier (systemd.network(5))


class Match(Enum):
    YES = "yes"
    NO = "no"
    UNSURE = "unsure"  # a key that cannot be judged from here


@dataclass(frozen=True, slots=True)
class Unit:
    """One .network or .link file with its drop-ins."""

    path: str
    ini: Ini

    @property
    def from_netplan(self) -> bool:
        return self.path.startswith("/run/") and "/10-netplan-" in self.path

    @property
    def mtu(self) -> int | None:
        """MTUBytes=, with the suffixes K, M, G to the base of 1024."""
        m = re.fullmatch(r"(\d{1,9})([KMG]?)", self.ini.last("Link", "MTUBytes"))
        return int(m[1]) * {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}[m[2]] if m else None

    @property
    def unmanaged(self) -> bool:
        return self.ini.last("Link", "Unmanaged").lower() in ("yes", "true", "on", "1")

    @property
    def dhcp(self) -> bool:
        return self.ini.last("Network", "DHCP").lower() in ("yes", "true", "on", "1", "ipv4", "both", "v4")

    def match(self, n: Netdev) -> Match:
        """All keys of [Match] must hold. In a .link file OriginalName is the name before renaming, which only `*` surely fits."""
        keys = self.ini.keys("Match")
        if not keys:
            return Match.UNSURE
        seen = [self._key(k, n) for k in keys]
        if Match.NO in seen:
            return Match.NO
        return Match.UNSURE if Match.UNSURE in seen else Match.YES

    def _key(self, key: str, n: Netdev) -> Match:
        words = [w for v in self.ini.all("Match", key) for w in v.split()]
        if key == "Name":
            return _globs(words, n.names)
        if key == "OriginalName":
            return Match.YES if words == ["*"] else Match.UNSURE
        if key in ("MACAddress", "PermanentMACAddress"):
            mine = n.mac if key == "MACAddress" else n.permanent_mac or n.mac
            return Match.YES if mine in (w.lower().replace("-", ":") for w in words) else Match.NO
        if key == "Driver":
            return _globs(words, (n.driver.value,)) if isinstance(n.driver, Value) else Match.UNSURE
        if key == "Type":
            return _globs(words, (n.kind if n.kind in ("bond", "vlan", "bridge") else "ether",))
        if key == "Kind":
            return _globs(words, (n.kind,)) if n.kind else Match.NO
        return Match.UNSURE


def _globs(words: list[str], names: tuple[str, ...]) -> Match:
    """Shell globs; a leading `!` on the list negates it."""
    if words and words[0].startswith("!"):
        rest = [words[0][1:], *words[1:]]
        return Match.NO if any(fnmatchcase(n, g) for n in names for g in rest) else Match.YES
    return Match.YES if any(fnmatchcase(n, g) for n in names for g in words) else Match.NO


@dataclass(frozen=True, slots=True)
class Networkd:
    """Both kinds in the order in which they are tried."""

    networks: tuple[Unit, ...]
    links: tuple[Unit, ...]

    def network_for(self, n: Netdev) -> Observed[Unit]:
        return _first(self.networks, n)

    def link_for(self, n: Netdev) -> Observed[Unit]:
        return _first(self.links, n)


def _first(units: tuple[Unit, ...], n: Netdev) -> Observed[Unit]:
    for unit in units:
        how = unit.match(n)
        if how is Match.YES:
            return Value(unit)
        if how is Match.UNSURE and unit.ini.rows:
            return Unreadable(Reason.GARBLED, f"{unit.path}: whether it matches {n.name} cannot be told from here")
    return Absent(f"a file for {n.name}")


def parse_units(texts: Mapping[str, FileText]) -> Networkd:
    main: dict[str, str] = {}
    extra: dict[str, dict[str, str]] = {}
    for directory in _DIRS:
        for path in texts:
            if not path.startswith(directory):
                continue
            parts = path.rsplit("/", 2)
            if parts[1].endswith(".d"):
                extra.setdefault(parts[1][:-2], {})[parts[2]] = path
            else:
                main[parts[2]] = path
    units = []
    for base in sorted(main):
        rows = parse(texts[main[base]].text).rows
        for conf in sorted(extra.get(base, {})):
            rows += parse(texts[extra[base][conf]].text).rows
        units.append(Unit(main[base], Ini(rows)))
    return Networkd(tuple(u for u in units if u.path.endswith(".network")), tuple(u for u in units if u.path.endswith(".link")))


def parse_networkctl(text: str) -> Mapping[str, str] | Unreadable:
    """`networkctl list`: IDX LINK TYPE OPERATIONAL SETUP, and the count at the end -> interface: SETUP."""
    out = {}
    listed = re.search(r"^(\d{1,9}) links? listed\.\s*$", text, re.M)
    if not listed:
        return Unreadable(Reason.CUT, "networkctl list: the count at the end is missing")
    for line in text[:listed.start()].splitlines():
        words = line.split()
        if not words or not words[0].isdigit():
            continue  # the heading
        if len(words) != 5:
            return Unreadable(Reason.GARBLED, f"networkctl list: not understood: {line[:80]!r}")
        out[words[1]] = words[4]
    if len(out) != int(listed[1]):
        return Unreadable(Reason.CUT, f"networkctl list: {len(out)} of {listed[1]} links")
    return out
