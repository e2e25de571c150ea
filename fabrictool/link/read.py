"""From a snapshot to `Link`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fabrictool import ports
from fabrictool.link.model import Link
from fabrictool.link.netplan import Netplan, merge
from fabrictool.link.networkd import parse_networkctl, parse_units
from fabrictool.link.networkmanager import parse_devices, parse_profiles
from fabrictool.link.others import Stanza, parse_ifcfg, parse_interfaces
from fabrictool.link.sections import FILE_END, file_texts
from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Snapshot

NM_NOT_RUNNING = 8  # nmcli(1), exit status


def _netplan(snap: Snapshot) -> Netplan | Unreadable:
    tool = snap.text("link.netplan_tool")
    if isinstance(tool, Unreadable):
        return tool
    if tool.value.strip() == "no":  # files that nothing reads
        return Netplan({}, (), {})
    if tool.value.strip() != "yes":
        return Unreadable(Reason.GARBLED, f"link.netplan_tool: {tool.value.strip()[:60]!r}")
    texts, own = file_texts(snap, "link.netplan"), file_texts(snap, "link.netplan_own")
    if isinstance(texts, Unreadable):
        return texts
    if isinstance(own, Unreadable):
        return own
    merged = merge({p: f.text for p, f in texts.items()})
    return merged if isinstance(merged, Unreadable) else Netplan(texts, merged, own)


def _tool(snap: Snapshot, name: str, *not_running: int) -> str | Unreadable:
    """A tool's output; "" where the tool is not installed or says by its exit status that its service does not run."""
    raw = snap.raw(name)
    if isinstance(raw, Unreadable):
        return "" if raw.reason is Reason.TOOL_MISSING else raw
    if raw.rc in not_running:
        return ""
    text = snap.text(name)
    if isinstance(text, Unreadable):
        return text
    return text.value


def _others(snap: Snapshot) -> tuple[Stanza, ...] | Unreadable:
    interfaces, ifcfg = file_texts(snap, "link.ifupdown"), file_texts(snap, "link.ifcfg")
    if isinstance(interfaces, Unreadable):
        return interfaces
    if isinstance(ifcfg, Unreadable):
        return ifcfg
    return (*parse_interfaces(interfaces), *parse_ifcfg(ifcfg))


def _arp(snap: Snapshot) -> Mapping[str, int] | Unreadable:
    got = snap.sysfs("link.arp")
    if isinstance(got, Unreadable):
        return got
    if FILE_END not in got:
        return Unreadable(Reason.CUT, "link.arp: the end is missing")
    return {"/".join(p.rsplit("/", 2)[1:]): int(v) for p, v in got.items() if re.fullmatch(r"\s*\d{1,3}\s*", v)}


def read(snap: Snapshot) -> Link:
    devices, setup = _tool(snap, "link.nm_devices", NM_NOT_RUNNING), _networkctl(snap)
    keyfiles, units = file_texts(snap, "link.nm_profiles"), file_texts(snap, "link.networkd")
    return Link(
        ports.read(snap), _netplan(snap),
        devices if isinstance(devices, Unreadable) else parse_devices(devices) if devices else {},
        keyfiles if isinstance(keyfiles, Unreadable) else parse_profiles(keyfiles),
        setup if isinstance(setup, Unreadable) else parse_networkctl(setup) if setup else {},
        units if isinstance(units, Unreadable) else parse_units(units),
        _others(snap), _arp(snap),
    )


def _networkctl(snap: Snapshot) -> str | Unreadable:
    """networkctl where systemd runs at all; without a system bus there is no networkd either."""
    raw = snap.raw("link.networkctl")
    if not isinstance(raw, Unreadable) and raw.rc != 0 and re.search("connect (to )?(system )?bus", raw.err):
        return ""
    return _tool(snap, "link.networkctl")
