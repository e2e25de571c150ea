"""vLLM's line about KV transfers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.collective.kvtransfer import KvTransfer, parse

LINE = ("(APIServer pid=428) INFO 07-13 16:33:58 [metrics.py:103] KV Transfer metrics: Num successful transfers=4, "
        "Avg xfer time (ms)=1.381, P90 xfer time (ms)=2.601, Avg post time (ms)=0.672, P90 post time (ms)=0.801, Avg MB per transfer=2.25, "
        "Throughput (MB/s)=1629.549, Avg number of descriptors=72.0")


def test_a_line_with_all_its_figures() -> None:
    (got,) = parse(f"x\n{LINE}\r\n")
    assert got == KvTransfer(2, 4, 1.381, 2.601, 2.25, 1629.549, 72.0)
    assert (got.bytes, got.idle) == (4 * 2359296, False)


def test_nothing_was_transferred() -> None:
    zero = LINE.replace("=4,", "=0,").replace("2.25", "0").replace("1629.549", "0")
    assert [k.idle for k in parse(zero)] == [True]


@pytest.mark.parametrize("line", [
    LINE[:-30], LINE.replace("=4,", "=x,"), LINE.replace("=4,", "=4.5,"), LINE.replace("1629.549", "-1"), LINE.replace("Avg MB", "Avg GB"),
    "KV Transfer metrics: Num successful transfers=2, Avg xfer time=2.9ms, Throughput=596.6 MB/s", "KV Transfer metrics:", "",
    "KV Transfer metrics: Put keys=1, Get keys=2",
])
def test_a_line_that_is_cut_or_of_another_connector_is_left_out(line: str) -> None:
    assert parse(line) == ()


@given(st.text(max_size=200), st.integers(0, len(LINE)))
def test_any_text(noise: str, at: int) -> None:
    for got in parse(LINE[:at] + noise):
        assert got.transfers >= 0
