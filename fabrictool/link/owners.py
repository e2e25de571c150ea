"""Which configuration would set an interface up after a reboot. None, one, or several that fight over it."""

from __future__ import annotations

from fabrictool.link.model import Claim, Link, Owner
from fabrictool.link.netplan import Definition, Netplan
from fabrictool.link.networkmanager import candidates
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports import Netdev


def _count(netdevs: list[Netdev], d: Definition) -> int:
    return sum(d.matches(n) for n in netdevs)


def _netplan(n: Netdev, got: Netplan, everyone: list[Netdev]) -> list[Claim]:
    """A definition per claim. Matched by name alone, networkd sets the MTU unreliably: the .link file is tried before the rename."""
    out = []
    for d in got.definitions:
        if not d.matches(n):
            continue
        by_nm = d.renderer == "NetworkManager"
        reliable = by_nm or d.kind != "ethernets" or bool(d.match_mac)
        out.append(Claim(
            Owner.NETPLAN_NM if by_nm else Owner.NETPLAN_NETWORKD, f"{', '.join(d.files)} (id {d.ident})", d.mtu, d.dhcp, d.ident,
            reliable, _count(everyone, d) <= 1))
    return out


def _networkmanager(n: Netdev, got: Link) -> list[Claim] | Unreadable:
    if isinstance(got.nm_states, Unreadable):
        return got.nm_states
    state, connection = got.nm_states.get(n.name, ("", ""))
    if not state or state.startswith("unmanaged"):
        return []
    if isinstance(got.profiles, Unreadable):
        return got.profiles
    return [Claim(Owner.NETWORKMANAGER, f"profile {p.name or p.uuid} ({p.path})", p.mtu, p.method == "auto", p.uuid, True, p.bound,
                  state.startswith("connected") and connection == p.name)
            for p in candidates(got.profiles, n, state) if not p.from_netplan]


def _networkd(n: Netdev, got: Link) -> list[Claim] | Unreadable:
    if isinstance(got.networkd_states, Unreadable):
        return got.networkd_states
    if got.networkd_states.get(n.name, "unmanaged") in ("unmanaged", "n/a", "-"):
        return []
    if isinstance(got.networkd, Unreadable):
        return got.networkd
    unit = got.networkd.network_for(n)
    if isinstance(unit, Unreadable):
        return unit
    if isinstance(unit, Absent):
        return Unreadable(Reason.GARBLED, f"systemd-networkd manages {n.name}, but none of its files matches it")
    if unit.value.from_netplan or unit.value.unmanaged:
        return []
    return [Claim(Owner.NETWORKD, unit.value.path, unit.value.mtu, unit.value.dhcp)]


def claims(n: Netdev, got: Link) -> tuple[Claim, ...] | Unreadable:
    """All owners of the interface; Unreadable when one of the places could not be read, as it may hold one."""
    if isinstance(got.netplan, Unreadable):
        return got.netplan
    if isinstance(got.ports.netdevs, Unreadable):
        return got.ports.netdevs
    out = _netplan(n, got.netplan, list(got.ports.netdevs.values()))
    for more in (_networkmanager(n, got), _networkd(n, got)):
        if isinstance(more, Unreadable):
            return more
        out += more
    if isinstance(got.others, Unreadable):
        return got.others
    words = {"ifupdown": Owner.IFUPDOWN, "ifcfg": Owner.IFCFG, "wicked": Owner.WICKED}
    out += [Claim(words[s.tool], s.path, s.mtu, s.dhcp) for s in got.others if s.at_boot and s.applies(n)]
    return tuple(out)


def link_file_mtu(n: Netdev, got: Link) -> Observed[int]:
    """The MTU that udev's .link file sets when the interface appears; it stands where the owner leaves the MTU alone."""
    if isinstance(got.networkd, Unreadable):
        return got.networkd
    unit = got.networkd.link_for(n)
    if not isinstance(unit, Value):
        return unit
    return Value(unit.value.mtu) if unit.value.mtu is not None else Absent(f"MTUBytes in {unit.value.path}")
