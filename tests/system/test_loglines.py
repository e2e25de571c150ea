"""Every form in which a kernel log is met, and nothing else that lies between its lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.system.loglines import Line, lines
from tests.system.logs import CALM, STAMPS, START, stamped


@pytest.mark.parametrize("style", STAMPS)
def test_each_form_gives_the_same_messages(style: str) -> None:
    rows = lines(stamped(CALM, style))
    assert [r.text for r in rows] == CALM.splitlines()
    assert [r.number for r in rows] == list(range(1, len(rows) + 1))
    assert [r.text for r in lines(stamped(CALM, style).replace("\n", "\r\n"))] == CALM.splitlines()
    coloured = "\n".join(f"\x1b[32m{ln}\x1b[0m" for ln in stamped(CALM, style).splitlines())
    assert [r.text for r in lines(coloured)] == CALM.splitlines()


def test_times() -> None:
    iso, up = lines(stamped("a b\nc d"))[1], lines(stamped("a b\nc d", "dmesg"))[1]
    assert (iso.at, iso.up) == (START + 1, None)
    assert (up.at, up.up) == (None, 4001.5)
    assert lines(stamped("a b", "rsyslog"))[0].at == pytest.approx(START + 0.123456)
    assert lines(stamped("a b", "dmesg iso"))[0].at == pytest.approx(START + 0.123456)
    assert lines("2026-08-01T08:00:00Z h kernel: a")[0].at == START
    assert lines("2026-02-31T08:00:00Z h kernel: a")[0].at is None  # no such day
    assert lines("2026-08-01T08:00:00 h kernel: a")[0].at is None  # whose clock?


def test_what_programs_say_is_not_the_kernels() -> None:
    fake = "Out of memory: Killed process 1 (x) total-vm:1kB"
    text = "\n".join((f"Aug 01 10:00:01 n1 python3[77]: {fake}", f"2026-08-01T10:00:01+0200 n1 vllm: {fake}",
                      f"user  :err   : [1.5] {fake}", f"  {fake}", "Aug 01 10:00:02 n1 kernel: yes"))
    assert [r.text for r in lines(text)] == ["yes"]
    assert [r.text for r in lines(f"{fake}\n")] == [fake]  # nothing is stamped: a paste of messages alone


def test_json_lines() -> None:
    def row(**more: object) -> str:
        return json.dumps({"MESSAGE": "a", "_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "1785571200000000", **more})

    assert lines(row(_SOURCE_MONOTONIC_TIMESTAMP="5000000")) == (Line(1, "a", START, 5.0, "a"),)
    assert [r.text for r in lines(row(MESSAGE=[72, 105, 255]))] == ["Hi\udcff"]
    assert lines(row(_TRANSPORT="stdout", SYSLOG_IDENTIFIER="kernel")) == ()
    assert lines(row(MESSAGE=None)) == ()
    assert lines(row(__REALTIME_TIMESTAMP="x"))[0].at is None
    assert [r.text for r in lines(row()[:-5] + "\n" + row())] == ["a"]


@given(st.text(max_size=300) | st.sampled_from(list(STAMPS)).map(lambda s: stamped(CALM, s)), st.integers(0, 300), st.integers(0, 0x10ff))
def test_any_text_is_read(text: str, at: int, char: int) -> None:
    changed = text[:at] + chr(char) + text[at + 1:]
    for one in (text, changed, text[:at], "\udcff" + text):
        for row in lines(one):
            assert row.text is not None
            assert 1 <= row.number <= one.count("\n") + 1
