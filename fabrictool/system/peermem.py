"""Whether the kernel lets a NIC read and write GPU memory: the module nvidia_peermem, or dma-buf."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Unreadable, Value
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections
from fabrictool.system.read import driver, host, whole_files

DMABUF_SINCE = (5, 12)  # RDMA core takes dma-buf memory from here on (NVIDIA, GPUDirect RDMA documentation)


@dataclass(frozen=True, slots=True)
class PeerMemory:
    """Each a text that says what was found. `module`: nvidia_peermem or its older name; `dmabuf`: open kernel modules on a kernel that
    can."""

    module: Observed[str]
    dmabuf: Observed[str]


def read(snap: Snapshot) -> PeerMemory:
    return PeerMemory(_module(snap), _dmabuf(snap))


def _module(snap: Snapshot) -> Observed[str]:
    got = whole_files(snap, sections.MODULES.name)
    if isinstance(got, Unreadable):
        return got
    for name in ("nvidia_peermem", "nv_peer_mem"):
        state = got.get(f"/sys/module/{name}/initstate")
        if state == "live":
            return Value(name)
        if state is not None:
            return Absent(f"{name} (it is {state})")
    return Absent("nvidia_peermem (it is not loaded)")


def _dmabuf(snap: Snapshot) -> Observed[str]:
    loaded, kernel = driver(snap), host(snap).kernel
    if not isinstance(loaded, Value):
        return loaded
    if not isinstance(kernel, Value):
        return kernel
    numbers = tuple(int(n) for n in re.findall(r"\d{1,5}", kernel.value)[:2])
    if not loaded.value.open:
        return Absent("dma-buf (it needs NVIDIA's open kernel modules; these are the proprietary ones)")
    if len(numbers) < 2 or numbers < DMABUF_SINCE:
        return Absent(f"dma-buf (it needs Linux 5.12; this is {kernel.value})")
    return Value(f"dma-buf: open kernel modules {loaded.value.version}, Linux {kernel.value}")
