"""The one state model of a lab node. mlnx_qos, dcb, rdma, ethtool and sysfs are views on it.

Kept as JSON at `<node dir>/state.json`; every stand-in opens it through `edit` (locked, atomic). Semantics follow the mlx5 driver:
a PFC change flaps the link, trust is dscp exactly while at least one DSCP entry exists, a reboot wipes what hardware forgets.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


def default_dscp_map() -> list[int]:
    """DSCP -> priority as the driver writes it on `--trust dscp`: the top three bits."""
    return [d >> 3 for d in range(64)]


@dataclass
class Function:
    """One RDMA function with its interface. `dscp_app`: DSCP entries present (empty = trust pcp)."""

    interface: str
    rdma: str
    port: str  # physical port name, p0 ...
    rail: str
    bus: str  # PCI address, 0000:01:00.0
    rate_gbit: int
    sys_image_guid: str
    node_guid: str
    dcb: bool = True
    dcbx_host: bool = True
    trust: str = "pcp"
    dscp_map: list[int] = field(default_factory=default_dscp_map)
    pfc: list[int] = field(default_factory=lambda: [0] * 8)
    prio_tc: list[int] = field(default_factory=lambda: [1, 0, 2, 3, 4, 5, 6, 7])  # mlx5's default
    tsa: list[str] = field(default_factory=lambda: ["vendor"] * 8)
    prio_buffer: list[int] = field(default_factory=lambda: [0] * 8)
    buffer_size: list[int] = field(default_factory=lambda: [262016] + [0] * 7)
    cable_len: int = 7
    global_pause: bool = True
    gid_types: str = "both"  # both | v1 | none
    link_layer: str = "Ethernet"
    tclass: str = ""  # infiniband/DEV/tc/1/traffic_class
    ecn: bool = True
    pcie_width: int = 4
    flaps: int = 0
    # below: what only the stand-ins need (see driver.py)
    dscp_app: list[list[int]] = field(default_factory=list)  # [DSCP, priority], newest first; empty and trust dscp = all 64 of dscp_map
    default_prio: list[int] = field(default_factory=list)
    tc_bw: list[int] = field(default_factory=lambda: [0] * 8)  # percent
    maxrate: list[int] = field(default_factory=lambda: [0] * 8)  # kbit/s, 0 = unlimited
    buffers_manual: bool = False  # automatic headroom off. An empty buffer_size = the driver has no buffer attribute
    buffer_total: int = 262016
    dcbx_caps: list[str] = field(default_factory=lambda: ["cee", "ieee"])
    driver: str = "mlx5_core"
    pause_tx: bool | None = None  # None = as global_pause
    counts: dict[str, int] = field(default_factory=dict)  # what it counted since the boot (counts.py, wire.py); absent = 0
    frozen: bool = False  # the firmware does not count this function's RDMA traffic
    ignores_class: bool = False  # queue pairs get traffic class 0, whatever their program asks for
    lost_per_million: int = 0  # RDMA packets that do not reach this function
    degraded_gbit: int = 0  # what the port really carries when it came up badly; 0 = its rate
    far: bool = False  # so far from the GPU on PCIe that no path is laid over it


@dataclass
class Nic:
    """An interface that is no RDMA function: management, Wi-Fi. Shown in sysfs and by ethtool, never by RDMA tools."""

    interface: str
    bus: str
    driver: str
    speed_mbit: int


@dataclass
class Node:
    """`era`: trait set of mlnx_qos (2017, 5.9.1, 26.04, 26.07 ...). `tools`: tool -> how it behaves when not "ok": missing, hangs,
    traceback, lies, half ... `twins_share`: functions of one port share QoS state. `qps`: RDMA queue pairs now up, per RDMA device."""

    name: str
    functions: dict[str, Function] = field(default_factory=dict)  # by interface
    era: str = "26.07"
    tools: dict[str, str] = field(default_factory=dict)
    lldpad: bool = False
    twins_share: bool = True
    qps: dict[str, int] = field(default_factory=dict)
    images: list[str] = field(default_factory=lambda: ["example/pytorch:25.09"])  # what docker need not pull
    containers: list[dict[str, Any]] = field(default_factory=list)  # name, pid, image
    profiles: list[dict[str, Any]] = field(default_factory=list)  # NetworkManager's running view
    enabled_units: list[str] = field(default_factory=list)
    boots: int = 0
    nics: dict[str, Nic] = field(default_factory=dict)  # by interface
    gpu: str = "NVIDIA GB10"
    gpus: int = 1
    gpu_ok: bool = True  # False: a program that asks for the GPU waits for ever
    gpu_direct: bool = True  # the NIC reads and writes GPU memory itself (where the GPU has memory of its own)
    wrong_elements: int = 0  # of each result that the GPU computes
    kills_after: int = 0  # the kernel kills a program after so many collectives; 0 = never
    compute: list[dict[str, Any]] = field(default_factory=list)  # programs on the GPUs: pid, name, kind C or G, memory_mib, gpu
    tcp_gbytes: float = 4.0  # GB/s that the node's CPUs move over sockets
    noise: float = 0.0  # each figure of bandwidth is off by up to this share
    seed: int = 0  # of the noise
    nccl_plugin: dict[str, str] = field(default_factory=dict)  # what an NCCL environment plugin sets, over every other place
    old_json: bool = False  # result files are those of an earlier run
    kernel_log: list[list[Any]] = field(default_factory=list)  # [seconds since 1970, text], oldest first


def _node(raw: dict[str, Any]) -> Node:
    functions = {k: Function(**v) for k, v in raw.pop("functions").items()}
    nics = {k: Nic(**v) for k, v in raw.pop("nics", {}).items()}
    return Node(functions=functions, nics=nics, **raw)


def load(path: Path) -> Node:
    return _node(json.loads(path.read_text()))


def save(path: Path, node: Node) -> None:
    temp = path.with_suffix(f".{os.getpid()}")
    temp.write_text(json.dumps(asdict(node), indent=1, sort_keys=True))
    temp.replace(path)


@contextmanager
def edit(path: Path) -> Iterator[Node]:
    """The state under an exclusive lock; saved on leaving if it changed."""
    with open(path.with_suffix(".lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node = load(path)
        before = asdict(node)
        yield node
        if asdict(node) != before:
            save(path, node)
