"""What fabrictool's own AllReduce prints, file by file and as a folder: who is named, and by which lines."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.diagnose import Judged
from fabrictool.diagnose.runs import MOST_NODES
from fabrictool.model import Code, Finding, Status
from fabrictool.snapshot.sniff import Input, Kind
from tests.diagnose.table import CAPTURES, FOLDERS, PASTES, Row, codes, exit_of, findings, judged, of_folder, of_text

TORCH = CAPTURES / "torch"
HEALTHY = (PASTES / "own-healthy.txt").read_text(encoding="utf-8")
LINE = HEALTHY.splitlines()[-1]
STEPS = HEALTHY[:HEALTHY.index(LINE)]
ALONE = (TORCH / "alone" / "rank0.err").read_text(encoding="utf-8")
KILLED = [(TORCH / "killed" / f"rank{n}.err").read_text(encoding="utf-8") for n in (0, 1)]


def only(found: tuple[Judged, ...], code: Code) -> Finding:
    (f,) = [f for f in findings(found) if f.code is code and f.bad]
    return f


@pytest.mark.parametrize("row", FOLDERS, ids=lambda r: r.name)
def test_folders(row: Row) -> None:
    found = of_folder(row.path)
    assert (codes(found), exit_of(found)) == (row.codes, row.exit)
    assert [j.kind for j in found] == [Kind.ALLREDUCE], "one run, with its logs"
    assert all(f.lines or f.code is Code.ENV_NOT_PROPAGATED for f in findings(found) if f.bad)


def test_all_folders_at_once_are_as_many_runs() -> None:
    found = of_folder(TORCH)
    assert [codes([j]) for j in found if j.kind is Kind.ALLREDUCE] == [r.codes for r in sorted(FOLDERS, key=lambda r: r.name)]
    assert codes(found) == frozenset().union(*(r.codes for r in FOLDERS))


def test_who_died_is_named_by_its_last_line_and_by_what_the_other_saw() -> None:
    died = only(of_folder(TORCH / "killed"), Code.RANK_DIED)
    assert (died.status, died.subject.nodes) == (Status.FAIL, ("vm",))
    assert died.got.startswith("rank 1 on vm came to `warmed up`")
    assert "rank1.err:3: " in died.lines[0]
    assert any("Connection closed by remote peer" in q for q in died.lines)
    assert only(of_text("".join(KILLED)), Code.RANK_DIED).got == died.got, "the same where both stand in one file"


def test_without_a_word_of_a_closed_connection_it_may_also_hang() -> None:
    text = re.sub(r"^\[rank0\].*?(?=^Timeout)", "", KILLED[0], flags=re.MULTILINE | re.DOTALL)
    found = judged(Input("a", text), Input("b", KILLED[1]))
    assert codes(found) == {Code.RANK_HANGS}
    assert only(found, Code.RANK_HANGS).got.startswith("rank 1 on vm")


def test_a_rank_that_never_came() -> None:
    hangs = only(of_folder(TORCH / "alone"), Code.INIT_HANG)
    assert "torch store (_create_c10d_store)" in hangs.got
    assert hangs.why.startswith("a rank never came to the store")
    assert "no other rank's output is in this input" in hangs.why
    two = of_text(ALONE.replace("rank 0", "rank 2"))
    assert "of rank 0, 1 nothing is in this input" in only(two, Code.INIT_HANG).why


def test_a_cause_is_said_once_and_hides_what_follows_from_it() -> None:
    for name in ("badif", "badhca"):
        assert len([f for f in findings(of_folder(TORCH / name)) if f.bad]) == 1


def test_mixed_lines_of_ranks_blame_nobody() -> None:
    """Whose time limit passed cannot be told: no rank is called silent."""
    mixed = "".join(f"fabrictool-allreduce: rank {r} on h{r}: {s}\n" for s in ("starting", "group made", "warmed up") for r in (0, 1))
    assert codes(of_text(f"{mixed}Timeout (0:00:30)!\n")) == {Code.RUN_TIMEOUT}
    assert codes(of_text(f"{mixed}Timeout (0:00:30)!\nTimeout (0:00:30)!\n")) == {Code.RUN_TIMEOUT}


@pytest.mark.parametrize("text", [
    STEPS + json.dumps(json.loads(LINE), indent=2) + "\n", STEPS + json.dumps(json.loads(LINE), separators=(",", ":")) + "\n", LINE,
    "$ python3 allreduce.py --size 4\n" + HEALTHY, HEALTHY + HEALTHY,
], ids=("jq", "jq -c", "the line alone", "with its command", "two runs"))
def test_the_result_in_other_clothes(text: str) -> None:
    found = of_text(text)
    assert codes(found) == frozenset()
    assert {f.got for f in findings(found) if f.code is Code.LOW_BUSBW} == {"22.9127 GB/s bus bandwidth at 268435456 bytes"}


def test_a_result_that_contradicts_itself_is_no_bandwidth() -> None:
    found = of_text(STEPS + LINE.replace('"time_us": 11715.577', '"time_us": 1171.5') + "\n")
    assert not [f for f in findings(found) if f.code is Code.LOW_BUSBW]


@pytest.mark.parametrize("end", range(10, len(LINE) - 1, 40))
def test_a_cut_line_is_no_pass(end: int) -> None:
    assert Code.RESULT_UNPARSED in codes(of_text(STEPS + LINE[:end])) or end < 25
    assert not any(f.status is Status.PASS and f.code in (Code.WRONG_RESULT, Code.LOW_BUSBW) for f in findings(of_text(STEPS + LINE[:end])))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*HEALTHY.splitlines(), *"".join([*KILLED, ALONE]).splitlines()]) | st.text(max_size=40), max_size=30))
def test_lines_in_any_order_pass_nothing_without_the_result(lines: list[str]) -> None:
    found = findings(of_text("\n".join(lines)))
    assert Code.BUG not in {f.code for f in found}
    if LINE not in lines:
        assert not [f for f in found if f.code in (Code.WRONG_RESULT, Code.LOW_BUSBW) and f.status is Status.PASS]


def hosts(count: int) -> str:
    return "".join(f"h{i}:{i + 1}:1 [0] NCCL INFO Using network Socket\n" for i in range(count))


@pytest.mark.parametrize("around", ["", STEPS, HEALTHY], ids=("logs", "steps", "result"))
def test_more_hosts_than_are_judged_are_said(around: str) -> None:
    said = [f for f in findings(judged(Input("a", hosts(MOST_NODES + 1)), Input("b", around))) if f.code is Code.NOTHING_KNOWN]
    assert [(f.got, f.status) for f in said] == [(f"{MOST_NODES + 1} host names in one set of logs", Status.UNKNOWN)]
    few = findings(judged(Input("a", hosts(40)), Input("b", around)))
    assert not [f for f in few if "host names" in f.got]


def test_more_hosts_than_are_judged_beside_a_run_of_nccl_tests() -> None:
    run = (PASTES / "run-healthy.txt").read_text(encoding="utf-8")
    found = judged(Input("a", run), Input("b", hosts(MOST_NODES + 1)))
    assert Code.NOTHING_KNOWN in codes(found)
