"""nccl-tests' text in every layout, as the real program printed it and as other builds do."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.collective.model import NOT_SAID, Bounds, Deviation, ErrorKind, PerIteration, Placement, TestRun
from fabrictool.collective.result import gate_busbw
from fabrictool.collective.rows import NO_COUNT, NOT_COUNTED, NOT_RUN
from fabrictool.collective.tests_text import parse, parse_all
from fabrictool.model import Absent, Unreadable, Value
from tests.collective.samples import (
    ALL_COLUMNS,
    CONCLUDED,
    FOOT,
    HEALTHY,
    IN,
    LAYOUTS,
    OLD_ERROR,
    OLD_MS,
    OUT,
    ROW,
    STAMPED,
    TEXTS,
    WIDE,
    capture,
)

ROWS = {"i_p99.txt": 3, "mpi_local.txt": 3, "mpi_mismatch.txt": 1, "mpi_tagged.txt": 2, "mpi_twohosts.txt": 3, "nvlink.txt": 14,
        "shm.txt": 1, "socket.txt": 5}


def shape(run: TestRun) -> tuple[object, ...]:
    """What a run says, without where it stands."""
    rows = [(r.size_bytes, r.count, r.type, r.redop, r.root, r.out_of_place, r.in_place) for r in run.rows]
    return (run.ranks, run.hosts, rows, len(run.fragments), run.bounds, run.average_busbw, run.concluded, run.reduced_bytes,
            [(e.kind, e.host) for e in run.errors], run.parameters, run.nccl, run.missing_rows)


@pytest.mark.parametrize("name", TEXTS)
def test_captures(name: str) -> None:
    text = capture(name)
    runs = parse_all(text)
    assert [run.lines for run in runs] == [(1, len(text.splitlines()))]
    run = runs[0]
    assert run.concluded == (name in CONCLUDED)
    assert len(run.rows) == ROWS.get(name, 0)
    assert len(run.fragments) == (name == "mpi_killed.txt")
    assert run.missing_rows == 0
    assert run.exit_status == int(text.rstrip().rpartition("rc=")[2])
    if name not in ("badarg.txt", "help.txt"):
        assert (run.version, run.nccl) == (Value("2.19.6"), Value("2.28.9"))
        assert run.program == Value("all_reduce_perf_mpi" if name.startswith("mpi_") else "all_reduce_perf")
    if name not in ("badarg.txt", "help.txt", "toomany.txt"):
        assert (run.ranks, run.hosts) == (Value(2), ("vm",))
        assert {d.gpu for d in run.devices} == {"NVIDIA H200"}


@pytest.mark.parametrize(("name", "kinds"), [
    ("badarg.txt", [ErrorKind.ARGUMENT]), ("help.txt", [ErrorKind.USAGE]), ("timeout.txt", []), ("mpi_T.txt", []),
    ("badif.txt", [ErrorKind.NCCL, ErrorKind.FOLLOWED]), ("badhca.txt", [ErrorKind.NCCL, ErrorKind.FOLLOWED, ErrorKind.FOLLOWED]),
    ("toomany.txt", [ErrorKind.GPUS, ErrorKind.FOLLOWED]), ("mpi_killed.txt", [ErrorKind.DIED]), ("socket.txt", []),
])
def test_errors_of_captures(name: str, kinds: list[ErrorKind]) -> None:
    run = parse(capture(name))
    assert [e.kind for e in run.errors] == kinds
    assert {e.host for e in run.errors} <= {"vm", ""}
    if name == "mpi_killed.txt":
        assert (run.errors[0].rank, run.errors[0].host) == (1, "vm")
        assert run.fragments[0].cut
        assert run.fragments[0].line == 117


def test_the_healthy_sample_word_by_word() -> None:
    run = parse(HEALTHY)
    assert (run.ranks, run.hosts) == (Value(4), ("spark01", "spark02", "spark03", "spark04"))
    assert (run.bounds, run.average_busbw, run.concluded) == (Value(Bounds.OK), Value(22.89), True)
    row = run.rows[0]
    assert (row.size_bytes, row.count, row.type, row.redop, row.root, row.line) == (268435456, 67108864, "float", "sum", -1, 14)
    assert row.out_of_place == Placement(17600.0, 15.25, 22.88, Value(0))
    assert row.in_place == Placement(17580.0, 15.27, 22.90, Value(0))
    assert isinstance(run.parameters, Value)
    assert (run.parameters.value.warmup, run.parameters.value.iterations, run.parameters.value.validation) == (5, 20, 1)
    assert gate_busbw(run) == Value(22.88)


def test_other_builds() -> None:
    old = parse(OLD_ERROR)
    assert [r.root for r in old.rows] == [None] * 3
    first = old.rows[0].out_of_place
    assert isinstance(first, Placement)
    assert (first.wrong, first.deviation, first.right) == (NO_COUNT, Deviation(1e-06), Value(True))
    assert (old.concluded, old.ranks, [d.pid for d in old.devices]) == (True, Value(2), [26528, 27302])
    starred = parse(OLD_ERROR.replace("1e-06    94.98", "4e-01*   94.98")).rows[2 - 1].out_of_place
    assert isinstance(starred, Placement)
    assert (starred.deviation, starred.right) == (Deviation(0.4, True), Value(False))
    slow = parse(OLD_MS).rows[0].in_place
    assert isinstance(slow, Placement)
    assert slow.time_us == 231.0  # printed as 0.231 ms
    stamped, everything = parse(STAMPED).rows[0], parse(ALL_COLUMNS).rows[0]
    assert stamped.in_place == parse(HEALTHY).rows[0].in_place
    assert isinstance(everything.in_place, Placement)
    assert everything.in_place.per_iteration == PerIteration(17500.1, 17900.2, 17899.9, 0.55)
    wide = parse(WIDE).rows[0]
    assert wide.out_of_place == Placement(1.2e7, 0.72, 1.07, Value(0))
    assert wide.in_place == Placement(1.2e7, 0.72, 1.07, NOT_COUNTED)
    assert parse(HEALTHY.replace(OUT, "  17600.0   15.25   22.88   1e+06")).rows[0].placements[0].wrong == Value(1_000_000)
    assert parse(HEALTHY.replace(IN, "      N/A     N/A     N/A     N/A")).rows[0].in_place == NOT_RUN


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_have_their_rows_with_and_without_the_head_of_the_table(name: str) -> None:
    run = parse(LAYOUTS[name])
    assert run.concluded
    assert not run.fragments
    assert not run.missing_rows
    assert isinstance(gate_busbw(run), Value)
    if name != "ms":  # the unit stands nowhere but in the head
        headless = parse("".join(ln for ln in LAYOUTS[name].splitlines(True) if "algbw" not in ln))
        assert shape(headless)[2] == shape(run)[2]


def ansi(text: str) -> str:
    return "".join(f"\x1b[0m\x1b[1;32m{ln}\x1b[K\x1b[0m\n" for ln in text.split("\n")[:-1])


def before(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{ln}\n" for ln in text.split("\n")[:-1])


PREFIXES = ("[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-spark01-7@1,0]<stdout>: ", "[0]<stdout>:", "0: ", " 0: ", "[0] ",
            "[pod/nccl-launcher-x7/main] ", "launcher-1  | ", "2026-11-29T18:16:39.123456789Z ", "[2026-11-29 18:16:39] ",
            "2026-11-29T18:16:39.1Z stdout F ", "Nov 29 18:16:39 ", "Nov 29 18:16:39 spark01 ft-run[77]: ", "> ", "18:16:39.123 ",
            "[pod/a/b] 2026-11-29T18:16:39Z [1,0]<stdout>:")


@pytest.mark.parametrize("name", [*CONCLUDED, "mpi_killed.txt", "toomany.txt", "badarg.txt", "healthy"])
def test_prefixes_colours_and_line_ends_change_nothing(name: str) -> None:
    text = HEALTHY if name == "healthy" else capture(name)
    want = shape(parse(text))
    for made in (ansi(text), text.replace("\n", "\r\n"), *(before(p, text) for p in PREFIXES)):
        assert shape(parse(made)) == want
    named = "".join(f"{n}:{ln}\n" for n, ln in enumerate(text.split("\n")[:-1], 1))
    assert shape(parse(named)) == want  # grep -n


def test_a_row_that_is_gone_is_missed() -> None:
    text = capture("nvlink.txt")
    lines = text.splitlines(True)
    for gone in range(334, 348):
        run = parse("".join(lines[:gone] + lines[gone + 1:]))
        assert (len(run.rows), run.missing_rows) == (13, 1)
        assert isinstance(gate_busbw(run), Unreadable)


def test_reduced_sizes_json_path_and_library_line() -> None:
    reduced = parse(HEALTHY.replace("#\n#   ", "#\n# Reducing maxBytes to 134217728 due to memory limitation\n#\n#   ", 1))
    assert reduced.reduced_bytes == 134217728
    assert parse(capture("socket.txt")).json_path == "out/socket.json"
    assert parse(HEALTHY.replace("nccl-library=23007", "nccl-library=2804")).nccl == Value("2.8.4")
    assert parse("NCCL version 2.21.5+cuda11.8\n" + OLD_ERROR).nccl == NOT_SAID  # of whatever came before
    assert parse(OLD_ERROR.replace("#\n#   ", "#\nNCCL version 2.11.4+cuda11.4\n#   ")).nccl == Value("2.11.4")


def test_several_runs_in_one_text() -> None:
    names = (*CONCLUDED, "help.txt", "mpi_killed.txt", "badarg.txt", "toomany.txt", "timeout.txt")
    text = "".join(capture(n) for n in names)
    runs = parse_all(text)
    assert [shape(r) for r in runs] == [shape(parse(capture(n))) for n in names]
    assert runs[0].lines[0] == 1
    assert all(a.lines[1] + 1 == b.lines[0] for a, b in pairwise(runs))
    assert parse(text).others == len(names) - 1
    unended = re.sub(r"(?m)^rc=\d+\n", "", text)
    assert [shape(r)[2] for r in parse_all(unended)] == [shape(r)[2] for r in runs]
    assert len(parse_all(HEALTHY + HEALTHY)) == 2
    assert len(parse_all(ROW + FOOT + ROW + FOOT)) == 2


def test_processes_without_mpi_are_runs_of_their_own() -> None:
    heads = [before(f"[1,{r}]<stdout>:", HEALTHY) for r in range(3)]
    mixed = "".join("".join(part) for part in zip(*(h.splitlines(True) for h in heads), strict=True))
    runs = parse_all(mixed)
    assert len(runs) == 3
    assert all(shape(r) == shape(parse(HEALTHY)) for r in runs)


@pytest.mark.parametrize("text", ["", "\n", "hello\n", "srun: error: x\n", "Killed\n", "rc=0\n", "1 2 float\n", "#\n", "\0" * 1000,
                                  "# nThread\n"])
def test_text_of_something_else_is_no_run(text: str) -> None:
    assert parse_all(text) == ()
    run = parse(text)
    assert not run.concluded
    assert not run.rows
    assert isinstance(gate_busbw(run), (Unreadable, Absent))


def test_long_and_hostile_lines_take_no_time_and_give_nothing() -> None:
    for unit in ("[", "\x1b[", "9" * 400 + " ", "a" * 300 + " ", ":1:1 NCCL INFO ", "# Rank ", "# Out of bounds values", "\x1b]",
                 "$ x_perf ", "1,1]["):
        assert not parse((unit * 60_000)[:60_000]).rows
        assert not parse("\n".join([(unit * 8_000)[:16_000]] * 4)).rows


@settings(max_examples=300, deadline=None)
@given(st.text(), st.lists(st.sampled_from(HEALTHY.splitlines(True) + OLD_ERROR.splitlines(True)), max_size=40))
def test_any_text_is_answered(text: str, lines: list[str]) -> None:
    for made in (text, text.join(lines), "".join(lines) + text):
        parse_all(made)
        run = parse(made)
        assert run.lines[0] <= run.lines[1]
