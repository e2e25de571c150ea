"""Which pairs of nodes are tried, and who is to blame when some of them fail. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

ALL_PAIRS_UP_TO = 8  # nodes: 56 directed pairs a rail; beyond, pairs would grow with the square of the nodes
Cell = tuple[str, str]  # who speaks, who is spoken to


def cover(nodes: Sequence[str]) -> tuple[Cell, ...]:
    """Directed pairs, each with its reverse. Every pair up to eight nodes. Beyond, each node with the next one of the list, and with the
    one half a list away: neighbours in a list often hang on one leaf switch, far ones do not. So every node speaks to, and is spoken
    to by, at least two others; the same list gives the same pairs."""
    n = len(nodes)
    steps = tuple(range(1, n)) if n <= ALL_PAIRS_UP_TO else (1, n // 2)
    found = {tuple(sorted((i, (i + step) % n))) for step in steps for i in range(n)}
    return tuple(cell for i, k in sorted(found) for cell in ((nodes[i], nodes[k]), (nodes[k], nodes[i])))


def possible(nodes: Sequence[str]) -> int:
    """How many undirected pairs there are."""
    return len(nodes) * (len(nodes) - 1) // 2


def undirected(cells: Iterable[Cell]) -> int:
    return len({frozenset(cell) for cell in cells})


class Whose(StrEnum):
    """What all that failed has in common."""

    EVERY = "every pair"  # configuration, or the switch
    NODE = "both directions of one node"
    INTO = "all towards one node"
    OUT_OF = "all from one node"
    BOTH_WAYS = "one pair, both ways"
    ONE_WAY = "one pair, one way"


@dataclass(frozen=True, slots=True)
class Blame:
    """`node`: the one to blame, or the speaking side of a pair whose other side is `peer`. EVERY names nobody. `cells`: what it covers."""

    whose: Whose
    node: str = ""
    peer: str = ""
    cells: tuple[Cell, ...] = ()


def blame(bad: Collection[Cell], good: Collection[Cell]) -> tuple[Blame, ...]:
    """`bad` told by the fewest words: a node is blamed when nothing of its direction passed and it failed with two others at least;
    those that failed only with a blamed node are not. Whatever is left are pairs."""
    left = list(dict.fromkeys(bad))
    if not left:
        return ()
    if not good and len({n for cell in left for n in cell}) > 2:
        return (Blame(Whose.EVERY, cells=tuple(left)),)
    blamed: list[Blame] = []
    passed = (frozenset(a for a, _ in good), frozenset(b for _, b in good))
    while (found := _worst(bad, left, passed)) is not None:
        blamed.append(found)
        left = [cell for cell in left if cell not in found.cells]
    return (*_needed(blamed), *_pairs(left))


Passed = tuple[frozenset[str], frozenset[str]]  # who was heard by somebody, who heard somebody


def _worst(bad: Collection[Cell], left: Sequence[Cell], passed: Passed) -> Blame | None:
    """The node that explains most of what is left, and at least two of it."""
    best, most = None, 1
    for node in dict.fromkeys(n for cell in left for n in cell):
        into, out_of = _line(bad, passed, node, 1), _line(bad, passed, node, 0)
        whose = Whose.NODE if into and out_of else Whose.INTO if into else Whose.OUT_OF
        found = Blame(whose, node, cells=tuple(dict.fromkeys((*into, *out_of))))
        explains = len(set(left).intersection(found.cells))
        if explains > most:
            best, most = found, explains
    return best


def _line(bad: Collection[Cell], passed: Passed, node: str, side: int) -> tuple[Cell, ...]:
    """All of one direction of `node` that failed, when none of it passed and at least two failed."""
    mine = tuple(cell for cell in bad if cell[side] == node)
    return mine if len(mine) > 1 and node not in passed[side] else ()


def _needed(blamed: Sequence[Blame]) -> tuple[Blame, ...]:
    """Without those that only spoke with others who are blamed; each cell is told once."""
    kept = list(blamed)
    for one in blamed:
        others = {cell for b in kept if b is not one for cell in b.cells}
        if others.issuperset(one.cells):
            kept.remove(one)
    told: set[Cell] = set()
    out = []
    for one in kept:
        out.append(replace(one, cells=tuple(c for c in one.cells if c not in told)))
        told |= set(one.cells)
    return tuple(out)


def _pairs(left: Sequence[Cell]) -> tuple[Blame, ...]:
    out = []
    for a, b in left:
        if (b, a) not in left:
            out.append(Blame(Whose.ONE_WAY, a, b, ((a, b),)))
        elif left.index((a, b)) < left.index((b, a)):
            out.append(Blame(Whose.BOTH_WAYS, a, b, ((a, b), (b, a))))
    return tuple(out)
