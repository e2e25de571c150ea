"""Every command of the captures, replayed in order from the captured machine's state: same text, same stream, same status."""

from __future__ import annotations

import pytest

from tests.lab.standins import CAPTURES, blocks, call, generic


def shape(traceback: str) -> list[str]:
    """A traceback without what is only line numbers."""
    return [line for line in traceback.splitlines() if not line.startswith("  File ")]


@pytest.mark.parametrize("era", ["5.9.1", "26.04", "26.07"])
def test_mlnx_qos_prints_what_the_real_one_printed(era: str) -> None:
    node = generic()
    node.era = era
    seen = list(blocks((CAPTURES / "mlnx_qos" / f"{era}.txt").read_text()))
    assert len(seen) > 20
    for block in seen:
        got = call(node, block.command, root=block.root)
        where = f"{era}: {block.command}"
        assert (got.rc, got.out) == (block.rc, block.out), where
        assert shape(got.err) == shape(block.err), where


def test_dcb_prints_what_the_real_one_printed() -> None:
    node = generic()
    seen = list(blocks((CAPTURES / "dcb" / "dcb-6.1.txt").read_text()))
    assert len(seen) > 20
    for block in seen:
        got = call(node, block.command, root=block.root)
        if block.out == "(state as above)\n":
            assert got.rc == block.rc
            continue
        # before [stderr] the capture has one empty line of its own where stdout was a bare newline
        want = "\n" if block.err and block.out.startswith("\n") else block.out
        assert (got.rc, got.out, got.err) == (block.rc, want, block.err), block.command
