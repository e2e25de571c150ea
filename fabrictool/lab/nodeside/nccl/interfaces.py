"""The interface for NCCL's own connections, and for its socket transport: chosen by name, in the kernel's order."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x1, 0x8, 0x40
SIOCGIFFLAGS, SIOCGIFADDR = 0x8913, 0x8915
MOST = 16  # interfaces of the socket transport


@dataclass(frozen=True)
class Interface:
    """One address of one interface. `scope`: its index, for link-local addresses."""

    name: str
    address: str
    scope: int = 0

    @property
    def shown(self) -> str:
        """As the log has it."""
        return f"{self.name}:{self.address}{f'%{self.name}' if self.scope else ''}<0>"

    @property
    def family(self) -> int:
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def at(self, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
        return (self.address, port, 0, self.scope) if self.family == socket.AF_INET6 else (self.address, port)


def chosen(name: str, asked: str) -> bool:
    """NCCL_SOCKET_IFNAME: `^` excludes, then `=` asks for whole names; without it, names begin like that."""
    exclude, exact = asked.startswith("^"), asked.lstrip("^").startswith("=")
    words = [w for w in asked.lstrip("^").removeprefix("=").split(",") if w]
    hit = any(name == w if exact else name.startswith(w) for w in words)
    return hit != exclude


def pick(found: Sequence[Interface], asked: str) -> list[Interface]:
    """What NCCL would use, best first. Without a wish: `ib...`, then anything but docker, lo and virbr, then docker, then lo."""
    if len(asked) > 1:
        return [i for i in found if chosen(i.name, asked)][:MOST]
    for words in ("ib", "^docker,lo,virbr", "docker", "lo", "virbr"):
        hits = [i for i in found if chosen(i.name, words)]
        if hits:
            return hits[:MOST]
    return []


def alive(family: str = "") -> list[Interface]:
    """Interfaces that are up and running and have an address. `family`: AF_INET or AF_INET6 for only that one; IPv4 comes first."""
    found: list[Interface] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        names = [(i, n) for i, n in sorted(socket.if_nameindex()) if _running(line, n)]
        if family != "AF_INET6":
            for _, name in names:
                with contextlib.suppress(OSError):
                    answer = fcntl.ioctl(line.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                    found.append(Interface(name, socket.inet_ntoa(answer[20:24])))
    if family != "AF_INET":
        have = {i.name for i in found}
        found += [i for i in _ipv6({n: i for i, n in names}) if i.name not in have]
    return found


def _running(line: socket.socket, name: str) -> bool:
    try:
        flags = struct.unpack("16xH", fcntl.ioctl(line.fileno(), SIOCGIFFLAGS, struct.pack("256s", name.encode()[:15]))[:18])[0]
    except OSError:
        return False
    return bool(flags & IFF_UP and flags & IFF_RUNNING)


def _ipv6(indexes: dict[str, int]) -> list[Interface]:
    found = {}
    with contextlib.suppress(OSError), open("/proc/net/if_inet6") as table:
        for words in (line.split() for line in table):
            if words[5] in indexes and words[5] not in found:
                address = ipaddress.IPv6Address(bytes.fromhex(words[0]))
                found[words[5]] = Interface(words[5], str(address), indexes[words[5]] if address.is_link_local else 0)
    return list(found.values())
