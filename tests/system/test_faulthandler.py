"""What Python's faulthandler prints: by its own time limit, on a fatal error, and among a program's other lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.system.phases import Phase
from fabrictool.system.stacks import FAULT, parse, stand

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "torch"
ALONE = (CAPTURES / "alone" / "rank0.err").read_text(encoding="utf-8")
KILLED = (CAPTURES / "killed" / "rank0.err").read_text(encoding="utf-8")
FRAME = '  File "/opt/venv/lib/python3.12/site-packages/torch/{}.py", line 9 in {}\n'


@pytest.mark.parametrize(("text", "phase", "frame", "frames"), [
    (ALONE, Phase.STORE, "_create_c10d_store", 8), (KILLED, Phase.CALL, "all_reduce", 6),
])
def test_the_captures(text: str, phase: Phase, frame: str, frames: int) -> None:
    (dump,) = parse(text)
    at = stand(dump)
    assert (dump.tool, dump.pid, dump.native, len(dump.threads)) == (FAULT, None, False, 1)
    assert (at.phase, at.frame.name if at.frame else "", len(dump.threads[0].frames)) == (phase, frame, frames)
    assert dump.threads[0].frames[-1].function == "<module>"


@pytest.mark.parametrize("head", [
    "Timeout (0:00:12)!\nThread 0x00007f7494d09140 (most recent call first):\n",
    "Timeout (1 day, 0:00:12.500000)!\nThread 0x00007f7494d09140 [python3] (most recent call first):\n",
    "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f7494d09140 (most recent call first):\n",
    "Fatal Python error: Aborted\n\nThread 0x00007f7494d09140 (idle) (most recent call first):\n",
    "Current thread 0x00007f7494d09140 (most recent call first):\n",
])
def test_heads(head: str) -> None:
    (dump,) = parse("other words\n" + head + FRAME.format("distributed/rendezvous", "_create_c10d_store") + "\nlater words\n")
    assert stand(dump).phase is Phase.STORE
    assert len(dump.threads[0].frames) == 1


def test_threads_that_do_not_tell_stand_before_the_one_that_does() -> None:
    (dump,) = parse("Timeout (0:00:12)!\nThread 0x01 (most recent call first):\n" + FRAME.format("_inductor/pool", "_recv_msg")
                    + "\nThread 0x02 (most recent call first):\n" + FRAME.format("distributed/distributed_c10d", "all_reduce"))
    assert (len(dump.threads), stand(dump).phase) == (2, Phase.CALL)


def test_two_ranks_in_one_text_are_two_dumps() -> None:
    assert [stand(d).phase for d in parse(ALONE + KILLED)] == [Phase.STORE, Phase.CALL]


@pytest.mark.parametrize("text", [
    "Timeout (0:00:12)!\n", "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n", "frame #0: c10::Error() + 0x9d\n",
    "#0 all_reduce from /opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:3068\n", "Timeout (soon)!\n",
])
def test_no_stack_of_it(text: str) -> None:
    assert parse(text) == ()


def test_cut_at_every_line_it_tells_less_and_never_another_phase() -> None:
    for text, phase in ((ALONE, Phase.STORE), (KILLED, Phase.CALL)):
        lines = text.splitlines(keepends=True)
        for n in range(len(lines)):
            assert {stand(d).phase for d in parse("".join(lines[:n]))} <= {phase, Phase.UNKNOWN}, n


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from((ALONE + KILLED).splitlines()) | st.text(max_size=60), max_size=30))
def test_anything(lines: list[str]) -> None:
    for dump in parse("\r\n".join(lines)):
        stand(dump)
