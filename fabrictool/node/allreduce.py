"""One rank of an AllReduce over NCCL, timed and verified: what the launcher `direct` runs on nodes, in the user's venv or container.

Standard library and PyTorch, Python 3.8 or newer. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT come from the environment.
All other settings of NCCL do too: nothing is set here.

Each rank calls all_reduce on a float32 buffer of --size bytes W + 1 + N + C times: W warm-ups, one more before the clock starts, N timed,
C verified. Rank 0 prints one line of JSON on stdout:

    {"fabrictool": "allreduce", "format": 1, "size_bytes": ..., "ranks": ..., "warmup": ..., "iterations": ..., "verify": ...,
     "time_us": ..., "algbw_gbytes_per_s": ..., "busbw_gbytes_per_s": ..., "wrong": ..., "torch": "...", "cuda": "...", "nccl": "...",
     "hostnames": [...], "devices": [...]}

`time_us`: of one call, the slowest rank's mean. Bandwidths are decimal; busbw = algbw * 2 (n - 1) / n over n ranks, as nccl-tests counts
it. `wrong`: elements over all ranks that are not exactly the sum. What each rank is doing stands on its stderr.

Exit status: 0 done, 2 wrong arguments or environment, 3 no PyTorch or no CUDA here, 4 fewer GPUs than ranks, 5 the ranks could not be
connected or a call failed, 7 wrong results. When the first call is not over after --start seconds, or everything after --deadline (from the
beginning), it prints the stack of every thread and ends with 1.
"""

from __future__ import annotations

import argparse
import datetime
import faulthandler
import json
import os
import socket
import sys
import time
from typing import Any

BEGAN = time.monotonic()
FORMAT = 1
PERIOD = 1021  # a prime: element i holds i mod PERIOD + rank, so a piece that lands in the wrong place shows
NO_TORCH, NO_GPU, FAILED, WRONG = 3, 4, 5, 7
LEAST = {"size": 4, "warmup": 0, "iterations": 1, "verify": 1, "start": 1, "deadline": 1}
PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")


def say(rank: int | str, what: str) -> None:
    print(f"fabrictool-allreduce: rank {rank} on {socket.gethostname()}: {what}", file=sys.stderr, flush=True)


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One rank of an AllReduce over NCCL.")
    for name in LEAST:
        parser.add_argument("--" + name, type=int, required=name != "start")
    got = parser.parse_args(argv)
    got.start = got.deadline if got.start is None else got.start
    for name, least in LEAST.items():
        if getattr(got, name) < least:
            parser.error(f"--{name} must be at least {least}")
    if got.size % 4:
        parser.error("--size must be a multiple of 4, the bytes of a float32")
    missing = [n for n in (*PLACE, "MASTER_ADDR") if not os.environ.get(n)]
    if missing:
        parser.error("not set in the environment: " + ", ".join(missing))
    odd = [n for n in PLACE if not os.environ[n].isdigit()]
    if odd:
        parser.error("no numbers in the environment: " + ", ".join(odd))
    return got


def measure(torch: Any, dist: Any, got: argparse.Namespace, world: int, rank: int, device: Any) -> tuple[float, int]:
    """Seconds of one timed call on this rank, and how many elements are wrong here."""
    count = got.size // 4
    buffer = torch.zeros(count, dtype=torch.float32, device=device)
    dist.all_reduce(buffer)
    torch.cuda.synchronize()
    faulthandler.dump_traceback_later(max(1.0, BEGAN + got.deadline - time.monotonic()), exit=True)  # in place of --start
    for _ in range(got.warmup):
        dist.all_reduce(buffer)
    torch.cuda.synchronize()
    say(rank, "warmed up")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(got.iterations):
        dist.all_reduce(buffer)
    end.record()
    torch.cuda.synchronize()
    seconds = start.elapsed_time(end) / 1000.0 / got.iterations
    say(rank, "timed")
    pattern = torch.arange(count, dtype=torch.float32, device=device).remainder_(PERIOD)
    wrong = 0
    for _ in range(got.verify):
        buffer.copy_(pattern).add_(rank)
        dist.all_reduce(buffer)
        # Small whole numbers: float32 holds every one of them, and their sums, exactly.
        buffer.sub_(world * (world - 1) // 2).div_(world)
        wrong += int((buffer != pattern).sum().item())
    torch.cuda.synchronize()
    say(rank, "verified")
    return seconds, wrong


def run(torch: Any, got: argparse.Namespace) -> int:
    import torch.distributed as dist

    rank, world, local = (int(os.environ[n]) for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    if torch.cuda.device_count() <= local:
        say(rank, f"there are {torch.cuda.device_count()} GPUs here, and this is the rank of GPU {local}")
        return NO_GPU
    torch.cuda.set_device(local)
    say(rank, "starting")
    dist.init_process_group("nccl", init_method="env://", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=got.deadline))
    try:
        say(rank, "group made")
        seconds, wrong = measure(torch, dist, got, world, rank, torch.device("cuda", local))
        every: list[Any] = [None] * world
        dist.all_gather_object(every, (socket.gethostname(), torch.cuda.get_device_name(local), seconds, wrong))
    finally:
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps(result(torch, got, every), sort_keys=True), flush=True)
    return WRONG if any(e[3] for e in every) else 0


def result(torch: Any, got: argparse.Namespace, every: list[Any]) -> dict[str, object]:
    """What rank 0 prints. `every`: (host name, device, seconds, wrong) of each rank."""
    world, slowest = len(every), max(e[2] for e in every)
    algbw = got.size / slowest / 1e9 if slowest > 0 else 0.0
    nccl = torch.cuda.nccl.version()
    return {
        "fabrictool": "allreduce", "format": FORMAT, "size_bytes": got.size, "ranks": world, "warmup": got.warmup,
        "iterations": got.iterations, "verify": got.verify, "time_us": round(slowest * 1e6, 3),
        "algbw_gbytes_per_s": round(algbw, 4), "busbw_gbytes_per_s": round(algbw * 2 * (world - 1) / world, 4),
        "wrong": sum(e[3] for e in every), "torch": str(torch.__version__), "cuda": str(torch.version.cuda),
        "nccl": ".".join(str(part) for part in nccl) if isinstance(nccl, tuple) else str(nccl),
        "hostnames": [e[0] for e in every], "devices": [e[1] for e in every],
    }


def main(argv: list[str]) -> int:
    got = arguments(argv)
    faulthandler.dump_traceback_later(min(got.start, got.deadline), exit=True)
    rank = os.environ["RANK"]
    try:
        import torch
    except ImportError as error:
        say(rank, f"PyTorch cannot be imported by {sys.executable}: {error}")
        return NO_TORCH
    try:
        usable = torch.cuda.is_available()
    except Exception as error:  # noqa: BLE001 - a broken driver raises whatever it likes
        say(rank, f"CUDA cannot be used: {error}")
        return NO_TORCH
    if not usable:
        say(rank, f"this PyTorch ({torch.__version__}) finds no CUDA device")
        return NO_TORCH
    try:
        return run(torch, got)
    except Exception as error:  # noqa: BLE001 - NCCL's errors are RuntimeErrors of many kinds; the text tells
        say(rank, f"failed: {type(error).__name__}: {error}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
