"""Jobs for tests of launchers: four Sparks with one GPU each, or two nodes with eight."""

from __future__ import annotations

from fabrictool.probes.launch import Job, Seat, Tool
from fabrictool.probes.limits import Limits

RUN_ID = "20261129T200000Z-0123abcd"
FOLDER = f"/run/fabrictool/{RUN_ID}"
NCCL_TESTS = Tool("/usr/bin/all_reduce_perf", "mpirun", mpi=4, options="tgbeifnmNpcordzyTGCSJaRxDVMuIKh")
PYTHON = Tool("/opt/venv/bin/python")


def seats(nodes: int = 4, gpus: int = 1) -> tuple[Seat, ...]:
    return tuple(Seat(f"spark{n + 1:02d}", n * gpus, gpus, f"10.10.1.{11 + n}", "10.10.1.0/24") for n in range(nodes))


def job(tool: Tool = NCCL_TESTS, nodes: int = 4, gpus: int = 1, image: str = "", limits: Limits | None = None) -> Job:
    return Job(RUN_ID, FOLDER, seats(nodes, gpus), tool, limits or Limits(120, 80, 200, 215, 230, 290), 256 << 20, port=41_000, image=image)


def option(argv: tuple[str, ...], name: str) -> str:
    """The word after `name`; AssertionError when it is not there exactly once."""
    assert argv.count(name) == 1, argv
    return argv[argv.index(name) + 1]
