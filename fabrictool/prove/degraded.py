"""A NIC that is far too slow although link and PCIe look fine: told only by traffic that it carried. Pure.

A ring AllReduce moves the same bytes over every node's rails in the same time, so one slow NIC slows all of them: what is slow
everywhere has a cause that this run cannot place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictool.model import Code, Finding, Subject, SubjectKind
from fabrictool.room import About
from fabrictool.values import Rate

# A DGX Spark in this state carries 8 to 25 Gb/s on a port of 200 Gb/s, each of its two functions half of that or all
# (NVIDIA/dgx-spark-playbooks#108). As shares of the port's rate, so that other ports can be told too.
LEAST, MOST = 4 / 200, 25 / 200
REMEDY = "power the node off and on (a power cycle, not a reboot); look for power, thermal and firmware messages in the kernel's log"


@dataclass(frozen=True, slots=True)
class Carried:
    """What one function sent while the run lasted. `healthy`: link and PCIe of the function are as they should be."""

    subject: Subject
    gbit_per_s: float
    port: Rate
    healthy: bool

    @property
    def node(self) -> str:
        return self.subject.nodes[0]

    @property
    def slow(self) -> bool:
        return LEAST <= self.gbit_per_s / self.port.gbit_per_s <= MOST

    @property
    def wanted(self) -> str:
        return f"more than {MOST * self.port.gbit_per_s:.0f} Gb/s on a port of {self.port}"


def judge(carried: Sequence[Carried], path: str) -> Iterator[Finding]:
    """Functions that carried enough pass. Slow ones with a broken link or PCIe have their own finding, and none here."""
    suspects = [c for c in carried if c.slow and c.healthy]
    for one in carried:
        if not one.slow and one.gbit_per_s / one.port.gbit_per_s > MOST:
            yield About(Code.NIC_DEGRADED, one.subject, path, "").ok(f"{one.gbit_per_s:.1f} Gb/s", one.wanted)
    if not suspects:
        return
    nodes, all_nodes = _nodes(suspects), _nodes(carried)
    fewest = f"{min(c.gbit_per_s for c in suspects):.1f} Gb/s"
    if len(nodes) == len(all_nodes) > 1:
        rails = {c.subject.rail for c in suspects}
        every = rails == {c.subject.rail for c in carried}
        subject = Subject(SubjectKind.FLEET, all_nodes) if every or len(rails) > 1 else Subject(SubjectKind.RAIL, all_nodes,
                                                                                               rail=next(iter(rails)))
        yield About(Code.NIC_DEGRADED, subject, path, "").fail(
            f"{fewest} on {'every rail' if every else f'rail {next(iter(rails))}'} of every node", suspects[0].wanted,
            "as slow as a NIC in a degraded state, with link and PCIe as they should be; in a ring one such NIC slows all nodes, so this "
            "run does not tell whose it is", remedy=f"{_search(len(nodes))}; then {REMEDY}")
        return
    for one in suspects:
        yield About(Code.NIC_DEGRADED, one.subject, path, "").fail(
            f"{one.gbit_per_s:.1f} Gb/s", one.wanted, "the NIC is in a degraded state: link and PCIe look as they should be", remedy=REMEDY)


def _search(nodes: int) -> str:
    """How to find the one NIC. A run over two nodes cannot be made smaller."""
    if nodes > 2:
        return "find it by runs over two nodes (--limit A,B)"
    return "find it by a run of each of the two with a third node, where the spec has one; or compare the kernel's logs of both"


def _nodes(carried: Iterable[Carried]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.node for c in carried))


def rates(busbw_gbytes_per_s: float, sent_bytes: Mapping[str, int]) -> Mapping[str, float]:
    """Function -> Gb/s that it sent: in a ring each node sends at the bus bandwidth, and its functions share that as their bytes do."""
    total = sum(sent_bytes.values())
    return {name: busbw_gbytes_per_s * 8 * n / total for name, n in sent_bytes.items()} if total > 0 else {}
