"""Ranges in names and node sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.spec.ranges import MAX_NAMES, RangeError, expand, fold, has_range, in_order, natural, node_set, split


@pytest.mark.parametrize(("text", "want"), [
    ("r[0-3]", "r0 r1 r2 r3"), ("mlx5_[0-1,6-7]", "mlx5_0 mlx5_1 mlx5_6 mlx5_7"), ("n[08-11]", "n08 n09 n10 n11"),
    ("n[8-11]", "n8 n9 n10 n11"),
    ("a[1-2]b[0-1]c", "a1b0c a1b1c a2b0c a2b1c"), ("n[0-6/2]", "n0 n2 n4 n6"), ("10.20.[0-1].0/24", "10.20.0.0/24 10.20.1.0/24"),
    ("plain", "plain"), ("n[7]", "n7"), ("n[2,1]", "n2 n1"), ("docker:x[a-b]", "docker:x[a-b]"),
])
def test_expand_keeps_the_written_order(text: str, want: str) -> None:
    assert expand(text) == tuple(want.split())


@pytest.mark.parametrize(("text", "why"), [
    ("n[3-1]", "runs backwards"), (f"n[1-{MAX_NAMES + 1}]", f"more than {MAX_NAMES}"),
    ("n[0-99][0-99]", f"more than {MAX_NAMES}"),
    ("n[0-99999999999999999999]", "digits"), ("n[1-5/0]", "step of 0"), ("n[010-99]", "as many digits"),
])
def test_what_is_no_range_is_refused(text: str, why: str) -> None:
    with pytest.raises(RangeError, match=why):
        expand(text)


def test_node_sets_are_in_natural_order() -> None:
    assert node_set("n10,n9,gpu[01-03]") == ("gpu01", "gpu02", "gpu03", "n9", "n10")
    assert node_set("n[1-4]!n2") == ("n1", "n3", "n4")
    assert node_set("n[1-4]&n[3-9]") == ("n3", "n4")
    assert node_set("n1 n2") == ("n1", "n2")


@pytest.mark.parametrize("text", ["", ",", "n[1", "n]1[", "@all", "-n", "n1!n1", "a b;c", "n[a-b]", "n[1-99999]", "$(x)", "n[]",
                                  "%s"])
def test_what_is_no_node_set_is_refused(text: str) -> None:
    with pytest.raises(RangeError):
        node_set(text)


def test_in_order_and_split() -> None:
    assert in_order("b[2,1],a") == ("b2", "b1", "a")
    assert split("a[1,2], b c") == ("a[1,2]", "b", "c")


@given(st.sets(st.integers(0, 2000), min_size=1, max_size=30))
def test_fold_and_node_set_are_inverse(numbers: set[int]) -> None:
    names = natural(f"gpu{n:04d}" for n in numbers)
    assert node_set(fold(names)) == names


@given(st.text(alphabet="n[]0123456789,-/! &^@ab", max_size=24))
def test_any_text_is_a_node_set_or_a_range_error(text: str) -> None:
    for f in (node_set, in_order, expand):
        try:
            names = f(text)
        except RangeError:
            continue
        assert 0 < len(names) <= MAX_NAMES or f is not node_set
        assert f is expand or not any(has_range(n) for n in names)
