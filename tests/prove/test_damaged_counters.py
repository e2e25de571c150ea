"""Recordings cut, flipped, doubled, filled with noise: a judge never raises, and damage is neither a failure nor a number."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Status
from fabrictool.prove import lossless_priority, rdma_counters
from fabrictool.prove.case import Case
from fabrictool.snapshot import Captured, Recording
from tests.prove.fleets import sparks
from tests.prove.recordings import CONTROL, control
from tests.prove.verdicts import verdict

JUDGES = (rdma_counters.judge, lossless_priority.judge)
FLEET = sparks(2)
FLEET.more["control"] = control(sparks(2), "enp1s0f0np0", CONTROL[2])
CASE = FLEET.case()
NODE = "spark02"


def changed(probe: str, moment: str, key: str, text: str, rc: int = 0) -> Case:
    made = CASE.recordings[probe]
    snap = made.takes[moment][NODE]
    take = {**made.takes[moment], NODE: replace(snap, sections={**snap.sections, key: Captured(rc, text)})}
    return replace(CASE, recordings={**CASE.recordings, probe: replace(made, takes={**made.takes, moment: take})})


def keys(moment: str, probe: str = "allreduce") -> list[str]:
    return list(CASE.recordings[probe].takes[moment][NODE].sections)


def text_of(moment: str, key: str, probe: str = "allreduce") -> str:
    return CASE.recordings[probe].takes[moment][NODE].sections[key].out


def test_the_whole_passes() -> None:
    assert all(verdict(judge, CASE).passes for judge in JUDGES)


def test_crlf_changes_nothing() -> None:
    def ended(made: Recording) -> Recording:
        takes = {m: {n: replace(s, sections={k: replace(c, out=c.out.replace("\n", "\r\n")) for k, c in s.sections.items()})
                     for n, s in take.items()} for m, take in made.takes.items()}
        return replace(made, takes=takes)

    other = replace(CASE, recordings={k: ended(r) for k, r in CASE.recordings.items()})
    for judge in JUDGES:
        assert verdict(judge, other).findings == verdict(judge, CASE).findings


@pytest.mark.parametrize("moment", ["idle.after", "run2.before", "run2.after"])
def test_cut_at_every_line(moment: str) -> None:
    """A second source may stand in (ethtool, rdma statistic); then the verdict is the same as on the whole."""
    for key in keys(moment):
        lines = text_of(moment, key).splitlines(keepends=True)
        for end in range(0, len(lines), 1 if len(lines) < 20 else 9):
            for judge in JUDGES:
                got = verdict(judge, changed("allreduce", moment, key, "".join(lines[:end])))
                assert {f.status for f in got.bad} <= {Status.UNKNOWN}, (key, end)


@pytest.mark.parametrize("probe", ["allreduce", "control"])
def test_a_section_that_is_gone_noise_or_doubled(probe: str) -> None:
    for moment in ("run1.before", "run1", "run1.after"):
        for key in keys(moment, probe):
            text = text_of(moment, key, probe)
            for other in ("", "noise\n" * 50, "\udcff\udcfe\n", text + text, "\0" * 100, "x" * 200_000):
                for judge in JUDGES[:1 if probe == "control" else 2]:  # the second looks at no control
                    got = verdict(judge, changed(probe, moment, key, other))
                    assert {f.status for f in got.bad} <= {Status.UNKNOWN}, (moment, key, other[:20])


def test_flipped_bytes() -> None:
    rng = random.Random(11)
    for _ in range(150):
        moment = rng.choice(["idle.before", "run1.before", "run1", "run1.after"])
        key = rng.choice(keys(moment))
        raw = bytearray(text_of(moment, key).encode() or b"x")
        for _ in range(rng.randrange(1, 8)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        for judge in JUDGES:
            assert verdict(judge, changed("allreduce", moment, key, raw.decode("utf-8", "surrogateescape"))).findings


@settings(max_examples=60, deadline=None)
@given(st.text(), st.integers(0, 255), st.sampled_from(keys("run1.after")))
def test_any_text_is_answered(text: str, rc: int, key: str) -> None:
    for judge in JUDGES:
        assert verdict(judge, changed("allreduce", "run1.after", key, text, rc)).findings


@pytest.mark.parametrize("moment", ["idle.before", "run1.before", "run1", "run1.after", "default.after"])
def test_a_take_that_is_missing(moment: str) -> None:
    made = CASE.recordings["allreduce"]
    for takes in ({m: t for m, t in made.takes.items() if m != moment},
                  {m: {n: s for n, s in t.items() if (m, n) != (moment, NODE)} for m, t in made.takes.items()}):
        case = replace(CASE, recordings={**CASE.recordings, "allreduce": replace(made, takes=takes)})
        got = verdict(rdma_counters.judge, case)
        assert {f.status for f in got.bad} == (set() if moment == "default.after" else {Status.UNKNOWN})
