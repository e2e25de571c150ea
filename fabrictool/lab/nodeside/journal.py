"""What the kernel of a lab node says: lines for the log that the node's state keeps. Each is [seconds since 1970, text]."""

from __future__ import annotations

from typing import Any

from fabrictool.lab.nodeside.state import Node

DRIVER = "580.159.04"


def boot(node: Node, when: float) -> list[list[Any]]:
    """What a healthy boot leaves, as far as anybody looks for it."""
    lines = ["Linux version 6.14.0-lab (stand-in of a fabrictool lab)"]
    lines += [f"mlx5_core {fn.bus}: firmware version: 28.45.4028" for fn in sorted(node.functions.values(), key=lambda f: f.bus)]
    lines.append(f"NVRM: loading NVIDIA UNIX Open Kernel Module  {DRIVER}  Release Build")
    return [[when, line] for line in lines]


def out_of_memory(pid: int, name: str, when: float, cgroup: str = "/") -> list[list[Any]]:
    """The kernel took a program because no memory was left."""
    lines = (
        f"{name} invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_ZERO|__GFP_COMP), order=0, oom_score_adj=0",
        f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg={cgroup},"
        f"task={name},pid={pid},uid=0",
        f"Out of memory: Killed process {pid} ({name}) total-vm:131072000kB, anon-rss:121634816kB, file-rss:4096kB, "
        "shmem-rss:0kB, UID:0 pgtables:240000kB oom_score_adj:0",
    )
    return [[when, line] for line in lines]
