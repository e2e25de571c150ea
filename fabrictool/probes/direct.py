"""Ranks started by us on every node: no MPI, no SSH between nodes. The program is our own, in the user's Python or container."""

from __future__ import annotations

from fabrictool.probes.launch import File, Job, Seat, Start

PROGRAM = "allreduce.py"


class Direct:
    """All ranks of a node are one start: they share its unit, or its container. Rank 0's node holds the store at which the ranks meet."""

    name = "direct"
    program = "torch"

    def files(self, job: Job) -> tuple[File, ...]:
        return ()

    def starts(self, job: Job, run: str) -> tuple[Start, ...]:
        program = _program(job)
        return tuple(Start(s.node, str(s.first), job.wrapped("ranks", run, *_place(job, s)), program, job.image) for s in job.seats)


def _place(job: Job, seat: Seat) -> tuple[str, ...]:
    return str(job.limits.node_s), str(seat.first), str(seat.ranks), str(job.ranks), job.seats[0].address, str(job.port)


def _program(job: Job) -> tuple[str, ...]:
    return (job.tool.program, "-u", job.path(PROGRAM), "--size", str(job.size_bytes), "--warmup", str(job.warmup),
            "--iterations", str(job.iterations), "--verify", str(job.verify),
            "--start", str(job.limits.start_s), "--deadline", str(job.limits.launcher_s))
