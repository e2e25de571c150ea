"""Readers of what people paste of interfaces: `ip addr`, `ip link` and `ip -br` in words, and plain `ethtool IF`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from ipaddress import ip_interface

from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports.model import Address, Netdev
from fabrictool.values import Rate

LONGEST = 2048
_HEAD = re.compile(r"\d{1,7}: ([\w.-]{1,40})(?:@([\w.-]{1,40}))?: <([A-Z0-9_,-]{0,300})> mtu (\d{1,6})\b(.{0,600})")
_ONE_LINE = re.compile(r"\d{1,7}: ([\w.-]{1,40})\s+inet6? (\S{3,60})\b")
_ADDRESS = re.compile(r"\s+inet6? (\S{3,60}) ")
_MAC = re.compile(r"\s+link/ether ([0-9a-f:]{17})\b(?:.{0,200}permaddr ([0-9a-f:]{17}))?")
_BRIEF = re.compile(r"([\w.-]{1,40})(?:@([\w.-]{1,40}))?\s+(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT)\b(.{0,2000})")


@dataclass(frozen=True, slots=True)
class Shown:
    """One interface and its lines, from 0. `no_carrier`: administratively up, and no link."""

    netdev: Netdev
    lines: tuple[int, ...]
    no_carrier: bool = False


def _addresses(*words: str) -> tuple[Address, ...]:
    out: list[Address] = []
    for word in words:
        try:
            out.append(ip_interface(word))
        except ValueError:
            continue
    return tuple(out)


def ip_text(lines: list[str]) -> tuple[Shown, ...]:
    """Every interface in the order of the text. What a form does not tell (the MTU in `ip -br`) is unreadable."""
    out: dict[str, Shown] = {}
    name = ""
    for at, line in enumerate(lines):
        text = line[:LONGEST]
        if m := _HEAD.match(text):
            name = m[1]
            flags = m[3].split(",")
            state = re.search(r" state (\w+)", m[5])
            master = re.search(r" master ([\w.-]+)", m[5])
            found = Netdev(name, mtu=Value(int(m[4])), up="UP" in flags, operstate=state[1] if state else "",
                           parent=m[2] or "", master=master[1] if master else "")
            out[name] = Shown(found, (at,), "NO-CARRIER" in flags)
        elif m := _ONE_LINE.match(text):
            name = m[1]
            before = out.get(name) or Shown(Netdev(name), ())
            out[name] = _with(before, at, _addresses(m[2]))
        elif m := _BRIEF.match(text):
            name = m[1]
            words = m[4].split()
            old = out.get(name) or Shown(Netdev(name, parent=m[2] or ""), ())
            mac = next((w for w in words if re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", w)), old.netdev.mac)
            now = replace(old.netdev, operstate=m[3], up=old.netdev.up or m[3] == "UP" or "UP" in re.split(r"[<,>]", m[4]), mac=mac)
            out[name] = _with(replace(old, netdev=now, no_carrier="NO-CARRIER" in m[4]), at, _addresses(*words))
        elif name and (m := _ADDRESS.match(f"{text} ")):
            out[name] = _with(out[name], at, _addresses(m[1]))
        elif name and (m := _MAC.match(text)):
            out[name] = replace(out[name], netdev=replace(out[name].netdev, mac=m[1], permanent_mac=m[2] or ""))
    return tuple(out.values())


def _with(shown: Shown, at: int, addresses: tuple[Address, ...]) -> Shown:
    return replace(shown, netdev=replace(shown.netdev, addresses=(*shown.netdev.addresses, *addresses)), lines=(*shown.lines, at))


@dataclass(frozen=True, slots=True)
class Settings:
    """`ethtool IF`: the link's speed, and whether there is one."""

    name: str
    speed: Observed[Rate]
    link: Observed[bool]


def ethtool(lines: list[str]) -> tuple[Settings, ...]:
    """One for each `Settings for IF:`."""
    out: list[Settings] = []
    for line in lines:
        text = line[:LONGEST].strip()
        if m := re.fullmatch(r"Settings for (\S{1,40}):", text):
            none = Unreadable(Reason.EMPTY, f"ethtool {m[1]}: not told")
            out.append(Settings(m[1], none, none))
        elif out and (m := re.fullmatch(r"Speed: (\d{1,7}Mb/s)", text)):
            out[-1] = replace(out[-1], speed=Value(Rate.parse(m[1])))
        elif out and (m := re.fullmatch(r"Link detected: (yes|no)(?: \(.{0,80}\))?", text)):
            out[-1] = replace(out[-1], link=Value(m[1] == "yes"))
    return tuple(out)
