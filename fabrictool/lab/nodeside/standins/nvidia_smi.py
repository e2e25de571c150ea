"""nvidia-smi 580: -L, --query-gpu, --query-compute-apps, topo -m, -q -d ..., and the table. A desktop's programs are in the table only."""

from __future__ import annotations

import time
from typing import Any

from fabrictool.lab.nodeside.capacity import gpu_bus
from fabrictool.lab.nodeside.journal import DRIVER
from fabrictool.lab.nodeside.standins.behaviour import serve
from fabrictool.lab.nodeside.standins.nvidia_topo import topology
from fabrictool.lab.nodeside.state import Node
from fabrictool.lab.nodeside.tool import Answer, Call

CUDA = "13.0"
COMPUTE = {"NVIDIA GB10": "12.1", "NVIDIA H20": "9.0", "NVIDIA H200": "9.0", "NVIDIA L40S": "8.9"}
MEMORY_MIB = {"NVIDIA H20": 97871, "NVIDIA H200": 143771, "NVIDIA L40S": 46068}  # unified memory has no number of its own
VBIOS = {"NVIDIA GB10": "9A.0B.13.00.00"}
HEADS = {"memory.total": "memory.total [MiB]", "memory.used": "memory.used [MiB]", "power.limit": "power.limit [W]",
         "utilization.gpu": "utilization.gpu [%]", "used_memory": "used_gpu_memory [MiB]", "used_gpu_memory": "used_gpu_memory [MiB]"}
RULE = "+" + "-" * 89 + "+"


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    node, words = call.node, list(call.argv)
    if call.mode == "no-driver":
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
              "Make sure that the latest NVIDIA driver is installed and running.\n")
        return 9
    if not node.gpus:
        print("No devices were found")
        return 6
    options = dict(w.lstrip("-").split("=", 1) for w in words if w.startswith("--") and "=" in w)
    if words == ["-L"] or words == ["--list-gpus"]:
        for i in range(node.gpus):
            print(f"GPU {i}: {node.gpu} (UUID: {_uuid(i)})")
        return 0
    form = [w.strip() for w in options.get("format", "").split(",")]
    if "query-gpu" in options:
        fields = options["query-gpu"].split(",")
        return _csv(fields, form, [_gpu(node, i, "nounits" not in form) for i in range(node.gpus)])
    if "query-compute-apps" in options:
        programs = [p for p in node.compute if "C" in str(p["kind"])]
        return _csv(options["query-compute-apps"].split(","), form, [_program(node, p, "nounits" not in form) for p in programs])
    if words == ["topo", "-m"]:
        print(topology(node), end="")
        return 0
    if words and words[0] in ("-q", "--query"):
        return _details(node)
    if words:
        print(f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\nInvalid argument: {words[0]}")
        return 2
    _table(node)
    return 0


def bus(node: Node, index: int) -> str:
    return "0000000F:01:00.0" if node.gpu not in MEMORY_MIB else f"0000{gpu_bus(index).upper()}"


def _uuid(index: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{index:012d}"


def _gpu(node: Node, i: int, units: bool) -> dict[str, str]:
    own = node.gpu in MEMORY_MIB
    mib = " MiB" if units else ""
    return {"index": str(i), "name": node.gpu, "gpu_name": node.gpu, "count": str(node.gpus), "uuid": _uuid(i), "gpu_uuid": _uuid(i),
            "compute_cap": COMPUTE.get(node.gpu, "[N/A]"), "driver_version": DRIVER, "pci.bus_id": bus(node, i),
            "memory.total": f"{MEMORY_MIB[node.gpu]}{mib}" if own else "[N/A]", "memory.used": f"0{mib}" if own else "[N/A]",
            "vbios_version": VBIOS.get(node.gpu, "96.00.A5.00.1A"), "mig.mode.current": "Disabled" if own else "[N/A]",
            "ecc.mode.current": "Enabled" if own else "[N/A]", "power.limit": f"700.00{' W' if units else ''}" if own else "[N/A]",
            "utilization.gpu": f"{96 if _computing(node, i) else 0}{' %' if units else ''}"}


def _computing(node: Node, index: int) -> bool:
    return any(p.get("gpu", 0) == index and "C" in str(p["kind"]) for p in node.compute)


def _program(node: Node, p: dict[str, Any], units: bool) -> dict[str, str]:
    index = int(p.get("gpu", 0))
    memory = f"{p['memory_mib']}{' MiB' if units else ''}"
    return {"pid": str(p["pid"]), "process_name": str(p["name"]), "name": str(p["name"]), "used_memory": memory, "used_gpu_memory": memory,
            "gpu_name": node.gpu, "gpu_uuid": _uuid(index), "gpu_bus_id": bus(node, index)}


def _csv(fields: list[str], form: list[str], rows: list[dict[str, str]]) -> int:
    fields = [f.strip() for f in fields]
    if "csv" not in form:
        print("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.")
        return 2
    known = {*_gpu(Node("x"), 0, True), *_program(Node("x"), {"pid": 0, "name": "", "memory_mib": 0}, True)}
    unknown = [f for f in fields if f not in known or any(f not in row for row in rows)]
    if unknown:
        print(f'Field "{unknown[0]}" is not a valid field to query.\n')
        return 2
    if "noheader" not in form:
        print(", ".join(HEADS.get(f, f) if "nounits" not in form else HEADS.get(f, f).partition(" [")[0] for f in fields))
    for row in rows:
        print(", ".join(row[f] for f in fields))
    return 0


def _details(node: Node) -> int:
    """The head, and little of each GPU, whichever -d was asked for."""
    print("\n==============NVSMI LOG==============\n")
    for name, value in (("Timestamp", time.ctime()), ("Driver Version", DRIVER), ("CUDA Version", CUDA)):
        print(f"{name:<55}: {value}")
    print(f"\n{'Attached GPUs':<55}: {node.gpus}")
    for i in range(node.gpus):
        print(f"GPU {bus(node, i)}\n    {'Performance State':<51}: P0\n")
    return 0


def _table(node: Node) -> None:
    """The short form: a box of 91 columns."""
    def row(text: str) -> None:
        print(f"| {text[:87]:<87} |")

    print(RULE)
    row(f"NVIDIA-SMI {DRIVER:<23}Driver Version: {DRIVER:<21}CUDA Version: {CUDA:<5}")
    print(RULE)
    for i in range(node.gpus):
        row(f"{i:3d}  {node.gpu}")
    print(f"{RULE}\n\n{RULE}")
    row("Processes:")
    row(" GPU   GI   CI              PID   Type   Process name                        GPU Memory")
    row("       ID   ID                                                               Usage")
    print(f"|{'=' * 89}|")
    for p in node.compute:
        row(f"{p.get('gpu', 0):4d}   N/A  N/A {p['pid']:16d} {p['kind']:>6}   {str(p['name'])[:34]:<34} {p['memory_mib']:9d}MiB")
    if not node.compute:
        row(" No running processes found")
    print(RULE)
