"""Numbers of evidence as people read them."""

from __future__ import annotations

import pytest

from fabrictool.report.numbers import spell


@pytest.mark.parametrize(("key", "value", "text"), [
    ("busbw_gbytes_per_s", 22.331, "busbw 22.33 GB/s"),
    ("slowest_function_gbit_per_s", 90.1, "slowest function 90.1 Gb/s"),
    ("expected_per_node_bytes", 19_730_006_016, "expected per node 19.73 GB"),
    ("expected_per_node_bytes", 339_738_624, "expected per node 339.7 MB"),
    ("mtu_bytes", 9000, "mtu 9000 bytes"),
    ("time_us", 905.459, "time 905.5 us"),
    ("idle_s", 5, "idle 5 s"),
    ("share_of_line_rate", 0.893, "share of line rate 0.893"),
    ("runs", 3, "runs 3"),
    ("proven", "exercised", "proven exercised"), ("proven_means", "so and so", "which means: so and so"),
    ("nccl_version", "2.28.9", "nccl version 2.28.9"),
])
def test_units_stand_behind_numbers(key: str, value: str | int | float, text: str) -> None:
    assert spell(key, value) == text
