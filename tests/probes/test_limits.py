"""The order of the limits, and how large a buffer may be."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.probes.limits import MIB, MOST_S, STEP_S, Limits, control_size, idle_s, sent_bytes, unified_size

GIB = 1 << 30


@given(st.integers(0, 10**15))
def test_each_layer_ends_before_the_next_one(sent: int) -> None:
    limits = Limits.of(sent)
    order = (limits.program_s, limits.launcher_s, limits.node_s, limits.ours_s, limits.guard_s)
    assert all(b - a >= STEP_S for a, b in itertools.pairwise(order))
    assert 60 <= limits.program_s <= MOST_S


def test_the_start_is_part_of_the_launchers_time() -> None:
    quick, usual = Limits.of(1000, 20), Limits.of(1000)
    assert (usual.start_s, usual.launcher_s) == (120, 180)
    assert (quick.start_s, quick.launcher_s) == (20, 80)


def test_a_slow_path_has_time_to_finish() -> None:
    """Four Sparks, 256 MiB, over a 2.5 Gb/s path: 19.7 GB take 79 s."""
    assert Limits.of(19_730_000_000).program_s == 78
    assert Limits.of(1000).program_s == 60


@pytest.mark.parametrize(("size", "calls", "ranks", "sent"), [
    (256 * MIB, 49, 4, 19_730_006_016),  # 49 * 268435456 * 1.5 (nccl.md 1.6)
    (256 * MIB, 49, 2, 13_153_337_344), (1 * GIB, 49, 16, 98_650_030_080), (1000, 49, 1, 0),
])
def test_bytes_of_a_ring(size: int, calls: int, ranks: int, sent: int) -> None:
    assert sent_bytes(size, calls, ranks) == sent


def test_unified_memory_bounds_the_buffer() -> None:
    assert unified_size(256 * MIB, 100 * GIB, 1) == 256 * MIB
    assert unified_size(1 * GIB, 4 * GIB + 5000, 1) == 512 * MIB
    assert unified_size(1 * GIB, 16 * GIB, 4) == 512 * MIB
    assert unified_size(256 * MIB, 3 * MIB, 1) == 0


@given(st.integers(1, 4 * GIB), st.integers(1, 60), st.integers(2, 64), st.integers(1 * MIB, 64 * GIB))
def test_a_control_run_stays_below_its_bytes(size: int, calls: int, ranks: int, most: int) -> None:
    taken = control_size(size, calls, ranks, most)
    assert 0 <= taken <= size
    assert sent_bytes(taken, calls, ranks) <= most


def test_the_idle_window_is_about_as_long_as_the_run() -> None:
    assert idle_s(19_730_006_016, 25e9) == 3
    assert idle_s(98_650_030_080, 25e9) == 9
    assert idle_s(10**13, 25e9) == 60
    assert idle_s(10**9, 0) == 6
