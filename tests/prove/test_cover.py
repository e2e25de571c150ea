"""Which pairs are tried, and who is blamed for those that failed."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from fabrictool.prove.cover import Blame, Cell, Whose, blame, cover, possible, undirected
from tests.prove.paths import names


@pytest.mark.parametrize("count", range(2, 9))
def test_every_pair_both_ways_up_to_eight_nodes(count: int) -> None:
    cells = cover(names(count))
    assert set(cells) == set(permutations(names(count), 2))
    assert len(cells) == len(set(cells))
    assert undirected(cells) == possible(names(count))


@pytest.mark.parametrize("count", [9, 10, 11, 16, 17, 32, 99])
def test_beyond_every_node_speaks_to_and_hears_two_others(count: int) -> None:
    nodes = names(count)
    cells = cover(nodes)
    assert cells == cover(nodes)
    assert len(cells) == len(set(cells)) <= 4 * count
    assert {(b, a) for a, b in cells} == set(cells)
    for node in nodes:
        assert len({b for a, b in cells if a == node}) >= 2
        assert len({a for a, b in cells if b == node}) >= 2
        assert (node, node) not in cells


def test_nobody_to_speak_to() -> None:
    assert cover(()) == ()
    assert cover(("spark01",)) == ()


def split(count: int, bad: set[Cell]) -> tuple[Blame, ...]:
    cells = cover(names(count))
    assert bad <= set(cells)
    return blame([c for c in cells if c in bad], [c for c in cells if c not in bad])


def touching(count: int, node: str, side: int | None = None) -> set[Cell]:
    return {c for c in cover(names(count)) if (node in c if side is None else c[side] == node)}


@pytest.mark.parametrize("count", [3, 4, 8, 9, 16])
def test_one_cause_is_one_blame(count: int) -> None:
    one, two = names(count)[:2]
    for cells, want in (
            (set(cover(names(count))), (Whose.EVERY, "", "")), (touching(count, two), (Whose.NODE, two, "")),
            (touching(count, two, 1), (Whose.INTO, two, "")), (touching(count, two, 0), (Whose.OUT_OF, two, "")),
            ({(one, two), (two, one)}, (Whose.BOTH_WAYS, one, two)), ({(two, one)}, (Whose.ONE_WAY, two, one))):
        (found,) = split(count, cells)
        assert (found.whose, found.node, found.peer) == want
        assert set(found.cells) == cells
    assert split(count, set()) == ()


def test_of_two_nodes_the_pair_is_named() -> None:
    assert [b.whose for b in split(2, {("spark01", "spark02"), ("spark02", "spark01")})] == [Whose.BOTH_WAYS]
    assert [b.whose for b in split(2, {("spark02", "spark01")})] == [Whose.ONE_WAY]


def test_who_fails_only_with_a_bad_node_is_not_blamed() -> None:
    """Node 1's neighbours in the covering set of nine are 2, 5, 6 and 9."""
    bad = set().union(*(touching(9, n) for n in ("spark02", "spark05", "spark06", "spark09")))
    assert {b.node for b in split(9, bad)} == {"spark02", "spark05", "spark06", "spark09"}


def test_a_bad_node_and_a_bad_pair_beside_it() -> None:
    found = split(6, touching(6, "spark02") | {("spark04", "spark05")})
    assert [(b.whose, b.node, b.peer) for b in found] == [(Whose.NODE, "spark02", ""), (Whose.ONE_WAY, "spark04", "spark05")]


@pytest.mark.parametrize("seed", range(30))
def test_every_bad_cell_is_told_once_and_no_good_one(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 12)
    bad = {c for c in cover(names(count)) if rng.random() < rng.choice((0.05, 0.3, 0.8))}
    told = [c for b in split(count, bad) for c in b.cells]
    assert sorted(told) == sorted(bad)
