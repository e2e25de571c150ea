"""How fast the adapters of a node are: the model behind every figure of bandwidth in a lab.

Calibrated on measured figures of a Spark (AllReduce of 256 MB, Ring): 11.4 GB/s over one function, 22.9 over both functions of the one
200G cage; 1.6 where the cage came up degraded (13 Gb/s). GB/s are decimal.
"""

from __future__ import annotations

from typing import Any

from fabrictool.lab.nodeside.state import Function, Node

UNIFIED = ("NVIDIA GB10",)  # GPUs with no memory of their own: nothing for GPUDirect to read
OF_LINE_RATE = 0.916  # 22.9 of 25 GB/s
OF_PCIE = 0.727  # 11.45 of 15.75 GB/s
LANE_GBYTES = 32 / 8 * 128 / 130  # PCIe 5.0: 32 GT/s, 128b/130b


def gpu_bus(index: int) -> str:
    """The PCI address of a GPU, where GPUs are cards."""
    return f"0000:{0x18 + 8 * index:02x}:00.0"


def port_gbytes(fn: Function) -> float:
    """What a cage carries: degraded ones carry exactly what they are degraded to."""
    if fn.degraded_gbit:
        return fn.degraded_gbit / 8
    return fn.rate_gbit / 8 * OF_LINE_RATE


def function_gbytes(fn: Function) -> float:
    return min(LANE_GBYTES * fn.pcie_width * OF_PCIE, port_gbytes(fn))


def adapters(node: Node) -> list[dict[str, Any]]:
    """One row for each RDMA device, in the order of the PCI bus."""
    return [{"rdma": fn.rdma, "far": fn.far, "gbytes": function_gbytes(fn), "cage": f"{fn.sys_image_guid} {fn.port}",
             "cage_gbytes": port_gbytes(fn)} for fn in sorted(node.functions.values(), key=lambda f: f.bus)]


def total(rows: list[dict[str, Any]]) -> float:
    """Of several adapters used at once: functions of a cage share it, and are never worth more than it."""
    cages: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cages.setdefault(row["cage"], []).append(row)
    return float(sum(min(sum(r["gbytes"] for r in group), group[0]["cage_gbytes"]) for group in cages.values()))
