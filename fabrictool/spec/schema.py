"""The types of the spec: one type from the file to the judge.

The merged tree of one node (site -> group -> node, ranges expanded) validates straight into `NodeSpec`, whose JSON form
also travels as pyinfra host data. Unknown keys are errors. Sizes are bytes after validation, rates say their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from ipaddress import IPv4Network
from typing import Annotated

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from fabrictool.spec.kinds import NAME as NAME
from fabrictool.spec.kinds import STRICT, DscpValue, Mtu, Name, Priority, Size
from fabrictool.spec.system import KernelLogSpec, MemlockSpec, VersionsSpec


class Sudo(StrEnum):
    """How root is reached: `ask` needs -K, `nopasswd` uses sudo -n, `root` logs in as root."""

    ASK = "ask"
    NOPASSWD = "nopasswd"
    ROOT = "root"


@dataclass(frozen=True, slots=True, config=STRICT)
class SshSpec:
    """How the workstation reaches the node. `host` defaults to the node's name; `known_hosts` is a path."""

    user: str | None = None
    host: str | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    key: str | None = None
    jump: str | None = None
    known_hosts: str | None = None
    config: str | None = None  # an ssh_config file; default ~/.ssh/config
    sudo: Sudo = Sudo.ASK


class MtuCounts(StrEnum):
    IP = "ip"
    FRAME = "frame"


@dataclass(frozen=True, slots=True, config=STRICT)
class SwitchSpec:
    """What the admin claims of a switch: a claim, never evidence. `keeps_dscp`: true, false or "unknown"."""

    mtu: Mtu | None = None
    mtu_counts: MtuCounts = MtuCounts.IP
    pfc: tuple[Priority, ...] | str = "none"
    keeps_dscp: bool | str = "unknown"


@dataclass(frozen=True, slots=True, config=STRICT)
class QosSpec:
    """Lossless RoCE on the host side: trust, DSCP map, PFC. `pfc` lists the lossless priorities."""

    trust: Annotated[str, Field(pattern="^(dscp|pcp)$")] = "dscp"
    dscp_to_priority: Mapping[DscpValue, Priority] = field(default_factory=dict)
    pfc: tuple[Priority, ...] = ()
    global_pause: bool = False
    writer: Annotated[str, Field(pattern="^mlnx_qos$")] = "mlnx_qos"
    ecn: bool | None = None  # None: not asked


@dataclass(frozen=True, slots=True, config=STRICT)
class RailSpec:
    """One rail: functions, one per node, that must reach each other."""

    subnet: IPv4Network


@dataclass(frozen=True, slots=True, config=STRICT)
class FabricSpec:
    mtu: Mtu | None = None
    traffic_class: Annotated[int, Field(ge=0, le=255)] | None = None
    qos: QosSpec | None = None
    rails: Mapping[Name, RailSpec] = field(default_factory=dict)
    cross_rail: bool = True


@dataclass(frozen=True, slots=True, config=STRICT)
class FunctionSpec:
    """One RDMA device with its interface. Selectors: at least one of `interface`, `rdma`, `mac`."""

    rail: str
    rdma: str | None = None
    interface: str | None = None
    mac: Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")] | None = None
    members: tuple[str, ...] = ()  # a LAG: the member interfaces


@dataclass(frozen=True, slots=True, config=STRICT)
class PortSpec:
    """One cage and cable with one rate."""

    functions: tuple[FunctionSpec, ...]
    rate_gbit: Annotated[int, Field(gt=0)] | None = None
    switch: str | None = None


@dataclass(frozen=True, slots=True, config=STRICT)
class GpuSpec:
    model: str
    count: Annotated[int, Field(ge=1)] = 1
    unified_memory: bool = False
    gpudirect: Annotated[str, Field(pattern="^(required|preferred|none)$")] = "preferred"


class HcaMatch(StrEnum):
    EXACT = "exact"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, config=STRICT)
class EnvSpec:
    """NCCL/Gloo/UCX environment. `write`: nccl_conf docker_env profile_d systemd:UNIT. `consumers`: docker:GLOB systemd:UNIT."""

    write: tuple[Annotated[str, Field(pattern=r"^(nccl_conf|docker_env|profile_d|systemd:[A-Za-z0-9@_.\\-]+)$")], ...] = ()
    hca_match: HcaMatch = HcaMatch.EXACT
    set: Mapping[Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")], str | int] = field(default_factory=dict)
    consumers: tuple[Annotated[str, Field(pattern=r"^(docker|systemd):[^\s/]+$")], ...] = ()


@dataclass(frozen=True, slots=True, config=STRICT)
class RuntimeSpec:
    """`image` has to be on the nodes: nothing is pulled. `pull`: only `never` is done; the others are refused with a word of their own."""

    image: str
    pull: Annotated[str, Field(pattern="^(never|missing|always)$")] = "never"


@dataclass(frozen=True, slots=True, config=STRICT)
class ControlSpec:
    max_bytes_per_node: Size


@dataclass(frozen=True, slots=True, config=STRICT)
class CollectiveSpec:
    """The AllReduce that proves the fabric. `size`: bytes of each rank's buffer; `runs`: how often it is run and gated.

    `consumer`: whose environment the ranks get: one of env.consumers, or `file:/path` (docker's env-file rules). Without it: the first
    of env.consumers, else the docker env-file of env.write, else nothing but /etc/nccl.conf. `program`: path of all_reduce_perf (mpirun,
    srun). `python`, `venv`: what runs our own program (direct); `runtime.image`: the container in which it does. `start_s`: so long may
    the ranks' start take (imports, bootstrap, connections); NCCL itself tries to connect for about 60 s.
    """

    launcher: Annotated[str, Field(pattern="^(direct|mpirun|srun)$")] = "direct"
    runtime: RuntimeSpec | None = None
    consumer: Annotated[str, Field(pattern=r"^((docker|systemd):[^\s/]+|file:/\S+)$")] | None = None
    program: str | None = None
    python: str | None = None
    venv: str | None = None
    size: Size = 268435456
    runs: Annotated[int, Field(ge=1, le=100)] = 3
    start_s: Annotated[int, Field(ge=5, le=3600)] = 120
    min_share_of_line_rate: Annotated[float, Field(gt=0, le=1)] = 0.85
    control: ControlSpec | None = None


@dataclass(frozen=True, slots=True, config=STRICT)
class LimitsSpec:
    nodes: Annotated[int, Field(ge=1)] = 1
    streams_per_node: Annotated[int, Field(ge=1)] = 1
    bytes_per_s: Size | None = None


@dataclass(frozen=True, slots=True, config=STRICT)
class CheckpointSpec:
    source: str
    revision: str
    target: str
    engine: str | None = None
    uid: Annotated[int, Field(ge=0)] = 0
    patches: tuple[str, ...] = ()
    limits: LimitsSpec = field(default_factory=LimitsSpec)


@dataclass(frozen=True, slots=True, config=STRICT)
class KernelCacheSpec:
    container: str
    kinds: tuple[Annotated[str, Field(pattern="^(deepgemm|tvm-ffi|triton)$")], ...]
    host_path: str
    mounted_at: str


@dataclass(frozen=True, slots=True, config=STRICT)
class NodeSpec:
    """Everything the spec says about one node. `nodes` names all nodes of the site, this one included."""

    name: str
    site: str
    group: str
    nodes: tuple[str, ...]
    ssh: SshSpec = field(default_factory=SshSpec)
    switches: Mapping[str, SwitchSpec] = field(default_factory=dict)
    fabric: FabricSpec = field(default_factory=FabricSpec)
    gpu: GpuSpec | None = None
    ports: Mapping[str, PortSpec] = field(default_factory=dict)
    other_rdma: tuple[str, ...] = ()
    bootstrap: str | None = None
    protected: tuple[str, ...] = ()
    env: EnvSpec = field(default_factory=EnvSpec)
    collective: CollectiveSpec | None = None
    checkpoints: Mapping[str, CheckpointSpec] = field(default_factory=dict)
    kernel_caches: Mapping[str, KernelCacheSpec] = field(default_factory=dict)
    versions: VersionsSpec = field(default_factory=VersionsSpec)
    memlock: MemlockSpec = field(default_factory=MemlockSpec)
    kernel_log: KernelLogSpec = field(default_factory=KernelLogSpec)
    simulated: bool = False  # a lab: every report says so


NODE = TypeAdapter(NodeSpec)
