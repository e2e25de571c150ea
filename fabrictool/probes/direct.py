"""Ranks started by us on every node: no MPI, no SSH between nodes. The program is our own, in the user's Python or container."""

from __future__ import annotations

from fabrictool.probes.launch import File, Job, Start

PROGRAM = "allreduce.py"


class Direct:
    """All ranks of a node are one start: they share its unit, or its container. Rank 0's node holds the store at which the ranks meet."""

    name = "direct"
    program = "torch"

    def files(self, job: Job) -> tuple[File, ...]:
        return ()

    def starts(self, job: Job, run: str) -> tuple[Start, ...]:
        return tuple(Start(s.node, str(s.first), self._inside(job, run, s.first, s.ranks), job.image) for s in job.seats)

    def _inside(self, job: Job, run: str, first: int, count: int) -> tuple[str, ...]:
        words = (str(job.limits.node_s), str(first), str(count), str(job.ranks), job.seats[0].address, str(job.port))
        program = (job.tool.program, "-u", job.path(PROGRAM), "--size", str(job.size_bytes), "--warmup", str(job.warmup),
                   "--iterations", str(job.iterations), "--verify", str(job.verify), "--deadline", str(job.limits.launcher_s))
        return (*job.wrapped("ranks", run, *words), *program)
