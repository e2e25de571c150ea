"""Rings: in which order the ranks pass their data on, and how many bytes each hands to the next one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """One rank hands data to the next one of a channel."""

    channel: int
    source: int
    target: int


def order(hosts: Sequence[str], channel: int) -> list[int]:
    """Ranks of one channel's ring: node by node. Within a node each channel starts at another rank, so that each has its turn at the
    node's door. `hosts`: of each rank."""
    found: list[int] = []
    for host in dict.fromkeys(hosts):
        ranks = [r for r, h in enumerate(hosts) if h == host]
        turn = channel % len(ranks)
        found += ranks[turn:] + ranks[:turn]
    return found


def from_zero(ranks: Sequence[int]) -> list[int]:
    """The same ring, beginning with rank 0."""
    at = list(ranks).index(0)
    return [*ranks[at:], *ranks[:at]]


def edges(hosts: Sequence[str], channels: int) -> list[Edge]:
    """Every edge of every ring; none for a single rank."""
    if len(hosts) < 2:
        return []
    found = []
    for channel in range(channels):
        ring = order(hosts, channel)
        found += [Edge(channel, a, b) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    return found


def passed_on(count: int, ranks: int, place: int, size: int) -> int:
    """Bytes that the rank at `place` of a ring hands on in one AllReduce of `count` elements of `size` bytes: n - 1 steps that add up
    and n - 1 that spread the sum, one of n blocks each; the first blocks have the elements that are left over."""
    blocks = [count // ranks + (b < count % ranks) for b in range(ranks)]
    adding = [blocks[(place - step) % ranks] for step in range(ranks - 1)]
    spreading = [blocks[(place + 1 - step) % ranks] for step in range(ranks - 1)]
    return (sum(adding) + sum(spreading)) * size


def share(total: int, channels: int, channel: int) -> int:
    """One channel's part of a number of elements."""
    return total // channels + (channel < total % channels)
