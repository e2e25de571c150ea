"""nvidia-smi: -L, --query-gpu=... --format=csv[,noheader][,nounits], and the short table."""

from __future__ import annotations

from fabrictool.lab.nodeside.standins.behaviour import serve
from fabrictool.lab.nodeside.tool import Answer, Call

DRIVER, CUDA = "580.159.04", "13.0"
COMPUTE = {"NVIDIA GB10": "12.1", "NVIDIA H20": "9.0", "NVIDIA H200": "9.0", "NVIDIA L40S": "8.9"}
MEMORY_MIB = {"NVIDIA H20": 97871, "NVIDIA H200": 143771, "NVIDIA L40S": 46068}  # unified memory has no number of its own
HEADS = {"memory.total": "memory.total [MiB]", "memory.used": "memory.used [MiB]"}


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
    if "query-gpu" in options:
        return _query(node.gpu, node.gpus, options["query-gpu"].split(","), options.get("format", ""))
    if words and words[0] not in ("-q", "--query"):
        print(f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\nInvalid argument: {words[0]}")
        return 2
    print("+" + "-" * 89 + "+\n"
          f"| NVIDIA-SMI {DRIVER:<23}Driver Version: {DRIVER:<21}CUDA Version: {CUDA:<5}|\n+" + "-" * 89 + "+")
    for i in range(node.gpus):
        print(f"| {i:3d}  {node.gpu:<83} |")
    print("+" + "-" * 89 + "+")
    return 0


def _uuid(index: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{index:012d}"


def _query(model: str, count: int, fields: list[str], form: str) -> int:
    words = [w.strip() for w in form.split(",")]
    if "csv" not in words:
        print("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.")
        return 2
    units = "" if "nounits" in words else " MiB"
    memory = f"{MEMORY_MIB[model]}{units}" if model in MEMORY_MIB else "[N/A]"
    rows = []
    for i in range(count):
        known = {"index": str(i), "name": model, "gpu_name": model, "count": str(count), "uuid": _uuid(i),
                 "compute_cap": COMPUTE.get(model, "[N/A]"), "driver_version": DRIVER,
                 "memory.total": memory, "memory.used": f"0{units}" if model in MEMORY_MIB else "[N/A]",
                 "pci.bus_id": f"0000000F:{i + 1:02X}:00.0"}
        unknown = [f for f in fields if f.strip() not in known]
        if unknown:
            print(f'Field "{unknown[0].strip()}" is not a valid field to query.\n')
            return 2
        rows.append(", ".join(known[f.strip()] for f in fields))
    if "noheader" not in words:
        print(", ".join(HEADS.get(f.strip(), f.strip()) for f in fields))
    for row in rows:
        print(row)
    return 0
