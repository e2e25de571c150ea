"""nccl-tests' JSON files: the captures, versions 1 to 3, files that end in the middle, and rccl-tests' list."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.collective import jsontext, tests_text
from fabrictool.collective.model import NO_GATE, Bounds, Placement, TestRun
from fabrictool.collective.result import gate_busbw
from fabrictool.collective.rows import NOT_COUNTED, NOT_RUN
from fabrictool.collective.slow import process_times
from fabrictool.collective.tests_json import parse
from fabrictool.model import Absent, Unreadable, Value
from tests.collective.samples import JSONS, capture

BESIDE = {"nvlink.json": "nvlink.txt", "socket.json": "socket.txt", "two.json": "mpi_twohosts.txt", "periter.json": "i_p99.txt"}
SECRET = "not-a-real-secret"


def run_of(text: str) -> TestRun:
    got = parse(text)
    assert isinstance(got, TestRun)
    return got


def doc(name: str = "two.json") -> dict[str, Any]:
    made: dict[str, Any] = json.loads(capture(name))
    return made


@pytest.mark.parametrize("name", JSONS)
def test_captures_say_the_same_as_the_text_beside_them(name: str) -> None:
    run, text = run_of(capture(name)), tests_text.parse(capture(BESIDE[name]))
    assert run.concluded
    assert (run.program, run.nccl, run.parameters, run.bounds) == (text.program, text.nccl, text.parameters, text.bounds)
    assert (run.ranks, run.hosts, [d.pid for d in run.devices]) == (text.ranks, text.hosts, [d.pid for d in text.devices])
    assert (run.missing_rows, run.fragments, run.average_ok) == (0, (), NO_GATE)
    assert [(r.size_bytes, r.count, r.type, r.redop, r.root) for r in run.rows] == [
        (r.size_bytes, r.count, r.type, r.redop, r.root) for r in text.rows]
    for mine, its in zip(run.rows, text.rows, strict=True):
        for a, b in zip(mine.placements, its.placements, strict=True):
            assert a.busbw_gbytes_per_s == pytest.approx(b.busbw_gbytes_per_s, abs=0.005)
            assert a.wrong == b.wrong == Value(0)
    assert isinstance(run.started, Value)
    assert isinstance(run.ended, Value)
    assert isinstance(gate_busbw(run), Value)


@pytest.mark.parametrize("name", JSONS)
def test_nothing_of_environment_or_command_line_is_kept(name: str) -> None:
    text = capture(name)
    assert SECRET in text
    for cut in (text, text[:-20], text[:900], text.replace('"env"', '"enw"'), text.replace('"results"', '"rezults"'),
                text.replace('"end_time":"', f'"end_time":"{SECRET}'), "x" + text):
        assert SECRET not in repr(parse(cut))
        assert "HOME" not in repr(parse(cut))


def test_per_iteration_times() -> None:
    first = run_of(capture("periter.json")).rows[0].out_of_place
    assert isinstance(first, Placement)
    assert first.per_iteration
    assert (first.per_iteration.min_us, first.per_iteration.p99_us, first.per_iteration.by_process_us) == (17.088, 32.832, ())


def test_the_process_that_holds_the_others_up() -> None:
    made = doc()
    for row in made["results"]:
        for half in ("out_of_place", "in_place"):
            row[f"{half}_per_iter"] = {"min_us": 1.0, "max_us": 2.0, "p99_us": 2.0, "cv_pct": 1.0,
                                       "per_process_max_times_us": [[10.0, 11.0], [21.0, 21.0]]}
    made["config"]["devices"][1]["hostname"] = "slowone"
    times = process_times(run_of(json.dumps(made)))
    assert isinstance(times, Value)
    assert [(t.host, t.mean_us) for t in times.value] == [("vm", 10.5), ("slowone", 21.0)]
    assert times.value[1].behind == pytest.approx(21 / 15.75 - 1)
    made["config"]["devices"].pop()
    assert isinstance(process_times(run_of(json.dumps(made))), Unreadable)  # a table of two, and one process
    assert isinstance(process_times(run_of(capture("periter.json"))), Unreadable)
    assert isinstance(process_times(TestRun()), Unreadable)


def test_versions_and_their_quirks() -> None:
    made = doc()
    made.pop("version")
    made["average_bus_bandwidith"] = {"bandwidith": 3.35, "okay": "false"}
    made.pop("average_bus_bandwidth")
    made["results"][0]["out_of_place"] = None
    made["results"][1]["in_place"]["nwrong"] = None
    made["results"][2]["in_place"]["cpu_time"] = made["results"][2]["in_place"].pop("time")
    run = run_of(json.dumps(made))
    assert run.concluded
    assert (run.average_busbw, run.average_ok, run.cpu_time) == (Value(3.35), Value(False), True)
    assert run.rows[0].out_of_place == NOT_RUN
    assert run.rows[1].placements[1].wrong == NOT_COUNTED
    made["out_of_bounds"] = {"count": 2, "okay": "false"}
    assert run_of(json.dumps(made)).bounds == Value(Bounds.FAILED)
    made["out_of_bounds"] = {"count": 2, "okay": "true"}
    assert isinstance(run_of(json.dumps(made)).bounds, Unreadable)
    grouped = doc("nvlink.json")
    grouped["config"]["ngpus"] = 4
    grouped["config"]["devices"].append({**grouped["config"]["devices"][0], "rank": 4, "hostname": "other", "pid": 7})
    assert run_of(json.dumps(grouped)).ranks == Value(8)
    assert run_of(json.dumps(grouped)).hosts == ("vm", "other")


@pytest.mark.parametrize("bad", ["inf", "-inf", '"nan"', "nan", "NaN", "Infinity", "-1.0", '"3"', "true", "null", "[]", "1e999",
                                 "9" * 5000])
def test_a_number_that_is_none_makes_a_fragment(bad: str) -> None:
    text = capture("socket.json").replace('"bus_bw":3.188844', f'"bus_bw":{bad}')
    got = parse(text)
    if isinstance(got, TestRun):
        assert got.fragments or not got.concluded
        assert len(got.rows) < 5
        assert isinstance(gate_busbw(got), Unreadable)


def test_a_file_that_ends_in_the_middle_is_never_concluded() -> None:
    text = capture("nvlink.json")
    whole = run_of(text)
    for end in range(0, len(text) - 1, 7):
        got = parse(text[:end])
        if isinstance(got, TestRun):
            assert not got.concluded
            assert all(r in whole.rows for r in got.rows)
            assert isinstance(gate_busbw(got), Unreadable)
    assert run_of(text[:3000]).devices == whole.devices
    assert len(run_of(text[:3000]).rows) > 5
    assert not run_of(text + "{}").concluded


@pytest.mark.parametrize("name", ["two.json", "socket.json", "periter.json"])
def test_flipped_bytes_never_raise_and_change_no_row_unseen(name: str) -> None:
    text = capture(name)
    whole, chance = run_of(text), random.Random(7)
    for _ in range(1000):
        at = chance.randrange(len(text))
        got = parse(text[:at] + chr(ord(text[at]) ^ (1 << chance.randrange(8))) + text[at + 1:])
        if isinstance(got, TestRun) and got.concluded and not got.fragments and not got.missing_rows:
            assert len(got.rows) == len(whole.rows)
            assert SECRET not in repr(got)


RCCL = [{"name": "AllReduce", "nodes": 2, "ranks": 16, "size": s, "type": "float", "redop": "sum", "inPlace": p, "time": s / 1e4,
         "algBw": 10.0, "busBw": 18.75, "wrong": "0"} for s in (1048576, 2097152) for p in (0, 1)]


def test_the_list_of_rccl_tests() -> None:
    for text in (json.dumps(RCCL), "\n".join(json.dumps(e) for e in RCCL)):
        run = run_of(text)
        assert [r.size_bytes for r in run.rows] == [1048576, 2097152]
        assert all(p.wrong == Value(0) for r in run.rows for p in r.placements)
        assert len(run.rows[0].placements) == 2
        assert not run.concluded  # it has no closing mark
    assert run_of(json.dumps([{**RCCL[0], "busBw": "x"}, RCCL[1]])).fragments
    assert run_of(json.dumps(RCCL + RCCL[:1])).fragments
    assert run_of(json.dumps(RCCL)[:-300]).fragments
    assert run_of(json.dumps([{**RCCL[0], "wrong": "N/A"}])).rows[0].placements[0].wrong == NOT_COUNTED


@pytest.mark.parametrize("text", ["", " \n", "{}", "[", "null", "7", '"x"', '{"a": 1}', "{" * 100_000, "[" * 100_000, '"' * 9999,
                                  "\\" * 9999, '{"results": ' + "9" * 100_000, '{"config": [], "results": {}}'])
def test_other_json_and_hostile_text(text: str) -> None:
    got = parse(text)
    assert isinstance(got, Unreadable) or not (got.concluded or got.rows)
    if isinstance(got, TestRun):
        assert isinstance(gate_busbw(got), (Unreadable, Absent))


@settings(max_examples=200, deadline=None)
@given(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                               lambda c: st.lists(c, max_size=4) | st.dictionaries(st.sampled_from(
                                   ["config", "devices", "results", "size", "in_place", "nwrong", "rank", "hostname", "args", "busBw"]), c),
                               max_leaves=12))
def test_any_text_and_any_document_is_answered(text: str, made: object) -> None:
    for given_text in (text, json.dumps(made), json.dumps({"config": made, "results": made, "errors": made, "out_of_bounds": made,
                                                           "average_bus_bandwidth": made, "args": made, "nccl_version": made})):
        parse(given_text)
        jsontext.load(given_text)
