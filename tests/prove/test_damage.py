"""Recordings that are cut, flipped or replaced: no judge raises, and none passes for want of evidence."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.check import Check, Listed
from fabrictool.model import Code, Said, Status
from fabrictool.prove import Case, allreduce, bootstrap_tcp, path_mtu
from fabrictool.prove.cover import cover
from fabrictool.snapshot import Captured, Recording, Snapshot
from fabrictool.verdict import judged, worst_status
from tests.prove.fleets import h20s, sparks
from tests.prove.paths import case, names, pings, tcp

JUDGES: dict[str, Callable[[Case], Iterable[Said]]] = {
    "allreduce": allreduce.judge, "path_mtu": path_mtu.judge, "bootstrap_tcp": bootstrap_tcp.judge}
CELLS = dict.fromkeys(cover(names(3)), "ok")
HEALTHY = {"path_mtu": case(pings({"a": CELLS, "b": CELLS}), 3), "bootstrap_tcp": case(tcp(CELLS), 3), "allreduce": sparks(2).case()}
H20 = h20s().case()


def verdict(name: str, made: Case) -> Status:
    said = judged(Listed(name, "", "", Check(judge=JUDGES[name])), made)
    assert Code.BUG not in {f.code for f in said.findings}, [f.got for f in said.findings if f.code is Code.BUG]
    return worst_status(f.status for f in said.findings)


def changed(made: Case, name: str, change: Callable[[str, str, str, Captured], Captured | None]) -> Case:
    """`change` gets moment, node, section and what it holds."""
    recording = made.recordings[name]
    takes = {moment: {node: replace(snap, sections={
        key: new for key, got in snap.sections.items() if (new := change(moment, node, key, got)) is not None})
        for node, snap in nodes.items()} for moment, nodes in recording.takes.items()}
    return replace(made, recordings={name: replace(recording, takes=takes)})


def places(recording: Recording) -> Iterator[tuple[str, str, str]]:
    for moment, nodes in recording.takes.items():
        for node, snap in nodes.items():
            yield from ((moment, node, key) for key in snap.sections)


@pytest.mark.parametrize("name", JUDGES)
def test_the_twins_are_healthy(name: str) -> None:
    assert verdict(name, HEALTHY[name]) is Status.PASS
    assert verdict("allreduce", H20) is Status.PASS


@pytest.mark.parametrize("name", ["path_mtu", "bootstrap_tcp"])
def test_without_any_one_section_of_a_path_there_is_no_pass(name: str) -> None:
    for place in places(HEALTHY[name].recordings[name]):
        gone = changed(HEALTHY[name], name, lambda m, n, k, got, place=place: None if (m, n, k) == place else got)  # type: ignore[misc]
        if place[2] == "stop":  # needed to believe a refusal, and there is none
            continue
        assert verdict(name, gone) is not Status.PASS, place


@pytest.mark.parametrize("name", ["path_mtu", "bootstrap_tcp"])
def test_an_answer_cut_anywhere_is_a_pass_only_when_nothing_that_tells_is_lost(name: str) -> None:
    """After the last number of ping's summary, or the last digit of a time, nothing more is needed."""
    for place in list(places(HEALTHY[name].recordings[name]))[:6]:
        whole = HEALTHY[name].recordings[name].takes[place[0]][place[1]].sections[place[2]].out
        for end in range(0, len(whole), 3):
            cut = changed(HEALTHY[name], name,
                          lambda m, n, k, got, end=end, place=place: replace(got, out=got.out[:end])  # type: ignore[misc]
                          if (m, n, k) == place else got)
            if verdict(name, cut) is Status.PASS:
                told = "packet loss" in whole[:end] or whole[:end].split()[:-1] == whole.split()[:-1]
                assert told or place[2].startswith(("small", "stop")), whole[:end]


GATED = ("run1", "run2", "run3")
NEEDED = ("rank[0]", "rank[1]", "nccl.log", "left", "counters.rdma")


def test_a_run_without_what_proves_it_is_no_pass() -> None:
    made = HEALTHY["allreduce"]
    for word in NEEDED:
        for node in made.wants:
            gone = changed(made, "allreduce", lambda m, n, k, got, word=word, node=node: None  # type: ignore[misc]
                           if n == node and k.startswith(word) and m.partition(".")[0] == "run2" else got)
            if gone.recordings["allreduce"].takes == made.recordings["allreduce"].takes:
                continue  # rank 1 is not on the first node
            assert verdict("allreduce", gone) is not Status.PASS, (word, node)


def test_a_log_cut_at_any_line_before_its_last_channel_is_no_pass() -> None:
    made = HEALTHY["allreduce"]
    (key,) = [k for m, n, k in places(made.recordings["allreduce"]) if (m, n) == ("run1", "spark02") and k.startswith("nccl.log")]
    lines = made.recordings["allreduce"].takes["run1"]["spark02"].sections[key].out.splitlines(keepends=True)
    last = max(i for i, ln in enumerate(lines) if " via " in ln)
    for end in range(last - 1):
        cut = changed(made, "allreduce", lambda m, n, k, got, end=end: replace(got, out="".join(lines[:end]))  # type: ignore[misc]
                      if (m, n, k) == ("run1", "spark02", key) else got)
        assert verdict("allreduce", cut) is not Status.PASS, lines[end]


def test_output_cut_at_any_line_before_its_end_is_no_pass() -> None:
    made = HEALTHY["allreduce"]
    whole = made.recordings["allreduce"].takes["run1"]["spark01"].sections["rank[0]"].out
    lines = whole.splitlines(keepends=True)
    for end in range(next(i for i, ln in enumerate(lines) if "concluded" in ln)):
        def cut(m: str, n: str, k: str, got: Captured, end: int = end) -> Captured | None:
            if (m, n, k) == ("run1", "spark01", "rank[0]"):
                return replace(got, out="".join(lines[:end]))
            return None if (m, n, k) == ("run1", "spark01", "result.json") else got

        assert verdict("allreduce", changed(made, "allreduce", cut)) is not Status.PASS, lines[end]


@pytest.mark.parametrize("seed", range(60))
def test_flipped_bytes_never_raise(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(list(JUDGES))
    made = H20 if name == "allreduce" and seed % 2 else HEALTHY[name]
    chosen = set(rng.sample(sorted(places(made.recordings[name])), 5))

    def flip(m: str, n: str, k: str, got: Captured) -> Captured:
        if (m, n, k) not in chosen or not got.out:
            return got
        data = bytearray(got.out.encode("utf-8", "surrogateescape"))
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return replace(got, out=data.decode("utf-8", "surrogateescape"), rc=rng.choice((0, 0, 1, 137, 255)), cut=rng.random() < 0.2)

    verdict(name, changed(made, name, flip))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(JUDGES)), st.text(max_size=300), st.integers(0, 255))
def test_any_text_in_place_of_every_section_is_no_pass(name: str, text: str, rc: int) -> None:
    filled = changed(HEALTHY[name], name, lambda m, n, k, got: Captured(rc, text, text))
    assert verdict(name, filled) is not Status.PASS


def test_nodes_that_are_not_in_the_recording_or_only_there() -> None:
    for name, made in HEALTHY.items():
        fewer = {m: {n: s for n, s in nodes.items() if n != "spark02"} for m, nodes in made.recordings[name].takes.items()}
        assert verdict(name, replace(made, recordings={name: replace(made.recordings[name], takes=fewer)})) is not Status.PASS
        one = {n: w for n, w in made.wants.items() if n == "spark01"}
        assert verdict(name, replace(made, wants=one)) is not Status.PASS
        assert verdict(name, replace(made, snaps={n: Snapshot(n) for n in made.wants})) is not Status.PASS
