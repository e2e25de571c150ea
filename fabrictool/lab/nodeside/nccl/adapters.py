"""The RDMA devices that NCCL would use: what sysfs shows, what /dev/infiniband lets open, what NCCL_IB_HCA names."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLASS = Path("/sys/class/infiniband")
DEVICES = Path("/dev/infiniband")
MOST = 32
ACTIVE = "4"
V2 = "RoCE v2"


@dataclass(frozen=True)
class Adapter:
    """One port that is up. `number`: of the device among all of the node; `gids`: (text, type) by index; `interface`: its netdev."""

    name: str
    number: int
    speed_mbit: int
    layer: str  # RoCE or IB
    interface: str
    bus: str
    gids: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.name}:1/{self.layer}"


def wanted(name: str, asked: str, port: int = 1) -> bool:
    """NCCL_IB_HCA: `^` excludes, `=` asks for whole names; each may name a port. Without `=`, names begin like that."""
    exclude = asked.startswith("^")
    rest = asked.removeprefix("^")
    exact = rest.startswith("=")
    hit = False
    for word in rest.removeprefix("=").split(","):
        device, _, at = word.partition(":")
        at = at.partition(":")[0]
        same = name == device if exact else bool(device) and name.startswith(device)
        hit = hit or (same and (not at.isdigit() or int(at) == port))
    return hit != exclude


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _gids(port: Path) -> Iterator[tuple[str, str]]:
    for index in range(256):
        gid = port / "gids" / str(index)
        if not gid.exists():
            return
        yield _text(gid), _text(port / "gid_attrs" / "types" / str(index))


def present() -> list[Adapter]:
    """Ports that are up, in the order of the bus. Those that are down are left out, without a word."""
    try:
        names = sorted(os.listdir(CLASS), key=lambda n: (os.path.basename(os.path.realpath(CLASS / n / "device")), n))
    except OSError:
        return []
    found = []
    for number, name in enumerate(names):
        port = CLASS / name / "ports/1"
        if not _text(port / "state").startswith(ACTIVE):
            continue
        layer = "RoCE" if _text(port / "link_layer") == "Ethernet" else "IB"
        gbit = _text(port / "rate").partition(" ")[0]
        bus = os.path.basename(os.path.realpath(CLASS / name / "device"))
        with contextlib.suppress(OSError):
            interface = next(iter(os.listdir(CLASS / name / "device/net")), "")
            found.append(Adapter(name, number, int(float(gbit) * 1000) if gbit else 0, layer, interface, bus, tuple(_gids(port))))
    return found


def can_open(number: int) -> bool:
    return os.access(DEVICES / f"uverbs{number}", os.R_OK | os.W_OK)


def gid_index(adapter: Adapter, pinned: int) -> int:
    """Pinned, or the first RoCE v2 GID of an IPv4 address; where there is none it stays at 0."""
    if pinned >= 0:
        return pinned
    for index, (gid, kind) in enumerate(adapter.gids):
        if kind == V2 and ipv4(gid):
            return index
    return 0


def ipv4(gid: str) -> str:
    """The IPv4 address that a GID holds; "" for another one."""
    try:
        mapped = ipaddress.IPv6Address(gid).ipv4_mapped
    except ValueError:
        return ""
    return str(mapped) if mapped else ""


def shown_gid(gid: str) -> str:
    """As `ibv` numbers in NCCL's log: both halves of the GID, read as numbers of a little-endian machine."""
    try:
        raw = ipaddress.IPv6Address(gid).packed
    except ValueError:
        raw = bytes(16)
    return f"{int.from_bytes(raw[:8], 'little'):X}/{int.from_bytes(raw[8:], 'little'):X}"
