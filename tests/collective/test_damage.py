"""Outputs that were cut, flipped, renamed or run together: never an exception, never a pass that the whole text would not give."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.collective import tests_text
from fabrictool.collective.model import Asked
from fabrictool.collective.result import gate_busbw
from fabrictool.model import Code, Value
from tests.collective.judging import ASKED, at, bad, judged, passes
from tests.collective.samples import CONCLUDED, HEALTHY, JSONS, LAYOUTS, OUT, TEXTS, capture

WRONG = HEALTHY.replace(OUT, OUT[:-1] + "5").replace("0 OK", "1 FAILED")
OURS = {"healthy": HEALTHY, "wrong": WRONG, **LAYOUTS}
RIGHT = (Code.WRONG_RESULT, "allreduce.run1.result")
TWO = Asked(268435456, 2, 1)


def text_of(name: str) -> str:
    return OURS[name] if name in OURS else capture(name)


def asked(name: str) -> Asked:
    return ASKED if name in ("healthy", "wrong", "now", "stamped", "all columns") else TWO


@pytest.mark.parametrize("name", [*TEXTS, *OURS])
@pytest.mark.parametrize("rc", [0, None])
def test_cut_at_every_line(name: str, rc: int | None) -> None:
    text = text_of(name)
    whole = passes(judged(text, asked(name), rc))
    lines = text.splitlines(True)
    for end in range(len(lines)):
        cut = "".join(lines[:end])
        findings = judged(cut, asked(name), rc)
        assert passes(findings) <= whole
        if "concluded" not in cut and "Avg bus" not in cut:
            assert at(findings, "result").bad
            assert at(findings, "ended").bad


@pytest.mark.parametrize("name", ["socket.txt", "mpi_tagged.txt", "mpi_killed.txt", "i_p99.txt", "nvlink.txt", "badif.txt", "help.txt",
                                  "timeout.txt", "healthy", "wrong", "error", "all columns"])
def test_a_thousand_flipped_bits(name: str) -> None:
    raw = text_of(name).encode()
    want = judged(text_of(name), asked(name))
    gate = gate_busbw(tests_text.parse(text_of(name)))
    chance = random.Random(20261129)
    for _ in range(1000):
        made = bytearray(raw)
        for _ in range(chance.choice((1, 1, 1, 20))):
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
        damaged = made.decode("utf-8", "surrogateescape")
        assert passes(judged(damaged, asked(name))) <= passes(want)
        got = gate_busbw(tests_text.parse(damaged))
        if isinstance(got, Value) and isinstance(gate, Value):
            assert got.value == pytest.approx(gate.value, rel=0.06, abs=0.2)  # a late digit may change, never the size of the number
        elif isinstance(got, Value):
            assert name not in ("mpi_killed.txt", "badif.txt", "help.txt", "timeout.txt")


@pytest.mark.parametrize("host", ["spark-01", "7", "10-0-0-7", "e5", "1e5", "a.b.c", "N", "0", "node_9", "x" * 60])
@pytest.mark.parametrize("name", [*CONCLUDED, "mpi_killed.txt", "badif.txt", "toomany.txt"])
def test_names_do_not_matter(name: str, host: str) -> None:
    text = re.sub(r"(?<![A-Za-z])vm(?![A-Za-z])", host, capture(name))
    text = text.replace("NVIDIA H200", "Other GPU 9 [x]").replace("0000:00:0", "000f:01:0")
    text = re.sub(r"(?<=[: ])(1[678]\d\d|19\d\d|20[04]\d)(?=[: ])", lambda m: str(int(m[0]) + 70000), text)
    assert [(f.code, f.status, f.path) for f in judged(text, TWO)] == [(f.code, f.status, f.path) for f in judged(capture(name), TWO)]
    assert gate_busbw(tests_text.parse(text)) == gate_busbw(tests_text.parse(capture(name)))


@pytest.mark.parametrize("name", CONCLUDED)
def test_damage_elsewhere_does_not_change_a_verdict(name: str) -> None:
    text = capture(name)
    want = [(f.code, f.status, f.got) for f in judged(text, TWO)]
    chance = random.Random(3)
    for _ in range(50):
        lines = [ln if "NCCL INFO" not in ln or chance.random() < 0.5 else "".join(chance.sample(ln[:-1], len(ln) - 1)) + "\n"
                 for ln in text.splitlines(True)]
        assert [(f.code, f.status, f.got) for f in judged("".join(lines), TWO)] == want


def test_run_together() -> None:
    chance = random.Random(11)
    for _ in range(100):
        names = chance.sample([*TEXTS, *OURS], 3)
        text = "".join(text_of(n) for n in names)
        runs = tests_text.parse_all(text)
        good = sum(n in CONCLUDED or n in LAYOUTS or n == "healthy" for n in names)
        assert sum(RIGHT in passes(judged(run, Asked(), None)) for run in runs) <= good
        assert RIGHT not in passes(judged(text, Asked()))
        assert bad(judged(text, Asked()))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_lines_taken_away_doubled_and_moved(data: st.DataObject) -> None:
    lines = HEALTHY.splitlines(True)
    made = data.draw(st.lists(st.sampled_from(lines), max_size=len(lines) * 2))
    if RIGHT in passes(judged("".join(made))):
        assert any("Out of bounds" in ln for ln in made)
        assert any("concluded" in ln or "Avg bus" in ln for ln in made)
        assert any(OUT in ln for ln in made)


@pytest.mark.parametrize("name", JSONS)
def test_a_json_file_as_text_is_no_run(name: str) -> None:
    assert tests_text.parse_all(capture(name)) == ()
