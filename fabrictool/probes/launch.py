"""Starting one AllReduce on several nodes: what a launcher is told, and what it answers. Pure: facts in, command lines out.

A launcher decides which nodes have something to start, and with which words. What surrounds every start is the same for all of them
(fabrictool/node/rank.sh): the run's id, a unit or a session of its own, the time limit, the environment.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fabrictool.probes.limits import Limits

RUN_VARIABLE = "FABRICTOOL_RUN"  # everything that a run starts has it in its environment, with the run's id
LAUNCHER = "launcher"  # the number of a start that is no rank
ALGORITHM = "Ring"  # of gated runs: its bytes on the wire are known exactly, and its busbw is what leaves each node


@dataclass(frozen=True, slots=True)
class Seat:
    """One node's place in the run: `ranks` GPUs, numbered from `first`. `address`, `network`: of its bootstrap interface,
    `interface`."""

    node: str
    first: int
    ranks: int
    address: str
    network: str
    interface: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """What was found on the launching node. `program`: all_reduce_perf, or the Python that runs our own program. `mpi`: the first number
    of Open MPI's version. `options`: the option letters that the program knows. `pmi`: what to ask srun for; `gres`: Slurm hands out
    GPUs."""

    program: str
    launcher: str = ""
    mpi: int = 0
    options: str = ""
    pmi: str = ""
    gres: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A text for the run's folder on every node."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Job:
    """All that a launcher may know. `folder`: the run's folder, the same on every node. `seats` in rank order; `port`: free on the first
    node; `image`: the container's, "" for none."""

    run_id: str
    folder: str
    seats: tuple[Seat, ...]
    tool: Tool
    limits: Limits
    size_bytes: int
    warmup: int = 5
    iterations: int = 20
    verify: int = 1
    port: int = 0
    image: str = ""

    @property
    def ranks(self) -> int:
        return sum(s.ranks for s in self.seats)

    @property
    def rank_nodes(self) -> tuple[str, ...]:
        return tuple(s.node for s in self.seats for _ in range(s.ranks))

    def path(self, *parts: str) -> str:
        return "/".join((self.folder, *parts))

    def wrapped(self, verb: str, run: str, *more: str) -> tuple[str, ...]:
        """What runs inside, with the environment that ranks get. By `sh`: /run may be mounted noexec."""
        return ("sh", self.path("ranks.sh"), verb, self.folder, run, *more)


@dataclass(frozen=True, slots=True)
class Start:
    """One start on one node. `number` names its unit (ft-RUN-NUMBER); `inside`: what surrounds the program; `program`: what somebody would
    type; `image`: in this container."""

    node: str
    number: str
    inside: tuple[str, ...]
    program: tuple[str, ...]
    image: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        return (*self.inside, *self.program)


class Launcher(Protocol):
    """`name` as in the spec; `program`: nccl-tests or torch, as prove.facts spells it."""

    @property
    def name(self) -> str: ...

    @property
    def program(self) -> str: ...

    def files(self, job: Job) -> tuple[File, ...]:
        """What it needs on the nodes, besides what every run has there."""

    def starts(self, job: Job, run: str) -> tuple[Start, ...]:
        """What has to be started for the run called `run`. The first node's comes first."""


def nccl_tests(job: Job, run: str) -> tuple[str, ...]:
    """all_reduce_perf with one size. -a 3: the slowest rank's time, so that a straggler shows; -J: a file that is not there yet, as
    nccl-tests keeps old ones. Options that this build does not know are left out: it would print its usage and end with 0."""
    size = str(job.size_bytes)
    words = ["-b", size, "-e", size, "-g", "1", "-n", str(job.iterations), "-w", str(job.warmup), "-c", str(job.verify)]
    more = {"a": "3", "T": str(job.limits.program_s), "J": job.path(run, "result.json")}
    for letter, value in more.items():
        if letter in job.tool.options:
            words += [f"-{letter}", value]
    return (job.tool.program, *words)


def networks(job: Job) -> str:
    """The bootstrap networks of all nodes, for lists of MPI: exactly as the interfaces have them. Open MPI reads a network with a slash as
    one of IPv4 only (btl_tcp_if_include): IPv6 goes by the name of the interface."""
    return ",".join(dict.fromkeys(s.interface if ":" in s.network else s.network for s in job.seats))


@dataclass(frozen=True, slots=True)
class Added:
    """The environment that the tool itself adds to one node's ranks; everything else is the consumer's.

    `pin`: the bootstrap interface, where the consumer names none. `network`: NCCL_NET of a control run. `sockets`: the interface that
    such a run is held to.
    """

    folder: str
    pin: str = ""
    network: str = ""
    sockets: str = ""

    def variables(self, run: str, gated: bool) -> Mapping[str, str]:
        """In the order in which they are told."""
        interface = self.sockets or self.pin
        found = {
            "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH",
            # %h and %p: NCCL empties the file when it opens it, so ranks must not share one.
            "NCCL_DEBUG_FILE": f"{self.folder}/{run}/%h.%p.log",
            "NCCL_ALGO": ALGORITHM if gated else "",
            "NCCL_NET": self.network,
            "NCCL_SOCKET_IFNAME": f"={interface}" if interface else "",
        }
        return {k: v for k, v in found.items() if v}


def exports(variables: Mapping[str, str]) -> str:
    """Lines that a shell reads."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
