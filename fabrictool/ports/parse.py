"""Parsers of iproute2's and rdma's JSON. Anything that does not look as documented is GARBLED, never half read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_address, ip_interface

from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports.model import Address, Netdev, QueuePair

_STACKED = frozenset({"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"})
_HIDDEN_ADDRESS = ("tentative", "dadfailed", "temporary")


def _rows(text: str, what: str) -> list[dict[str, object]] | Unreadable:
    """A JSON list of objects. iproute2 prints `{}` for what a filter hides: those are dropped."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Unreadable(Reason.GARBLED, f"{what}: not JSON: {text.strip()[:80]!r}")
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        return Unreadable(Reason.GARBLED, f"{what}: a list of objects was expected")
    return [row for row in data if row]


def _text(row: dict[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _number(row: dict[str, object], key: str) -> int | None:
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _names(row: dict[str, object], key: str) -> tuple[str, ...]:
    value = row.get(key)
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _sub(row: dict[str, object], key: str) -> dict[str, object]:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _addresses(row: dict[str, object]) -> Iterator[Address]:
    """Usable addresses in the kernel's order; not those that duplicate detection holds back, nor short-lived ones."""
    info = row.get("addr_info")
    for item in info if isinstance(info, list) else ():
        if not isinstance(item, dict) or any(item.get(k) for k in _HIDDEN_ADDRESS):
            continue
        local, length = _text(item, "local"), _number(item, "prefixlen")
        if not local or length is None:
            continue
        try:
            yield ip_interface(f"{local}/{length}")
        except ValueError:
            continue


def _observed(row: dict[str, object], key: str, name: str) -> Observed[int]:
    value = _number(row, key)
    return Value(value) if value is not None else Unreadable(Reason.GARBLED, f"{name}: this ip does not tell {key}")


def parse_addr(text: str) -> tuple[Netdev, ...] | Unreadable:
    """`ip -d -j addr show`. min_mtu and max_mtu are unreadable with an iproute2 that does not print them."""
    rows = _rows(text, "ip -d -j addr show")
    if isinstance(rows, Unreadable):
        return rows
    out = []
    for row in rows:
        name = _text(row, "ifname")
        if not name:
            return Unreadable(Reason.GARBLED, "ip -d -j addr show: an interface without a name")
        info = _sub(row, "linkinfo")
        kind = _text(info, "info_kind")
        permanent = _text(row, "permaddr") or _text(_sub(info, "info_slave_data"), "perm_hwaddr")
        out.append(Netdev(
            name, mac=_text(row, "address").lower(), permanent_mac=permanent.lower(),
            mtu=_observed(row, "mtu", name), min_mtu=_observed(row, "min_mtu", name), max_mtu=_observed(row, "max_mtu", name),
            up="UP" in _names(row, "flags"), operstate=_text(row, "operstate"), kind=kind, master=_text(row, "master"),
            parent=_text(row, "link") if kind in _STACKED else "",
            addresses=tuple(_addresses(row)), altnames=_names(row, "altnames"),
        ))
    return tuple(out)


def parse_route_devices(text: str) -> tuple[str, ...] | Unreadable:
    """The interfaces of `ip -j route ...`: `dev` of each route, and of each next hop of a multipath route."""
    rows = _rows(text, "ip -j route")
    if isinstance(rows, Unreadable):
        return rows
    seen: dict[str, None] = {}
    for row in rows:
        hops = row.get("nexthops")
        for hop in (row, *(hops if isinstance(hops, list) else ())):
            if isinstance(hop, dict) and _text(hop, "dev"):
                seen[_text(hop, "dev")] = None
    return tuple(seen)


def parse_queue_pairs(text: str) -> tuple[QueuePair, ...] | Unreadable:
    """`rdma -j resource show qp`. A row that is not understood makes the whole answer unreadable: it may be one in use."""
    rows = _rows(text, "rdma -j resource show qp")
    if isinstance(rows, Unreadable):
        return rows
    out = []
    for row in rows:
        name, number, kind = _text(row, "ifname"), _number(row, "lqpn"), _text(row, "type")
        if not name or number is None or not kind:
            return Unreadable(Reason.GARBLED, f"rdma -j resource show qp: not understood: {str(row)[:80]}")
        out.append(QueuePair(name, number, kind, _text(row, "state"), _number(row, "pid") or 0, _text(row, "comm")))
    return tuple(out)


def parse_ssh(connection: str) -> Observed[tuple[str, str]]:
    """SSH_CONNECTION (`client port server port`) -> the server's address and its zone (the interface of a link-local one)."""
    words = connection.split()
    if len(words) != 4:
        return Unreadable(Reason.GARBLED if words else Reason.EMPTY, f"SSH_CONNECTION: {connection[:80]!r}")
    address, _, zone = words[2].partition("%")
    try:
        parsed = ip_address(address)
    except ValueError:
        return Unreadable(Reason.GARBLED, f"SSH_CONNECTION: no address in {connection[:80]!r}")
    mapped = getattr(parsed, "ipv4_mapped", None)
    return Value((str(mapped or parsed), zone))


def is_global(address: Address) -> bool:
    """Usable from other nodes: neither link-local nor loopback."""
    ip = address.ip
    return not (ip.is_link_local or ip.is_loopback or ip.is_unspecified)


