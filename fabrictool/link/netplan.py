"""netplan: the merged definitions as `netplan generate` sees them, and the drop-in that sets one interface's MTU.

Files of /lib, /etc and /run are read in the order of their base names; /run hides /etc hides /lib under the same name; mappings
merge, scalars of later files win (netplan(5); held against netplan 0.106).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import yaml

from fabrictool.link.sections import DROPIN_PREFIX
from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports import Netdev
from fabrictool.snapshot.model import FileText

MAX_FILE = 65_536  # characters; netplan files are far smaller, and YAML is slow to parse
_DIRS = ("/lib/netplan/", "/etc/netplan/", "/run/netplan/")  # later hides earlier
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")


class Loader(yaml.BaseLoader):
    """Every scalar stays text (netplan decides by itself what `yes` means), and aliases are refused: they can grow without bound."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


@dataclass(frozen=True, slots=True)
class Definition:
    """One merged definition. `kind` is the section (ethernets, bonds, vlans); `files` are those that define it, in order."""

    ident: str
    kind: str
    renderer: str
    match_names: tuple[str, ...]
    match_mac: str
    match_drivers: tuple[str, ...]
    has_match: bool
    set_name: str
    mtu: int | None
    dhcp: bool
    files: tuple[str, ...]
    mtu_file: str = ""

    def matches(self, n: Netdev) -> bool:
        """Whether the definition configures the interface, by all the keys of its match (a plain id is the name)."""
        if self.kind != "ethernets" or not self.has_match:
            return self.ident == n.name
        if self.match_mac and not n.has_mac(self.match_mac):
            return False
        driver = n.driver.value if isinstance(n.driver, Value) else ""
        if self.match_drivers and not any(fnmatchcase(driver, d) for d in self.match_drivers):
            return False
        # With set-name the interface has its new name by now: what `match.name` says was its name before.
        return not self.match_names or self.set_name == n.name or any(fnmatchcase(n.name, g) for g in self.match_names)


@dataclass(frozen=True, slots=True)
class Netplan:
    """`texts`: all files. `definitions`: as merged. `own`: fabrictool's drop-ins byte for byte."""

    texts: Mapping[str, FileText]
    definitions: tuple[Definition, ...]
    own: Mapping[str, FileText]


def _order(texts: Mapping[str, str]) -> list[str]:
    """The paths that netplan reads, in its order."""
    by_name: dict[str, str] = {}
    for directory in _DIRS:
        for path in texts:
            if path.startswith(directory):
                by_name[path[len(directory):]] = path
    return [by_name[name] for name in sorted(by_name)]


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _merge(into: dict[str, object], extra: Mapping[object, object]) -> None:
    for key, value in extra.items():
        old = into.get(str(key))
        if isinstance(value, dict):
            target: dict[str, object] = dict(old) if isinstance(old, dict) else {}
            _merge(target, value)
            into[str(key)] = target
        else:
            into[str(key)] = value


def _yes(value: object) -> bool:
    """netplan's booleans (parse.c: handle_generic_bool)."""
    return isinstance(value, str) and value.lower() in ("true", "on", "yes", "y")


def merge(texts: Mapping[str, str]) -> tuple[Definition, ...] | Unreadable:
    """The definitions that the files make together. One file that netplan could not read stops `netplan generate`: Unreadable."""
    trees: dict[tuple[str, str], dict[str, object]] = {}
    files: dict[tuple[str, str], list[str]] = {}
    mtu_file: dict[tuple[str, str], str] = {}
    renderer = "networkd"
    for path in _order(texts):
        if len(texts[path]) > MAX_FILE:
            return Unreadable(Reason.CUT, f"{path}: larger than {MAX_FILE} characters")
        try:
            tree = yaml.load(texts[path], Loader)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            return Unreadable(Reason.GARBLED, f"{path}: not YAML as netplan reads it: {str(error).splitlines()[0][:100]}")
        network = tree.get("network") if isinstance(tree, dict) else None
        if not isinstance(network, dict):
            continue
        renderer = network["renderer"] if isinstance(network.get("renderer"), str) else renderer
        for kind in ("ethernets", "bonds", "vlans"):
            group = network.get(kind)
            if not isinstance(group, dict):
                continue
            for ident, body in group.items():
                if not isinstance(body, dict):
                    continue
                key = (kind, str(ident))
                target = trees.setdefault(key, {})
                if isinstance(group.get("renderer"), str):
                    target["renderer"] = group["renderer"]
                _merge(target, body)
                files.setdefault(key, []).append(path)
                if "mtu" in body:
                    mtu_file[key] = path
    return tuple(_definition(k, t, renderer, tuple(files[k]), mtu_file.get(k, "")) for k, t in trees.items())


def _definition(key: tuple[str, str], tree: Mapping[str, object], renderer: str, files: tuple[str, ...], mtu_file: str) -> Definition:
    kind, ident = key
    match = tree.get("match")
    keys = match if isinstance(match, dict) else {}
    mtu, own, name = tree.get("mtu"), tree.get("renderer"), tree.get("set-name")
    mac = keys.get("macaddress")
    return Definition(
        ident, kind, own if isinstance(own, str) else renderer,
        _strings(keys.get("name")), mac.lower() if isinstance(mac, str) else "", _strings(keys.get("driver")), bool(keys),
        name if isinstance(name, str) else "", int(mtu) if isinstance(mtu, str) and re.fullmatch(r"\d{1,6}", mtu) else None,
        _yes(tree.get("dhcp4")), files, mtu_file,
    )


def dropin_path(n: Netdev) -> str:
    """fabrictool's own file for one interface: one file each, so that two interfaces never wait for one another."""
    return f"{DROPIN_PREFIX}{n.name}.yaml"


def dropin(d: Definition, n: Netdev, mtu: int) -> str:
    """The text that adds the MTU to the existing id. A match by MAC (with set-name) is added where the name alone would decide:
    udev applies an MTU before it renames the interface. An exact match that NetworkManager gets stays as it is."""
    body: dict[str, object] = {}
    by_nm = d.renderer == "NetworkManager"
    if not d.match_mac and not (by_nm and d.has_match):
        body["match"] = {"macaddress": n.permanent_mac or n.mac}
        body["set-name"] = n.name
    body["mtu"] = mtu
    tree = {"network": {"version": 2, "ethernets": {d.ident: body}}}
    head = f"# Written by fabrictool: the MTU of {n.name}. It adds to the definition of the same id in the other files.\n"
    return head + yaml.safe_dump(tree, sort_keys=False, default_flow_style=False)


def proposal(plan: Netplan, d: Definition, n: Netdev, mtu: int, netdevs: Mapping[str, Netdev]) -> Observed[str]:
    """The drop-in's text, if it would do the job and nothing else: with it, exactly this definition must set this interface to `mtu`,
    and every other interface must keep the definition it has."""
    if not _SAFE_NAME.fullmatch(n.name) or not (n.permanent_mac or n.mac):
        return Unreadable(Reason.BLOCKED, f"the interface's name {n.name!r} or MAC cannot stand in a netplan file")
    text = dropin(d, n, mtu)
    after = merge({**{p: f.text for p, f in plan.texts.items()}, dropin_path(n): text})
    if isinstance(after, Unreadable):
        return after
    mine = [x for x in after if x.matches(n)]
    if [x.ident for x in mine] != [d.ident] or mine[0].mtu != mtu:
        winner = mine[0].mtu_file if mine else ""
        return Unreadable(Reason.BLOCKED, f"{winner or 'another netplan file'} is read later and would win: set the MTU there")
    for other in netdevs.values():
        if other.name != n.name and _idents(plan.definitions, other) != _idents(after, other):
            return Unreadable(Reason.BLOCKED, f"netplan id {d.ident} configures {other.name} as well: give {n.name} an id of its own")
    return Value(text)


def _idents(definitions: tuple[Definition, ...], n: Netdev) -> list[tuple[str, int | None]]:
    return [(d.ident, d.mtu) for d in definitions if d.matches(n)]
