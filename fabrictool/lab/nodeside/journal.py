"""What the kernel of a lab node says: lines for the log that the node's state keeps."""

from __future__ import annotations

from typing import Any


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
