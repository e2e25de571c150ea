"""Field values whose spellings differ from tool to tool: each spelling is known here, once."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Priorities:
    """A set of 802.1p priorities, each 0..7 (PFC enable and the like)."""

    members: frozenset[int]

    def __post_init__(self) -> None:
        if not all(0 <= p <= 7 for p in self.members):
            raise ValueError(f"priorities are 0..7, not {sorted(self.members)}")

    @classmethod
    def of(cls, members: Iterable[int]) -> Priorities:
        return cls(frozenset(members))

    @classmethod
    def from_flags(cls, flags: Iterable[object]) -> Priorities:
        """From exactly eight flags in priority order (mlnx_qos `enabled` row, dcb `prio_pfc`)."""
        seq = [bool(int(f)) if isinstance(f, (str, int)) else bool(f) for f in flags]
        if len(seq) != 8:
            raise ValueError(f"eight flags expected, got {len(seq)}")
        return cls(frozenset(i for i, on in enumerate(seq) if on))

    @property
    def mask(self) -> str:
        """Eight 0/1 slots, comma separated: the argument of `mlnx_qos -f`."""
        return ",".join("1" if p in self.members else "0" for p in range(8))

    def __str__(self) -> str:
        return ",".join(str(p) for p in sorted(self.members)) or "none"


@dataclass(frozen=True, slots=True, order=True)
class Dscp:
    """A DiffServ code point, 0..63 (RFC 2474)."""

    value: int

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 63:
            raise ValueError(f"a DSCP is 0..63, not {self.value}")

    @classmethod
    def from_tc(cls, traffic_class: int) -> Dscp:
        """From the TOS / traffic-class byte: its low two bits are ECN."""
        if not 0 <= traffic_class <= 255:
            raise ValueError(f"a traffic class is one byte, 0..255, not {traffic_class}")
        return cls(traffic_class >> 2)

    @property
    def tc(self) -> int:
        """The traffic-class byte with ECN bits zero."""
        return self.value << 2

    @property
    def default_priority(self) -> int:
        """The priority that the DSCP has before anyone maps it: its top three bits."""
        return self.value >> 3

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Gid:
    """A 128-bit RDMA GID as sysfs prints it: eight groups of four hex digits."""

    address: ipaddress.IPv6Address

    @classmethod
    def parse(cls, text: str) -> Gid:
        if not re.fullmatch(r"([0-9a-fA-F]{4}:){7}[0-9a-fA-F]{4}", text):
            raise ValueError(f"not a GID: {text[:60]!r}")
        return cls(ipaddress.IPv6Address(text))

    @property
    def empty(self) -> bool:
        return int(self.address) == 0

    @property
    def link_local(self) -> bool:
        return self.address.is_link_local

    @property
    def ipv4(self) -> ipaddress.IPv4Address | None:
        """The IPv4 address of an IPv4-mapped GID (the only kind NCCL's automatic choice takes by default)."""
        return self.address.ipv4_mapped

    def __str__(self) -> str:
        return self.address.exploded


@dataclass(frozen=True, slots=True, order=True)
class Rate:
    """A line rate in bits per second."""

    bits_per_s: int

    @classmethod
    def gbit(cls, gbit_per_s: float) -> Rate:
        return cls(round(gbit_per_s * 1_000_000_000))

    @classmethod
    def parse(cls, text: str) -> Rate:
        """sysfs `200 Gb/sec (4X HDR)`, ethtool `200000Mb/s`, `/sys/class/net/*/speed` `200000` (Mb/s)."""
        m = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*(Gb/sec|Mb/s|)(?:\s*\(.*\))?\s*", text)
        if not m:
            raise ValueError(f"not a rate: {text[:60]!r}")
        scale = 1_000_000_000 if m[2] == "Gb/sec" else 1_000_000
        return cls(round(float(m[1]) * scale))

    @property
    def gbit_per_s(self) -> float:
        return self.bits_per_s / 1e9

    @property
    def gbytes_per_s(self) -> float:
        """Decimal gigabytes per second."""
        return self.bits_per_s / 8e9

    def __str__(self) -> str:
        return f"{self.gbit_per_s:g} Gb/s"


_SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
               "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


MOST_BYTES = 2**62


def parse_size(text: str) -> int:
    """`256MiB`, `2GB` -> bytes. The unit is required: a bare number has meant both bits and bytes before."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMGT]?i?B)", text[:400])
    if not m or m[2] not in _SIZE_UNITS:
        raise ValueError(f"not a size: {text[:60]!r} (write 256MiB or 2GB; units: {', '.join(_SIZE_UNITS)})")
    value = float(m[1]) * _SIZE_UNITS[m[2]]
    if value >= MOST_BYTES:
        raise ValueError(f"not a size: {text[:60]!r} is beyond what any memory or counter of 64 bits holds")
    return round(value)
