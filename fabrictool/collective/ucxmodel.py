"""What UCX logs say about how endpoints are wired."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fabrictool.collective.linemodel import Proof


class Scope(StrEnum):
    """Between whom an endpoint is. `UNSAID`: UCX before 1.15 does not tell."""

    INTER_NODE = "inter-node"
    INTRA_NODE = "intra-node"
    SELF = "self"
    UNSAID = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """One transport with its device: `rc_mlx5/mlx5_0:1`, `tcp/eth0`."""

    transport: str
    device: str

    def __str__(self) -> str:
        return f"{self.transport}/{self.device}"


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one operation: rma, rma_am (RMA emulated by messages), am, tag, stream, amo, ka."""

    operation: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Config:
    """One endpoint configuration: `ctx inter-node cfg#2 rma(rc_mlx5/a:1 rc_mlx5/b:1) am(...)`."""

    scope: Scope
    number: int
    operations: tuple[Lanes, ...]
    proof: Proof


@dataclass(frozen=True, slots=True)
class ProtocolRow:
    """A row of UCX_PROTO_INFO: from what size on (bytes) which protocol runs over which lanes, with their shares in percent (0 = the
    row names one lane and no share)."""

    scope: Scope
    low: int
    high: int | None  # None: no upper end
    what: str
    lanes: tuple[tuple[Lane, int], ...]
    proof: Proof


class Carried(StrEnum):
    RDMA = "RDMA"
    TCP = "TCP"
    MIXED = "RDMA and TCP"
    NO_DEVICE = "no device"
    LOCAL = "inside one node"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class UcxLog:
    """`version`: of the library that logs, with `library`, its file, where told. `asked`: UCX_* as set."""

    configs: tuple[Config, ...] = ()
    rows: tuple[ProtocolRow, ...] = ()
    no_device: tuple[Proof, ...] = ()
    unreachable: tuple[Proof, ...] = ()
    incompatible: tuple[Proof, ...] = ()
    broken_tcp: tuple[Proof, ...] = ()
    versions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.configs or self.rows or self.no_device or self.unreachable or self.incompatible or self.broken_tcp)
