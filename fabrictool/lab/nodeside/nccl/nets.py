"""What a communicator's network has to be able to do, and what both kinds need to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fabrictool.lab.nodeside.nccl.ring import Edge


@dataclass(frozen=True)
class Place:
    """One rank: its process, host and GPU, and the GPU's PCI address."""

    rank: int
    process: int
    host: str
    gpu: int
    bus: str
    model: str


@dataclass(frozen=True)
class Layout:
    """Who is where, seen from one process. `edges`: those that leave a node."""

    process: int
    places: Sequence[Place]
    edges: Sequence[Edge]

    def leaving(self) -> list[Edge]:
        return [e for e in self.edges if self.places[e.source].process == self.process]

    def arriving(self) -> list[Edge]:
        return [e for e in self.edges if self.places[e.target].process == self.process]


class Net(Protocol):
    """A transport between nodes. Every method may raise NcclError."""

    name: str

    def tail(self, edge: Edge) -> str:
        """What a channel line says after `via NET/`."""

    def offer(self) -> Any:
        """What the others have to know before they connect."""

    def connect(self, layout: Layout, offers: Sequence[Any]) -> None:
        """Open every connection of this process."""

    def gbytes(self, layout: Layout) -> float:
        """GB/s that this node puts on the wire, with its part of the connections."""

    def move(self, sizes: Mapping[Edge, int], calls: int) -> Any:
        """Send and receive so many bytes on each edge of this process, `calls` collectives of them. What the others have to know."""

    def heard(self, words: Sequence[Any]) -> None:
        """What `move` told, of every process."""

    def close(self) -> None:
        """Let go of everything."""
