"""Several runs told as one: the worst of each thing, and in which runs."""

from __future__ import annotations

import random

import pytest

from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.prove.overruns import WORST_FIRST, both_ways, over_runs


def f(run: str, what: str = "rows", status: Status = Status.PASS, code: Code = Code.LOW_BUSBW, node: str = "a", why: str = "") -> Finding:
    return Finding(code, Subject(SubjectKind.NODE, (node,)), f"x.{run}.{what}", "", "got", "want", why, status)


def told(*found: Finding) -> list[tuple[str, Status, str]]:
    by_run: dict[str, list[Finding]] = {"run1": [], "run2": [], "run3": []}
    for one in found:
        by_run[one.path.split(".")[1]].append(one)
    return [(o.path, o.status, o.why) for o in over_runs("x", by_run)]


def test_alike_in_all_runs_is_one_finding_without_a_word_of_runs() -> None:
    assert told(f("run1"), f("run2"), f("run3")) == [("x.rows", Status.PASS, "")]
    failing = [f(run, status=Status.FAIL, why="cut") for run in ("run1", "run2", "run3")]
    assert told(*failing) == [("x.rows", Status.FAIL, "cut")]


def test_the_worst_run_counts_and_is_named() -> None:
    assert told(f("run1"), f("run2", status=Status.FAIL, why="cut"), f("run3")) == [("x.rows", Status.FAIL, "cut; in run2")]
    assert told(f("run1", status=Status.UNKNOWN), f("run3", status=Status.UNKNOWN), f("run2")) == [
        ("x.rows", Status.UNKNOWN, "in run1, run3")]
    assert told(f("run1", status=Status.WARN), f("run2", status=Status.UNKNOWN))[0][1] is Status.UNKNOWN


def test_things_and_nodes_stay_apart_and_codes_too() -> None:
    assert len(told(f("run1"), f("run1", "size"), f("run1", node="b"))) == 3
    two = told(f("run1", status=Status.FAIL), f("run2", status=Status.FAIL, code=Code.NO_RESULT))
    assert [w for _, _, w in two] == ["in run1", "in run2"]


def test_a_path_of_another_run_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="does not begin"):
        list(over_runs("x", {"run1": [f("run2")]}))


@pytest.mark.parametrize("seed", range(20))
def test_nothing_bad_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    found = [f(f"run{rng.randint(1, 3)}", rng.choice("pqr"), rng.choice(list(Status)), rng.choice((Code.LOW_BUSBW, Code.NO_RESULT)),
               rng.choice("ab")) for _ in range(30)]
    by_run: dict[str, list[Finding]] = {"run1": [], "run2": [], "run3": []}
    for one in found:
        by_run[one.path.split(".")[1]].append(one)
    out = list(over_runs("x", by_run))
    assert len({o.id for o in out}) == len(out)
    for one in found:
        same = [o for o in out if o.subject == one.subject and o.path.endswith(one.path.rpartition(".")[2])]
        assert same
        assert all(WORST_FIRST.index(o.status) <= WORST_FIRST.index(one.status) for o in same)


def test_both_ways_of_one_fault_are_one_finding() -> None:
    tx, rx = (f("r", f"bytes.{way}", Status.FAIL, why="flat") for way in ("tx", "rx"))
    (one,) = both_ways([tx, rx])
    assert (one.path, one.got) == ("x.r.bytes", "got")
    good = f("r", "bytes.rx")
    assert list(both_ways([tx, good])) == [tx, good]
    assert len(list(both_ways([tx, f("r", "bytes.rx", Status.FAIL, why="short")]))) == 2
    assert len(list(both_ways([f("r", "bytes.tx"), good]))) == 2
