"""Where the spec's functions and the bootstrap interface of a node can be reached, as read on the node itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fabrictool import ports
from fabrictool.model import Observed
from fabrictool.prove.case import Case
from fabrictool.prove.cover import ALL_PAIRS_UP_TO, cover
from fabrictool.snapshot import Snapshot
from fabrictool.spec import NodeSpec


def rail_functions(want: NodeSpec, snap: Snapshot) -> dict[str, ports.BoundFunction]:
    """Rail -> the node's function on it. Of two on one rail (which lint warns about) the first."""
    out: dict[str, ports.BoundFunction] = {}
    for fn in ports.bind(want, ports.read(snap)):
        out.setdefault(fn.want.rail, fn)
    return out


def rail_addresses(want: NodeSpec, snap: Snapshot) -> dict[str, Observed[str]]:
    """Rail -> the node's IPv4 address on it."""
    return {rail: ports.rail_address(fn, want) for rail, fn in rail_functions(want, snap).items()}


def bootstrap_address(want: NodeSpec, snap: Snapshot) -> Observed[str]:
    """The bootstrap interface's address."""
    return ports.bootstrap_address(want, ports.read(snap))


def rail_nodes(wants: Mapping[str, NodeSpec]) -> dict[str, tuple[str, ...]]:
    """Rail -> the nodes that the spec puts on it, both in the spec's order."""
    out: dict[str, list[str]] = {}
    for name, want in wants.items():
        for rail in dict.fromkeys(fn.rail for port in want.ports.values() for fn in port.functions):
            out.setdefault(rail, []).append(name)
    return {rail: tuple(nodes) for rail, nodes in out.items()}


def named(nodes: Iterable[str], most: int = 12) -> str:
    """Names for a sentence."""
    every = list(nodes)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def untried(nodes: Sequence[str], what: str) -> str:
    """The pairs that the covering set leaves out, for people; "" for none. All are named up to ten nodes, which leave 15."""
    tried = {frozenset(cell) for cell in cover(nodes)}
    left = [f"{a}-{b}" for i, a in enumerate(nodes) for b in nodes[i + 1:] if frozenset((a, b)) not in tried]
    if not left:
        return ""
    return (f"{what} between {len(left)} pairs of nodes that were not tried (above {ALL_PAIRS_UP_TO} nodes each one is tried with its "
            f"neighbours in the spec and with the one half the list away): {named(left, 24)}")


def not_selected(case: Case) -> str:
    """What a run over some of the site's nodes leaves open; "" when all were selected."""
    return f"anything about {named(sorted(case.fleet.left_out))}: not selected" if case.fleet.left_out else ""
