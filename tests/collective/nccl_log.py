"""NCCL logs for tests, after the grammar that the library's source prints. Every host, device and figure is made up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

CAPTURES = Path(__file__).resolve().parent.parent / "captures" / "nccl-tests"
COMM_ID = "0x5eed00000000c0de"


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Job:
    """`hosts` with `gpus` ranks each, one process per rank; `hcas` as `dev:port/layer`; each rank's channel c leaves by device
    `index(rank, c)`. `network`: NCCL's name for it; `gdr`: the tail of NET lines."""

    hosts: tuple[str, ...] = ("node-a", "node-b")
    gpus: int = 1
    hcas: tuple[str, ...] = ("rocep1s0f0:1/RoCE", "roceP2p1s0f0:1/RoCE")
    network: str = "IB"
    gdr: str = ""
    channels: int = 2
    oob: str = "enp1s0f0np0"
    version: str = "2.28.9+cuda13.0"
    env: tuple[str, ...] = ()
    using: str = ""  # instead of the list made of `hcas`
    extra: tuple[str, ...] = ()  # more lines of every rank before the channels
    local: str = "P2P/CUMEM"
    own_nic: bool = False  # rank r uses device r of its node
    index: int | None = None  # every channel uses this one
    nodes: int | None = None  # what NCCL counts
    comm_id: str = COMM_ID
    pxn: bool = False
    tree: bool = False
    tid: int = 7
    pids: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return len(self.hosts) * self.gpus

    def host(self, rank: int) -> str:
        return self.hosts[rank // self.gpus]

    def pid(self, rank: int) -> int:
        return self.pids[rank] if self.pids else 4100 + rank

    def on(self, **changes: object) -> Job:
        return replace(self, **changes)  # type: ignore[arg-type]

    def says(self, rank: int, text: str) -> str:
        return f"{self.host(rank)}:{self.pid(rank)}:{self.pid(rank) + self.tid} [{rank % self.gpus}] NCCL INFO {text}"

    def warns(self, rank: int, where: str, text: str, stamp: str = "2026-11-29 18:09:47") -> str:
        return f"\n[{stamp}] {self.host(rank)}:{self.pid(rank)}:{self.pid(rank) + self.tid} [{rank % self.gpus}] {where} NCCL WARN {text}"

    def device(self, rank: int, channel: int) -> int:
        if self.index is not None:
            return self.index
        return rank % self.gpus if self.own_nic else channel % max(1, len(self.hcas))

    def net(self, rank: int, channel: int) -> str:
        proxy = f"({rank - rank % self.gpus + (rank + 1) % self.gpus})" if self.pxn and self.gpus > 1 else ""
        return f"NET/{self.network}/{self.device(rank, channel)}{proxy}{self.gdr}"

    def edges(self, rank: int) -> Iterator[tuple[int, int]]:
        """(channel, next rank) in the ring, or the tree's both directions."""
        for c in range(self.channels):
            yield c, (rank + 1) % self.size
            if self.tree:
                yield c, (rank - 1) % self.size

    def start(self, rank: int) -> Iterator[str]:
        comm = f"comm 0x55{rank:010x} rank {rank}"
        tail = f"cudaDev {rank % self.gpus} nvmlDev {rank % self.gpus} busId f0{rank % self.gpus}1000 commId {self.comm_id}"
        address = f"192.0.2.{1 + rank // self.gpus}"
        yield f"Bootstrap: Using {self.oob}:{address}<0>"
        yield f"NCCL version {self.version}"
        yield from self.env
        yield from self._network(address)
        yield f"ncclCommInitRankConfig {comm} nranks {self.size} {tail} - Init START"
        nodes = len(self.hosts) if self.nodes is None else self.nodes
        yield f"{comm} nRanks {self.size} nNodes {nodes} localRanks {self.gpus} localRank {rank % self.gpus} MNNVL 0"
        if rank == 0:
            for c in range(self.channels):
                yield f"Channel {c:02d}/{self.channels:02d} : " + " ".join(map(str, range(self.size)))
        yield "P2P Chunksize set to 131072"

    def _network(self, address: str) -> Iterator[str]:
        if self.network == "Socket":
            yield "NET/IB : No device found."
            yield f"NET/IB : Using [RO]; OOB {self.oob}:{address}<0>"
            yield f"NET/Socket : Using [0]{self.oob}:{address}<0>"
        else:
            listed = self.using or " ".join(f"[{i}]{h}" for i, h in enumerate(self.hcas)) + " [RO]"
            yield f"NET/IB : Using {listed}; OOB {self.oob}:{address}<0>"
        yield f"Assigned NET plugin {self.network} to comm"
        yield f"Using network {self.network}"

    def complete(self, rank: int) -> str:
        return (f"ncclCommInitRankConfig comm 0x55{rank:010x} rank {rank} nranks {self.size} cudaDev {rank % self.gpus} nvmlDev "
                f"{rank % self.gpus} busId f0{rank % self.gpus}1000 commId {self.comm_id} - Init COMPLETE")

    def channel(self, rank: int) -> Iterator[str]:
        for src in range(self.size):
            for c, dst in self.edges(src):
                if rank not in (src, dst) or src == dst:
                    continue
                ends = f"Channel {c:02d}/0 : {src}[{src % self.gpus}] -> {dst}[{dst % self.gpus}]"
                if self.host(src) == self.host(dst):
                    if rank == src:
                        yield f"{ends} via {self.local}"
                elif rank == src:
                    yield f"{ends} [send] via {self.net(src, c)}"
                else:
                    yield f"{ends} [receive] via NET/{self.network}/{self.device(dst, c)}{self.gdr}"

    def rank(self, rank: int) -> list[str]:
        """One rank's whole log."""
        said = [*self.start(rank), *self.extra, self.complete(rank), *self.channel(rank),
                f"Connected all {'trees' if self.tree else 'rings, use ring PXN 0 GDR 1'}",
                f"comm 0x55{rank:010x} rank {rank} nranks {self.size} cudaDev {rank % self.gpus} busId f01000 - Destroy COMPLETE"]
        return [self.says(rank, text) for text in said]

    def log(self, *ranks: int) -> str:
        """The logs of these ranks (all without any), one after the other."""
        return "\n".join(line for r in (ranks or range(self.size)) for line in self.rank(r)) + "\n"

    def interleaved(self) -> str:
        logs = [self.rank(r) for r in range(self.size)]
        longest = max(map(len, logs))
        return "\n".join(lg[i] for i in range(longest) for lg in logs if i < len(lg)) + "\n"

    def node(self, host: str) -> str:
        """Everything that was logged on one host."""
        return self.log(*(r for r in range(self.size) if self.host(r) == host))


SPARK = Job()
H20_HCAS = tuple(f"mlx5_{i}:1/RoCE" for i in (0, 1, 2, 3, 6, 7, 8, 9))
H20 = Job(hosts=("gpu01", "gpu02"), gpus=8, hcas=H20_HCAS, gdr="/GDRDMA", channels=8, oob="bond1")
