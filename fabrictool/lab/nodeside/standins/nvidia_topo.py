"""nvidia-smi topo -m: how far the GPUs and adapters of a node are from each other."""

from __future__ import annotations

from fabrictool.lab.nodeside.capacity import UNIFIED
from fabrictool.lab.nodeside.state import Function, Node

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def _half(index: int, count: int) -> int:
    """The NUMA node: the first half of the devices is at one, the second at the other."""
    return 0 if count < 2 or index < count // 2 else 1


def _nic_half(node: Node, nics: list[Function], nic: int) -> int:
    """An adapter with a rail is where that rail's GPU is."""
    rails = [f for f in nics if f.rail]
    fn = nics[nic]
    if fn in rails and rails.index(fn) < node.gpus:
        return _half(rails.index(fn), node.gpus)
    return _half(nic, len(nics))


def _gpu_to_nic(node: Node, gpu: int, nics: list[Function], nic: int) -> str:
    """A GPU's own rail is behind the same bridge; where GPU and CPU are one chip, every adapter is at that chip."""
    fn, rails = nics[nic], [f for f in nics if f.rail]
    if fn.far:
        return "SYS"
    if node.gpu in UNIFIED:
        return "NODE"
    if fn in rails and rails.index(fn) == gpu:
        return "PIX"
    return "NODE" if _half(gpu, node.gpus) == _nic_half(node, nics, nic) else "SYS"


def topology(node: Node) -> str:
    """The matrix with its legends."""
    nics = sorted(node.functions.values(), key=lambda f: f.bus)
    halves = [_nic_half(node, nics, i) for i in range(len(nics))]
    names = [f"GPU{i}" for i in range(node.gpus)] + [f"NIC{i}" for i in range(len(nics))]
    lines = ["\t\x1b[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"]
    for gpu in range(node.gpus):
        row = [" X " if other == gpu else "NV18" for other in range(node.gpus)]
        row += [_gpu_to_nic(node, gpu, nics, i) for i in range(len(nics))]
        lines.append("\t".join([f"GPU{gpu}", *row, "0-31", str(_half(gpu, node.gpus)), "", "N/A"]))
    for i in range(len(nics)):
        row = [_gpu_to_nic(node, gpu, nics, i) for gpu in range(node.gpus)]
        row += [" X " if other == i else "NODE" if halves[i] == halves[other] else "SYS" for other in range(len(nics))]
        lines.append("\t".join([f"NIC{i}", *row]))
    legend = "".join(f"  NIC{i}: {fn.rdma}\n" for i, fn in enumerate(nics))
    return "\n".join(lines) + "\n" + LEGEND + (f"\nNIC Legend:\n\n{legend}\n" if nics else "\n")
