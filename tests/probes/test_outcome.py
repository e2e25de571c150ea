"""What comes back of a run: whole files, ends of programs, and nothing of anybody's environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Unreadable
from fabrictool.probes.outcome import Piece, pieces, sections, without_environment
from fabrictool.snapshot import Captured

CAPTURES = Path(__file__).resolve().parent.parent / "captures" / "nccl-tests"
SAMPLE = ("@ clock.start 20 20\n1700000000.123456789\n@ 0.out 6 6\nline 1\n@ 0.err 0 0\n\n@ 0.rc 7 7\n0 1234\n\n"
          "@ host.12.log 900 5\nvm:12\nend\n").replace("20 20\n1700000000.123456789\n", "21 21\n1700000000.123456789\n\n")


def whole(text: str) -> dict[str, Piece]:
    got = pieces(text)
    assert not isinstance(got, Unreadable), got
    return dict(got)


def test_files_and_what_becomes_of_them() -> None:
    found = whole(SAMPLE)
    assert found["host.12.log"] == Piece("vm:12", True)
    assert sections(found) == {
        "rank[0]": Captured(0, "line 1", "", 1234), "nccl.log[host.12]": Captured(0, "vm:12", cut=True),
        "clock.start": Captured(0, "1700000000.123456789\n")}


def test_programs_by_how_they_ended() -> None:
    files = {"launcher.out": Piece("x", False), "launcher.err": Piece("no such host", True), "launcher.rc": Piece("1 20\n", False),
             "10.rc": Piece("7 5\n", False), "2.out": Piece("cut down", False), "box.rc": Piece("125 9\n", False),
             "3.rc": Piece("999 1\n", False), "weird.rc": Piece("0 0\n", False)}
    got = sections(files)
    assert got["launcher"] == Captured(1, "x", "no such host", 20, err_cut=True)
    assert got["rank[10]"] == Captured(7, "", "", 5)
    assert got["rank[2]"] == Captured(137, "cut down")  # nothing wrote its status: it was ended from outside
    assert got["rank[3]"].rc == 137
    assert got["container"].rc == 125
    assert [k for k in got if "weird" in k] == []
    assert [k for k in got if k.startswith("rank")] == ["rank[2]", "rank[3]", "rank[10]"]


@pytest.mark.parametrize("cut", range(len(SAMPLE)))
def test_a_part_is_never_taken_for_the_whole(cut: int) -> None:
    assert isinstance(pieces(SAMPLE[:cut]), Unreadable) or cut >= len(SAMPLE) - 1


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_garbage_is_no_answer(text: str) -> None:
    if text not in ("end", "end\n"):
        assert isinstance(pieces(text), Unreadable)
    got = pieces(SAMPLE.replace("line 1", "line 1" + text))
    assert isinstance(got, Unreadable) or not text


@given(st.dictionaries(st.from_regex(r"[a-z0-9][a-z0-9.]{0,12}\.(log|out|err|rc|json)", fullmatch=True),
                       st.binary(max_size=60).map(lambda b: b.decode("utf-8", "surrogateescape")), max_size=5))
def test_any_files_come_back_as_they_were(files: dict[str, str]) -> None:
    """Also files that hold what looks like the frame itself."""
    text = "".join(f"@ {n} {len(t.encode('utf-8', 'surrogateescape'))} {len(t.encode('utf-8', 'surrogateescape'))}\n{t}\n"
                   for n, t in files.items()) + "end\n"
    assert {n: p.text for n, p in whole(text).items()} == files


@pytest.mark.parametrize("name", ["nvlink.json", "periter.json", "socket.json", "two.json"])
def test_the_environment_goes_and_all_else_stays(name: str) -> None:
    text = (CAPTURES / name).read_text(encoding="utf-8")
    before, after = json.loads(text), json.loads(without_environment(text))
    assert after["env"] == []
    assert {**before, "env": []} == after


def test_an_environment_that_looks_like_json() -> None:
    secret = {"env": ["A=]}", 'B="env": [', "C=\\\"]", "D=[[", "TOKEN=x"], "results": [[1], "]"], "n": {"env": ["TOKEN=y"]}}
    got = json.loads(without_environment(json.dumps(secret)))
    assert got == {"env": [], "results": [[1], "]"], "n": {"env": []}}


@given(st.integers(0, 400))
def test_nothing_of_it_is_left_in_a_broken_file(cut: int) -> None:
    text = json.dumps({"version": 1, "env": ["PATH=/bin", "TOKEN=hunter2", "X=a]b"], "results": []}, indent=1)
    assert "hunter2" not in without_environment(text[:cut])


@given(st.text(alphabet='"env:[]\\, x', max_size=200))
def test_hostile_brackets_end(text: str) -> None:
    assert len(without_environment(text)) <= len(text)
