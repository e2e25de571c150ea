"""What NCCL logs say, typed. Their lines are in `fabrictool.collective.linemodel`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fabrictool.collective.linemodel import Level, LogLine, ProcessKey, Proof

__all__ = [
    "CollNetUse", "CommEvent", "CommLine", "Direction", "Edge", "Endpoint", "EnvValue", "Gdr", "GdrLine", "Hca", "HcaList", "Kind",
    "Level", "LogLine", "NcclLog", "Process", "ProcessKey", "Proof", "QpInfo", "Via",
]


class Kind(StrEnum):
    """The family of a channel's transport. `UNKNOWN`: a spelling that is not understood."""

    NET = "NET"
    P2P = "P2P"
    SHM = "SHM"
    COLLNET = "COLLNET"
    UNKNOWN = "?"


class Gdr(StrEnum):
    NONE = ""
    GDRDMA = "GDRDMA"
    PCI = "GDRDMA(PCI)"


@dataclass(frozen=True, slots=True)
class Via:
    """The tail of a channel line. `name`: NET plugin or P2P/SHM flavour; `index`: NCCL's own device index; `pxn`: the rank that sends
    on its behalf."""

    kind: Kind
    name: str
    index: int | None = None
    pxn: int | None = None
    gdr: Gdr = Gdr.NONE
    shared: bool = False

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Direction(StrEnum):
    """`BOTH`: transports inside a node log one line for both ends, at the sender."""

    SEND = "send"
    RECEIVE = "receive"
    BOTH = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """`Channel C/i : SRC[dev] -> DST[dev] [send] via ...`. Ranks are those of one communicator, which the line does not name."""

    line: LogLine
    channel: int
    src: int
    dst: int
    direction: Direction
    via: Via

    @property
    def own(self) -> int:
        """The rank that logged it."""
        return self.dst if self.direction is Direction.RECEIVE else self.src

    @property
    def peer(self) -> int:
        return self.src if self.direction is Direction.RECEIVE else self.dst


@dataclass(frozen=True, slots=True)
class CollNetUse:
    """In-network reduction: `CollNet 00/0 : RANK [send] via COLLNET/SHARP/0`. No peer rank."""

    line: LogLine
    rank: int
    via: Via


@dataclass(frozen=True, slots=True)
class Hca:
    """One entry of NCCL's device list. `index` is what channel lines name. `devices`: RDMA devices behind it, more than one when merged;
    a Data Direct name (`_dma`) is given as the device's own."""

    index: int
    devices: tuple[str, ...]
    port: int | None = None
    link_layer: str = ""
    rail: int | None = None
    plane: int | None = None
    data_direct: bool = False
    sharp: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An interface with its address, as NCCL chose it."""

    interface: str
    address: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class HcaList:
    """`NET/IB : Using ...`. `whole`: every part of the list was understood. `oob`: the socket interface it names."""

    line: LogLine
    hcas: tuple[Hca, ...]
    whole: bool
    relaxed_ordering: bool = False
    oob: Endpoint | None = None


@dataclass(frozen=True, slots=True)
class EnvValue:
    """`NAME set by environment to VALUE`: what this process saw. `parameter`: in the form that only the subsystem ENV prints."""

    line: LogLine
    name: str
    value: str
    parameter: bool = False


@dataclass(frozen=True, slots=True)
class GdrLine:
    """`GPU Direct RDMA Enabled for HCA 0 'mlx5_0'`."""

    line: LogLine
    enabled: bool
    target: str


@dataclass(frozen=True, slots=True)
class QpInfo:
    """A queue pair as NCCL made it. `mtu_code`: enum ibv_mtu (5 = 4096 bytes); `gid_index`; `gid_ipv4`: "" unless IPv4-mapped."""

    line: LogLine
    port: int | None
    mtu_code: int | None
    gid_index: int
    gid_ipv4: str = ""
    gid_link_local: bool = False


class CommEvent(StrEnum):
    START = "Init START"
    COMPLETE = "Init COMPLETE"
    TOPOLOGY = "topology"
    DESTROY = "Destroy COMPLETE"
    ABORT = "Abort COMPLETE"
    OTHER = ""


@dataclass(frozen=True, slots=True)
class CommLine:
    """A line about one rank of one communicator. `pointer` tells it apart within the process, `comm_id` across ranks ("" before 2.18)."""

    line: LogLine
    event: CommEvent
    pointer: str
    rank: int
    size: int
    comm_id: str = ""
    cuda: int | None = None
    bus_id: str = ""
    nodes: int | None = None
    local_ranks: int | None = None
    mnnvl: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """One process's log, in order. `networks`: names after `Using network` and `Assigned NET plugin`; `virtual`: devices that NCCL
    merged; `providers`: libfabric providers; `connected`: rings or trees were connected; `nvlink`: its topology shows NVLink."""

    key: ProcessKey
    lines: int = 0
    versions: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    hcas: tuple[HcaList, ...] = ()
    virtual: tuple[Hca, ...] = ()
    sockets: tuple[Endpoint, ...] = ()
    bootstrap: tuple[Endpoint, ...] = ()
    env: tuple[EnvValue, ...] = ()
    edges: tuple[Edge, ...] = ()
    collnet: tuple[CollNetUse, ...] = ()
    comms: tuple[CommLine, ...] = ()
    gdr: tuple[GdrLine, ...] = ()
    qps: tuple[QpInfo, ...] = ()
    providers: tuple[str, ...] = ()
    rings: tuple[tuple[int, ...], ...] = ()
    connected: tuple[LogLine, ...] = ()
    nvls: bool = False
    nvlink: bool = False
    warnings: tuple[LogLine, ...] = ()
    last: LogLine | None = None


@dataclass(frozen=True, slots=True)
class NcclLog:
    """Everything of one or many logs. `lines`: all lines in order, other programs' too; `damaged`: how many could not be read;
    `version`: printed without a process."""

    processes: tuple[Process, ...] = ()
    lines: tuple[LogLine, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def damaged(self) -> int:
        return sum(1 for ln in self.lines if ln.level is Level.DAMAGED)

    @property
    def empty(self) -> bool:
        """No line of NCCL at all."""
        return not self.processes and not self.versions
