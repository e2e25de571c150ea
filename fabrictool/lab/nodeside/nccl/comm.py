"""A communicator: from the first connection to the last byte, for all ranks of this process."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fabrictool.lab.nodeside.capacity import UNIFIED, gpu_bus
from fabrictool.lab.nodeside.nccl import ring
from fabrictool.lab.nodeside.nccl.bootstrap import Ring, Root
from fabrictool.lab.nodeside.nccl.choose import bootstrap_interface, network
from fabrictool.lab.nodeside.nccl.device import Gpu, Hardware
from fabrictool.lab.nodeside.nccl.errors import INVALID_USAGE, NcclError
from fabrictool.lab.nodeside.nccl.group import Group
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.nets import Layout, Net, Place
from fabrictool.lab.nodeside.nccl.params import AT_START, Params
from fabrictool.lab.nodeside.nccl.ring import Edge
from fabrictool.lab.nodeside.nccl.words import Words

SOCKET_CHANNELS, IB_CHANNELS = 2, 16
ALGORITHMS = ("tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat", "allreduce", "allgather", "reducescatter")
BATCH_S = 0.25  # how often the counters move
LATENCY_S = 0.5e-6  # of one hop between nodes; small, so that the small buffers that labs use fill the ports as large ones do
INSIDE_GBYTES = 350.0  # GB/s between the GPUs of one node


@dataclass(frozen=True)
class Timing:
    """Of one row's loop: microseconds of each call, the slowest rank's."""

    per_call_us: tuple[float, ...]

    @property
    def mean_us(self) -> float:
        return sum(self.per_call_us) / len(self.per_call_us)


class Comm:
    """`gpus`: GPU numbers of this process's ranks, which are ranks `first` and following of `group.size * len(gpus)`."""

    def __init__(self, group: Group, gpus: Sequence[int], gpu: Gpu, hardware: Hardware, log: Log, params: Params) -> None:
        self.group, self.gpu, self.hardware, self.log, self.params = group, gpu, hardware, log, params
        self.first = group.rank * len(gpus)
        self._gpus = gpus
        params.tell = log.info
        self._init()

    def _init(self) -> None:
        self.log.info("ALL", "ENV/Plugin: Could not find: libnccl-env.so")
        interface = bootstrap_interface(self.log, self.params)
        self.log.info("INIT", "cudaDriverVersion 13000")
        self.log.version(self.first == 0)
        unique = Root(interface, self.group.size).address if self.group.rank == 0 and self.group.size > 1 else None
        root = json.loads(self.group.broadcast(json.dumps(unique).encode()))
        self.hardware.ask("context")
        self.net: Net = network(interface, self.hardware, self.gpu, self.log, self.params)
        count = len(self._gpus) * self.group.size
        self.words = Words(self.log, self.net, count)
        for i, gpu in enumerate(self._gpus):
            self.words.start(self.first + i, gpu, self._bus(gpu))
        self.ring = Ring(self.group.rank, self.group.size, root or (), interface, self.log, self.params)
        mine = [asdict(Place(self.first + i, self.group.rank, self.log.host, g, self._bus(g), self.gpu.model))
                for i, g in enumerate(self._gpus)]
        places = [Place(**p) for said in self.ring.gather(mine) for p in said]
        channels = IB_CHANNELS if self.net.name == "IB" else SOCKET_CHANNELS
        self.params.look_at(AT_START)
        self._rings(places, channels)
        self._algorithm()
        self.words.complete(self.layout, channels, self._gpus, self.first)
        self._connected = False
        self._dice = random.Random(f"{self.gpu.seed} {count}")

    def _bus(self, gpu: int) -> str:
        return "000f:01:00" if self.gpu.model in UNIFIED else gpu_bus(gpu)[:-2]

    def _rings(self, places: Sequence[Place], channels: int) -> None:
        hosts = [p.host for p in places]
        every = ring.edges(hosts, channels)
        self.every = every
        self.channels = channels
        self.layout = Layout(self.group.rank, places, [e for e in every if hosts[e.source] != hosts[e.target]])
        self.nodes = len(set(hosts))

    def _algorithm(self) -> None:
        asked = self.params.text("NCCL_ALGO")
        if asked:
            self.params.said("ALGO", f"NCCL_ALGO set by environment to {asked}")
        for word in asked.lower().lstrip("^").replace(";", ",").replace(":", ",").split(","):
            if word and word not in ALGORITHMS:
                self.log.warn("graph/tuning.cc:104", f'Unrecognized element token "{asked}" when parsing "{asked}"')
                for where in ("graph/tuning.cc:427", "init.cc:1356", "init.cc:1582"):
                    self.log.trace(where, INVALID_USAGE)
                raise NcclError(INVALID_USAGE)
        # With several GPUs a node, NCCL takes a tree over two nodes: each node then sends the buffer once.
        self.tree = "ring" not in asked.lower() and self.nodes == 2 and len(self.layout.places) > 2

    # -- the collective --------------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """At the first collective. A neighbour with another kind of network is waited for, as long as it takes."""
        if self._connected:
            return
        said = self.ring.gather({"net": self.net.name, "offer": self.net.offer()})
        self.words.receives(self.layout, self.every, self.first, len(self._gpus))
        if {s["net"] for s in said} != {self.net.name}:
            self.words.sends(self.layout, self.every, self.first, len(self._gpus))
            while True:  # each side waits for words that the other one does not speak
                time.sleep(60)
        self.words.sends(self.layout, self.every, self.first, len(self._gpus))
        self.net.connect(self.layout, [s["offer"] for s in said])
        self.words.rings()
        self.rates = self.ring.gather([self.layout.places[self.first].host, self.net.gbytes(self.layout)])
        self._connected = True

    def gbytes(self) -> float:
        """Bus bandwidth (GB/s) before noise: that of the slowest node."""
        if self.nodes < 2:
            return INSIDE_GBYTES
        return min(float(rate) for _, rate in self.rates)

    def all_reduce(self, count: int, size: int, calls: int) -> Timing:
        """`calls` collectives of `count` elements of `size` bytes. NcclError; does not return when a rank is gone for good."""
        self.connect()
        ranks = len(self.layout.places)
        wire = 2 * (ranks - 1) / ranks * count * size
        noise = 1 + self.gpu.noise * (2 * self._dice.random() - 1)
        one_s = wire / (self.gbytes() * noise * 1e9) + LATENCY_S * (2 * self.nodes - 1)
        one_s *= ranks / 2 / (ranks - 1) if self.tree else 1  # a tree over two nodes sends less for the same
        done = 0
        while done < calls:
            batch = min(max(int(BATCH_S / one_s), 1), calls - done)
            began = time.monotonic()
            sizes = {e: self._bytes(e, count, size) * batch for e in (*self.layout.leaving(), *self.layout.arriving())}
            self.net.heard(self.ring.gather(self.net.move(sizes, batch)))
            done += batch
            time.sleep(max(one_s * batch - (time.monotonic() - began), 0))
        return Timing((one_s * 1e6,) * calls)

    def _bytes(self, edge: Edge, count: int, size: int) -> int:
        """What an edge carries in one call: a ring's part, or in a tree over two nodes the channel's share up and down."""
        part = ring.share(count, self.channels, edge.channel)
        ranks = len(self.layout.places)
        if self.tree:
            return part * size
        hosts = [p.host for p in self.layout.places]
        return ring.passed_on(part, ranks, ring.order(hosts, edge.channel).index(edge.source), size)

    def gather(self, mine: Any) -> list[Any]:
        """By process, over NCCL's own connections."""
        return self.ring.gather(mine)

    def destroy(self) -> None:
        self.net.close()
        for i, gpu in enumerate(self._gpus):
            self.words.gone(self.first + i, gpu, self._bus(gpu))
