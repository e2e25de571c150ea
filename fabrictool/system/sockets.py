"""TCP sockets as `ss -Htanp` lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from fabrictool.model import Reason, Unreadable

_ROW = re.compile(r"([A-Z][A-Z0-9-]{1,12})\s+\d{1,10}\s+\d{1,10}\s+(\S{1,100})\s+(\S{1,100})(?:\s+users:\((.{1,4000})\))?\s*$")
_PID = re.compile(r"pid=(\d{1,10})")


@dataclass(frozen=True, slots=True)
class Socket:
    """`state` as ss spells it (LISTEN, SYN-SENT, ESTAB ...). A port 0 = any. `pids`: whose it is, by the node's own numbers."""

    state: str
    local: str
    local_port: int
    peer: str
    peer_port: int
    pids: frozenset[int]

    @property
    def loopback(self) -> bool:
        """Whether it can be reached from this host alone."""
        return is_loopback(self.local)


def is_loopback(address: str) -> bool:
    ip = _ip(address)
    return address == "localhost" if ip is None else ip.is_loopback


def is_global(address: str) -> bool:
    """An address of the Internet (the registries of IANA)."""
    ip = _ip(address)
    return ip is not None and ip.is_global


def _ip(address: str) -> IPv4Address | IPv6Address | None:
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def parse(text: str) -> tuple[Socket, ...] | Unreadable:
    """A line that is not understood is left out unless no line is."""
    found: list[Socket] = []
    odd = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip() or line.startswith(("State ", "Netid ")):
            continue
        m = _ROW.match(line)
        local, peer = (_end(m[2]), _end(m[3])) if m else (None, None)
        if m is None or local is None or peer is None:
            odd = odd or line
        else:
            found.append(Socket(m[1], *local, *peer, frozenset(int(p) for p in _PID.findall(m[4] or ""))))
    if odd and not found:
        return Unreadable(Reason.GARBLED, f"ss: {odd[:80]!r}")
    return tuple(found)


def _end(text: str) -> tuple[str, int] | None:
    """`10.0.0.1:22`, `[::1]:22`, `127.0.0.53%lo:53`, `*:22`, `0.0.0.0:*`."""
    address, colon, port = text.rpartition(":")
    if not colon or not (port == "*" or (port.isascii() and port.isdigit() and len(port) <= 5)):
        return None
    return address.strip("[]"), 0 if port == "*" else int(port)
