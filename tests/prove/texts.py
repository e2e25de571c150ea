"""What nccl-tests and NCCL print in a healthy run over RDMA, in their layout (nccl-tests 2.19.6, NCCL 2.28.9). Written by hand, not by
anything of the program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

HEAD = ("#                                                              out-of-place                       in-place          \n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n")


def pid(rank: int) -> int:
    return 4101 + rank


def result(hosts: Sequence[str], gpu: str, row: str, size: int) -> str:
    """Stdout of rank 0. `hosts`: of each rank; `row`: the one line of numbers."""
    ranks = "".join(f"#  Rank {i:2d} Group  0 Pid {pid(i):6d} on {h:>10s} device {hosts[:i].count(h):2d} [000f:01:00] {gpu}\n"
                    for i, h in enumerate(hosts))
    return ("# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: all_reduce_perf\n"
            f"# nThread 1 nGpus 1 minBytes {size} maxBytes {size} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
            f"validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n{ranks}#\n{HEAD}{row}\n# Out of bounds values : 0 OK\n"
            f"# Avg bus bandwidth    : {row.split()[7]} \n#\n# Collective test concluded: all_reduce_perf\n#\n\n")


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def result_json(hosts: Sequence[str], gpu: str, row: str, started_s: float = 1767261600) -> str:
    """The -J file of rank 0's process, version 3. `started_s`: seconds since 1970; the node's local time is UTC."""
    w = row.split()
    placed = [{"time": float(w[i]), "alg_bw": float(w[i + 1]), "bus_bw": float(w[i + 2]), "nwrong": float(w[i + 3])} for i in (5, 9)]
    devices = [{"rank": i, "group": 0, "pid": pid(i), "hostname": h, "device": hosts[:i].count(h), "device_hex": "000f:01:00",
                "device_info": gpu} for i, h in enumerate(hosts)]
    return json.dumps({
        "version": 3, "start_time": at(started_s), "args": ["all_reduce_perf"], "env": [], "nccl_version": 22809,
        "config": {"nthreads": 1, "ngpus": 1, "minimum_bytes": int(w[0]), "maximum_bytes": int(w[0]), "step_factor": 2, "warmup_iters": 5,
                   "iterations": 20, "aggregated_iterations": 1, "validation": 1, "graph": 0, "blocking_collectives": "false",
                   "parallel_init": "false", "devices": devices},
        "results": [{"size": int(w[0]), "count": int(w[1]), "type": w[2], "redop": w[3], "root": "    -1", "out_of_place": placed[0],
                     "in_place": placed[1], "actual_iterations": 20, "experiment_name": ""}],
        "out_of_bounds": {"count": 0, "okay": "true"}, "average_bus_bandwidth": {"bandwidth": float(w[7]), "okay": "unchecked"},
        "errors": [""], "end_time": at(started_s + 11)}) + "\n"


def nccl_log(rank: int, hosts: Sequence[str], devices: Sequence[str], oob: str, env: Sequence[str], gdr: bool = False) -> str:
    """The NCCL_DEBUG_FILE of one rank in a ring over all ranks, a channel for each device and at least two. `oob`: `IF:ADDRESS`; `env`:
    `NAME value` pairs: NCCL ends the line with a dot where it reads a number."""
    n, me, host = len(hosts), rank, hosts[rank]
    head, dev, channels = f"{host}:{pid(rank)}:{pid(rank)}", hosts[:rank].count(host), max(2, len(devices))
    before, after = (me - 1) % n, (me + 1) % n

    def gpu(r: int) -> str:
        return f"{r}[{hosts[:r].count(hosts[r])}]"

    def how(peer: int, channel: int) -> str:
        return "P2P/CUMEM" if hosts[peer] == host else f"NET/IB/{channel % len(devices)}{'/GDRDMA' if gdr else ''}"

    using = " ".join(f"[{i}]{d}:1/RoCE" for i, d in enumerate(devices))
    said = [e.partition(" ") for e in env]
    lines = [f"NCCL_{name} set by environment to {value}{'.' if value.isdigit() else ''}" for name, _, value in said]
    lines += ["cudaDriverVersion 13000", "NCCL version 2.28.9+cuda13.0", f"NET/IB : Using {using} [RO]; OOB {oob}<0>",
              "Initialized NET plugin IB", "Assigned NET plugin IB to comm", "Using network IB",
              f"ncclCommInitRankConfig comm 0x5622d469d370 rank {me} nranks {n} cudaDev {dev} nvmlDev {dev} busId f01000 "
              "commId 0x0123456789abcdef - Init START",
              f"comm 0x5622d469d370 rank {me} nRanks {n} nNodes {len(set(hosts))} localRanks {hosts.count(host)} localRank {dev} MNNVL 0"]
    lines += [f"Channel {c:02d}/{channels:02d} : {' '.join(str(r) for r in range(n))}" for c in range(channels)] if me == 0 else []
    lines += [f"ncclCommInitRankConfig comm 0x5622d469d370 rank {me} nranks {n} cudaDev {dev} nvmlDev {dev} busId f01000 "
              "commId 0x0123456789abcdef - Init COMPLETE"]
    for c in range(channels):
        lines.append(f"Channel {c:02d}/0 : {gpu(before)} -> {gpu(me)} [receive] via {how(before, c)}")
        lines.append(f"Channel {c:02d}/0 : {gpu(me)} -> {gpu(after)} [send] via {how(after, c)}")
    lines += [f"Connected all rings, use ring PXN 0 GDR {int(gdr)}",
              f"comm 0x5622d469d370 rank {me} nranks {n} cudaDev {dev} busId f01000 - Destroy COMPLETE"]
    return "".join(f"{head} [{dev}] NCCL INFO {line}\n" for line in lines)
