"""Help for tests that run a collective on a lab: the processes of a job, started by hand on their nodes, and what they moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fabrictool.lab.handle import Lab
from fabrictool.lab.inside import Done

DEVICES = ("rocep1s0f0", "roceP2p1s0f0")
INTERFACES = ("enp1s0f0np0", "enP2p1s0f0np0")
PORT = 29500
LOGGED = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH", "NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p.log",
          "NCCL_SOCKET_IFNAME": INTERFACES[0], "NCCL_ALGO": "Ring"}


@dataclass(frozen=True)
class Job:
    """How each rank ended, and the NCCL log of each."""

    ranks: tuple[Done, ...]
    logs: tuple[str, ...]

    @property
    def out(self) -> str:
        return self.ranks[0].out

    @property
    def busbw(self) -> list[float]:
        """Of both placements of every row."""
        rows = [line.split() for line in self.out.splitlines() if line[:1] == " " and len(line.split()) == 13]
        return [float(row[i]) for row in rows for i in (7, 11)]


def job(lab: Lab, nodes: Sequence[str], words: str, env: Mapping[str, str] | None = None, limit_s: int = 30,
        each: Mapping[str, Mapping[str, str]] | None = None) -> Job:
    """`all_reduce_perf WORDS`, one rank a node, met at the first node's management address. `each`: more environment for one node."""
    head = next(n for n in lab.plan.nodes if n.name == nodes[0]).management.address.partition("/")[0]

    def one(rank: int, node: str) -> Done:
        more = {"MASTER_ADDR": head, "MASTER_PORT": str(PORT), "WORLD_SIZE": str(len(nodes)), "RANK": str(rank), **LOGGED, **(env or {}),
                **(each or {}).get(node, {})}
        pairs = [f"{k}={v}" for k, v in more.items()]
        argv = ["env", *pairs, "timeout", "-k", "1", str(limit_s), "all_reduce_perf", *words.split()]
        return lab.exec(node, argv, timeout_s=limit_s + 10)

    for node in nodes:
        lab.exec(node, ["sh", "-c", "rm -f /tmp/nccl.*.log"])
    with ThreadPoolExecutor(len(nodes)) as pool:
        ended = tuple(pool.map(one, range(len(nodes)), nodes))
    return Job(ended, tuple(lab.exec(node, ["sh", "-c", "cat /tmp/nccl.*.log"]).out for node in nodes))


def counter(lab: Lab, node: str, path: str) -> int:
    return int(lab.exec(node, ["cat", path]).out)


def sent(lab: Lab, node: str, device: str) -> int:
    """Bytes that an RDMA device says it sent: 4-byte words in sysfs."""
    return 4 * counter(lab, node, f"/sys/class/infiniband/{device}/ports/1/counters/port_xmit_data")


def received(lab: Lab, node: str, device: str) -> int:
    return 4 * counter(lab, node, f"/sys/class/infiniband/{device}/ports/1/counters/port_rcv_data")


def by_kernel(lab: Lab, node: str, interface: str) -> int:
    return counter(lab, node, f"/sys/class/net/{interface}/statistics/tx_bytes")
