"""What a communicator tells the log, in the library's order and words. Nothing here decides anything."""

from __future__ import annotations

from collections.abc import Sequence

from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.nets import Layout, Net
from fabrictool.lab.nodeside.nccl.rdmanet import RdmaNet
from fabrictool.lab.nodeside.nccl.ring import Edge, from_zero, order

COMM_ID = "0x5b1ab00000000001"  # really a random number, the same on all ranks
STAND_IN = "stand-in of a fabrictool lab: no GPU, no RDMA hardware"


class Words:
    """One process's part of the log."""

    def __init__(self, log: Log, net: Net, ranks: int) -> None:
        self.log, self.net, self.ranks = log, net, ranks
        self._comms: dict[int, str] = {}
        self._connections: dict[int, int] = {}
        self._service = log.pid + 8  # thread ids of the proxies
        log.info("ALL", STAND_IN)

    def _comm(self, rank: int, gpu: int, bus: str) -> str:
        self._comms.setdefault(rank, f"0x{0x55d000000000 + self.log.pid * 0x10000 + rank * 0x100:x}")
        number = int(bus.replace(":", "") + "0", 16)
        return f"ncclCommInitRankConfig comm {self._comms[rank]} rank {rank} nranks {self.ranks} cudaDev {gpu} nvmlDev {gpu} " \
               f"busId {number:x} commId {COMM_ID}"

    def start(self, rank: int, gpu: int, bus: str) -> None:
        self.log.info("INIT", f"{self._comm(rank, gpu, bus)} - Init START", gpu)

    def complete(self, layout: Layout, channels: int, gpus: Sequence[int], first: int) -> None:
        log = self.log
        log.info("INIT", "RAS client listening socket at 127.0.0.1<28028>")
        log.info("BOOTSTRAP", "Bootstrap timings total 0.004829 (create 0.000057, send 0.000127, recv 0.003212, ring 0.000050, "
                              "delay 0.000001)")
        self._gpu_direct()
        hosts = [p.host for p in layout.places]
        nodes = list(dict.fromkeys(hosts))
        for i, gpu in enumerate(gpus):
            rank = first + i
            local = hosts[:rank].count(hosts[rank])
            log.info("INIT", f"comm {self._comms[rank]} rank {rank} nRanks {self.ranks} nNodes {len(nodes)} localRanks "
                             f"{hosts.count(hosts[rank])} localRank {local} MNNVL 0", gpu)
            if rank == 0 and self.ranks > 1:
                for channel in range(channels):
                    ring = " ".join(str(r) for r in from_zero(order(hosts, channel)))
                    log.info("INIT|GRAPH", f"Channel {channel:02d}/{channels:02d} : {ring}", gpu)
            trees = " ".join(f"[{c}] {_tree(rank, self.ranks, c >= channels // 2)}" for c in range(channels))
            log.info("INIT|GRAPH", f"Trees {trees}", gpu)
            log.info("INIT", "P2P Chunksize set to 131072", gpu)
        log.info("INIT|NET", "PROFILER/Plugin: Could not find: libnccl-profiler.so")
        log.info("INIT", "Check P2P Type isAllDirectP2p 1 directMode 0 isAllCudaP2p 1")
        for gpu in gpus:
            log.info("INIT|NET", f"[Proxy Service] Device {gpu} CPU core 0", gpu, self._service)
            log.info("INIT|NET", f"[Proxy Service UDS] Device {gpu} CPU core 0", gpu, self._service + 1)
        log.info("INIT", "TUNER/Plugin: Could not find: libnccl-tuner.so")
        log.info("INIT", "threadThresholds 8/8/64 | 16/8/64 | 512 | 512")
        log.info("INIT", f"{channels} coll channels, {channels} collnet channels, 0 nvls channels, {channels} p2p channels, "
                         "2 p2p channels per peer")
        if first == 0:
            log.info("INIT", "CC Off, workFifoBytes 1048576")
        for i, gpu in enumerate(gpus):
            place = layout.places[first + i]
            log.info("INIT", f"{self._comm(first + i, gpu, place.bus)} - Init COMPLETE", gpu)
            log.info("INIT", f"Init timings - ncclCommInitRankConfig: rank {first + i} nranks {self.ranks} total 0.33 (kernels 0.25, "
                             "alloc 0.05, bootstrap 0.01, allgathers 0.00, topo 0.01, graphs 0.00, connections 0.00, rest 0.00)", gpu)

    def _gpu_direct(self) -> None:
        if isinstance(self.net, RdmaNet):
            for i, adapter in enumerate(self.net.found):
                state = "Enabled" if self.net.gpu_direct else "Disabled"
                self.log.info("INIT|NET", f"NET/IB : GPU Direct RDMA {state} for HCA {i} '{adapter.name}'")

    def receives(self, layout: Layout, every: Sequence[Edge], first: int, count: int) -> None:
        self.log.info("INIT|NET", "[Proxy Progress] Device 0 CPU core 0", 0, self._service + 2)
        self._edges(layout, [e for e in every if first <= e.target < first + count], "receive")

    def sends(self, layout: Layout, every: Sequence[Edge], first: int, count: int) -> None:
        self._edges(layout, [e for e in every if first <= e.source < first + count], "send")

    def _edges(self, layout: Layout, edges: Sequence[Edge], way: str) -> None:
        for edge in edges:
            source, target = layout.places[edge.source], layout.places[edge.target]
            here = source if way == "send" else target
            head = f"Channel {edge.channel:02d}/0 : {source.rank}[{source.gpu}] -> {target.rank}[{target.gpu}]"
            if source.host != target.host:
                number = self._connections.get(here.rank, 0)
                self._connections[here.rank] = number + 1
                self.log.info("NET|INIT", f"New proxy {'send' if way == 'send' else 'recv'} connection {number} from local rank 0, "
                                          "transport 2", here.gpu, self._service)
                self.log.info("NET|INIT", f"Connected to proxy localRank 0 -> connection 0x7f62c0000d{number % 256:02x}", here.gpu)
                self.log.info("INIT|NET", f"{head} [{way}] via NET/{self.net.tail(edge)}", here.gpu)
            elif way == "send":
                self.log.info("INIT|P2P", f"{head} via P2P/CUMEM", here.gpu)

    def rings(self) -> None:
        direct = int(isinstance(self.net, RdmaNet) and self.net.gpu_direct)
        self.log.info("INIT", f"Connected all rings, use ring PXN 0 GDR {direct}")

    def gone(self, rank: int, gpu: int, bus: str) -> None:
        number = int(bus.replace(":", "") + "0", 16)
        self.log.info("INIT", f"comm {self._comms[rank]} rank {rank} nranks {self.ranks} cudaDev {gpu} busId {number:x} - Destroy COMPLETE",
                      gpu)

    def closing(self) -> None:
        self.log.info("ALL", "ENV/Plugin: Closing env plugin ncclEnvDefault")


def _tree(rank: int, ranks: int, mirrored: bool) -> str:
    """`down/down/down->rank->up`, of a chain; the second half of the channels has it the other way round."""
    before, after = rank - 1, rank + 1 if rank + 1 < ranks else -1
    up, down = (after, before) if mirrored else (before, after)
    return f"{down}/-1/-1->{rank}->{up}"
