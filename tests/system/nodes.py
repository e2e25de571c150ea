"""DGX Sparks with what the checks on a node's system read, in the tools' own formats; a test changes sections by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabrictool.prove import Case
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.system import journal, sections
from tests.env.sample import BOX, Box, consumers_text
from tests.ports.sample import Node
from tests.specs import SPARK, node_spec
from tests.system.logs import CALM, stamped

END_FILE = "/proc/sys/kernel/ostype:Linux\n"
DRIVER = ("/proc/driver/nvidia/version:NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.04  Release Build  (dvs@U22)\n"
          "/proc/driver/nvidia/version:GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n")
SHA = "sha256:" + "ab" * 32
DIGEST = "sha256:" + "cd" * 32
UNLIMITED = "m unlimited unlimited\nk 00000000a80425fb\n"
PID = 4001
LOG_HEAD = "clock 1785574800\nuptime 90000.50\nboot 11111111-2222-3333-4444-555566667777\n"


def host(kernel: str = "6.14.0-1015-nvidia", locked: str = "unlimited unlimited") -> Captured:
    return Captured(0, f"kernel {kernel}\nmachine aarch64\nos \"Ubuntu 24.04.3 LTS\"\nMemTotal 125000000 kB\nMemAvailable 110000000 kB\n"
                       f"locked {locked}\nend\n")


def gpu(driver: str = "580.159.04", name: str = "NVIDIA GB10", vbios: str = "9A.0B.13.00.00") -> Captured:
    return Captured(0, f"0, {name}, 0000000F:01:00.0, {driver}, {vbios}, [N/A], [N/A], [N/A]\nend\n")


def nic(firmware: str = "28.45.1200", second: str = "", board: str = "NVD0000000087") -> Captured:
    at = "/sys/class/infiniband/"
    rows = [f"{at}{d}/fw_ver:{v}\n{at}{d}/board_id:{board}\n{at}{d}/hca_type:MT4129\n"
            for d, v in (("rocep1s0f0", firmware), ("roceP2p1s0f0", second or firmware))]
    return Captured(0, "".join(rows) + END_FILE)


def boxes(image: str = SHA, digests: tuple[str, ...] | None = (f"vllm/vllm-openai@{DIGEST}",), name: str = "vllm-a",
          status: str = "running", more: str = "") -> Captured:
    row = f"c {PID} {BOX} {json.dumps('/' + name)} \"vllm/vllm-openai:v0.11\" {json.dumps(image)} {json.dumps(status)}\n"
    known = "" if digests is None else f"i {image} {json.dumps(list(digests))}\n"
    return Captured(0, f"docker ok 0 -\n{row}{more}{known}end\n")


def process(limits: str = UNLIMITED, pid: int = PID, cudart: str = "13.0.48") -> Captured:
    return Captured(0, f"p {pid}\n{limits}l /usr/local/cuda/lib64/libcudart.so.{cudart}\nl /usr/lib/libnccl.so.2.27.3\nend\n")


def log(text: str = CALM, stamp: str = "journal short-iso", head: str = LOG_HEAD, tool: str = "journalctl") -> Captured:
    return Captured(0, f"{head}log {tool}\n{stamped(text, stamp)}rc 0\nend\n")


def healthy() -> dict[str, Captured]:
    return {
        sections.HOST_FACTS.name: host(), sections.GPU.name: gpu(), sections.NIC.name: nic(), sections.CONTAINERS.name: boxes(),
        sections.CUDA.name: Captured(0, "Driver Version                      : 580.159.04\nCUDA Version                        : 13.0\n"),
        sections.DRIVER.name: Captured(0, DRIVER + END_FILE), sections.OFED.name: Captured(127, "", "sh: 1: ofed_info: not found"),
        sections.PACKAGES.name: Captured(0, "rdma-core 50.0-2ubuntu0.2 installed\nlibibverbs1 50.0-2ubuntu0.2 installed\nend\n"),
        sections.LIBRARIES.name: Captured(0, "/lib/aarch64-linux-gnu/libnccl.so.2 -> /usr/lib/aarch64-linux-gnu/libnccl.so.2.27.3\nend\n"),
        sections.PROCESSES.name: process(), journal.NAME: log(), "consumers": Captured(0, consumers_text(Box())),
        sections.UNITS.name: Captured(0, "Id=ssh.service\nLimitMEMLOCK=8388608\n\nId=vllm.service\nLimitMEMLOCK=infinity\nend\n"),
    }


def snap(name: str, changed: Mapping[str, Captured | None] | None = None, last: int = 1) -> Snapshot:
    """None takes a section away."""
    node = Node()
    for interface, subnet in zip(("enp1s0f0np0", "enP2p1s0f0np0"), (1, 2), strict=True):
        node.netdevs[interface]["addr_info"][0]["local"] = f"10.10.{subnet}.{last}"
    mine = {**node.snapshot().sections, **healthy(), **(changed or {})}
    return replace(node.snapshot(), node=name, sections={k: v for k, v in mine.items() if v is not None})


def fleet(changed: Mapping[str, Mapping[str, Captured | None]] | None = None, count: int = 4, **spec: Any) -> Case:
    """`changed`: node -> its sections that differ from a healthy node's; `spec`: top-level keys to replace."""
    names = [f"spark{i:02d}" for i in range(1, count + 1)]
    wants = {n: node_spec(n, **{**SPARK, "nodes": names, **spec}) for n in names}
    return Case(wants, {n: snap(n, (changed or {}).get(n), i) for i, n in enumerate(names, 1)})
