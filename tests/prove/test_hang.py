"""`hang`: stacks of jobs that really hung, put together to jobs over two nodes; each cause, and jobs that only look like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Code, Evidence, Finding, Reason, Status, SubjectKind, Unproven, Unreadable
from fabrictool.prove import Case, hang
from fabrictool.snapshot import Captured, Recording
from fabrictool.system.sockets import Socket, is_loopback, parse
from tests.system.jobs import CAPTURES, CLOCK, LISTEN, Proc, job
from tests.system.nodes import fleet

IDLE = "exchange-1-native"
ENGINE = ("Process 9: python3\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 9 (idle): \"MainThread\"\n"
          "    acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:512)\n    <module> (worker.py:1)\n")


def judged(case: Case) -> list[Finding]:
    return [s for s in hang.judge(case) if isinstance(s, Finding)]


def bad(case: Case) -> list[tuple[Code, Status, tuple[str, ...]]]:
    return [(f.code, f.status, f.subject.nodes) for f in judged(case) if f.bad]


def two(one: Proc, other: Proc, **more: object) -> Case:
    return job({"spark01": [one], "spark02": [other]}, **more)  # type: ignore[arg-type]


def test_a_job_whose_data_moves_passes() -> None:
    said = list(hang.judge(two(Proc(100, 0), Proc(200, 1))))
    assert [(f.status, f.code) for f in said if isinstance(f, Finding)] == [(Status.PASS, Code.RANK_HANGS)]
    assert [s for s in said if isinstance(s, Evidence)] == [Evidence("processes", 2)]
    assert any("look twice" in s.text for s in said if isinstance(s, Unproven))


def test_ranks_that_wait_alike_while_nothing_moves() -> None:
    case = two(Proc(100, 0), Proc(200, 1), moving=0)
    assert bad(case) == [(Code.RANK_HANGS, Status.WARN, ("spark01", "spark02"))]
    assert [s for _, s, _ in bad(two(Proc(100, 0), Proc(200, 1), moving=None))] == [Status.UNKNOWN]


def test_one_rank_stands_apart_and_the_others_wait_for_it() -> None:
    """A real job: rank 1 slept while rank 0 waited in cudaDeviceSynchronize."""
    case = two(Proc(100, 0, "data-0-native"), Proc(200, 1, "data-1-native"))
    (one,) = [f for f in judged(case) if f.bad]
    assert (one.code, one.status, one.subject.nodes) == (Code.RANK_HANGS, Status.FAIL, ("spark02",))
    assert "rank 1" in one.got
    assert "1 in data" in one.why
    many = {f"spark0{n}": [Proc(100 * n, n - 1, IDLE if n == 3 else "data-0-native")] for n in range(1, 5)}
    assert bad(job(many, count=4)) == [(Code.RANK_HANGS, Status.FAIL, ("spark03",))]


@pytest.mark.parametrize(("stack", "said"), [
    ("store-0-native", "never came to the store"), ("exchange-0-native", "has not published its address"),
    ("ncclinit-0-native", "a rank is missing"), ("exchange-0-plain", "a process group is being made"),
])
def test_a_start_that_does_not_end(stack: str, said: str) -> None:
    case = two(Proc(100, 0, stack), Proc(200, 1, stack))
    (one,) = [f for f in judged(case) if f.bad]
    assert (one.code, one.status, one.subject.kind) == (Code.INIT_HANG, Status.FAIL, SubjectKind.FLEET)
    assert said in one.why
    young = two(Proc(100, 0, stack, born=CLOCK - 20), Proc(200, 1, stack, born=CLOCK - 25))
    assert [(c, s) for c, s, _ in bad(young)] == [(Code.BLOCKED, Status.UNKNOWN)]


def test_a_rank_that_sleeps_while_the_other_starts_is_named() -> None:
    """Real jobs, both: the one that waits is not the one at fault."""
    for case_name in ("exchange", "ncclinit"):
        found = bad(two(Proc(100, 0, f"{case_name}-0-native"), Proc(200, 1, f"{case_name}-1-native")))
        assert found == [(Code.RANK_HANGS, Status.FAIL, ("spark02",))], case_name


def test_a_rank_that_ended_meanwhile() -> None:
    found = bad(two(Proc(100, 0), Proc(200, 1, gone=True)))
    assert found == [(Code.RANK_HANGS, Status.FAIL, ("spark02",))]


def test_a_job_of_which_nothing_was_seen_is_no_pass() -> None:
    """Neither where all of it ended meanwhile, nor where a service runs and none of its processes was found."""
    unseen = (Code.UNREADABLE, Status.UNKNOWN, ("spark01", "spark02"))
    assert bad(two(Proc(100, 0, gone=True), Proc(200, 1, gone=True))) == [unseen]
    service = {"consumers": ["systemd:vllm", "docker:vllm-*"]}
    case = two(Proc(100, 0), Proc(200, 1), env=service)
    assert not bad(case)
    for node in case.wants:
        running = case.snaps[node].sections["consumers"].out.replace("\nend\n", "\nu 77 vllm.service\nend\n")
        case = replace(case, snaps={**case.snaps, node: replace(case.snaps[node], sections={
            **case.snaps[node].sections, "consumers": Captured(0, running)})})
    assert bad(case) == [unseen]


def test_an_engine_that_waits_for_requests_does_not_hang() -> None:
    idle = ENGINE.replace("Process 9", "Process 100").replace("Thread 9", "Thread 100")
    other = ENGINE.replace("Process 9", "Process 200").replace("Thread 9", "Thread 200")
    assert not bad(job({"spark01": [Proc(100, None, idle)], "spark02": [Proc(200, None, other)]}, moving=0))


def test_helpers_without_a_gpu_are_no_ranks() -> None:
    case = job({"spark01": [Proc(100, None), Proc(101, None, IDLE, gpu=None)], "spark02": [Proc(200, None)]})
    assert not bad(case)


def test_without_a_tool_there_is_no_verdict() -> None:
    case = two(Proc(100, 0, None), Proc(200, 1, None))
    assert bad(case) == [(Code.TOOL_MISSING, Status.UNKNOWN, ("spark01",)), (Code.TOOL_MISSING, Status.UNKNOWN, ("spark02",))]
    assert all("py-spy" in f.remedy for f in judged(case) if f.bad)


def test_what_cannot_be_read_is_unknown() -> None:
    case = two(Proc(100, 0), Proc(200, 1))
    nothing = replace(case, recordings={})
    assert [(f.status, f.path) for f in judged(nothing)] == [(Status.UNKNOWN, "hang.read")]
    broken = replace(case, recordings={"hang": Recording("hang", error=Unreadable(Reason.FAILED, "x"))})
    assert [f.status for f in judged(broken)] == [Status.UNKNOWN]
    taken = case.recordings["hang"]
    lost = {**taken.takes["now"]}
    del lost["spark02"]
    part = replace(case, recordings={"hang": replace(taken, takes={"now": lost})})
    assert (Code.UNREADABLE, Status.UNKNOWN, ("spark02",)) in bad(part)
    denied: Mapping[str, Mapping[str, Captured | None]] = {"spark02": {"hang.stack[200]": Captured(1, "", denied=True)}}
    assert (Code.UNREADABLE, Status.UNKNOWN, ("spark02",)) in bad(two(Proc(100, 0), Proc(200, 1), changed=denied))


def test_what_is_not_named_or_does_not_run() -> None:
    none = fleet(count=2, env={"write": [], "consumers": []})
    assert [f.status for f in judged(none)] == [Status.SKIP]
    assert [f.status for f in judged(job({}))] == [Status.PASS]
    assert any("was there to be looked at" in said.text for said in hang.judge(job({})) if isinstance(said, Unproven))


def test_sockets() -> None:
    text = (LISTEN.format(at="127.0.0.53%lo:53", pid=1) + LISTEN.format(at="[::ffff:127.0.0.1]:5", pid=2).replace("0.0.0.0:*", "*:*")
            + "ESTAB 0 0 10.0.0.1:22 10.0.0.2:5000\n")
    rows = parse(text)
    assert not isinstance(rows, Unreadable)
    assert [r.loopback for r in rows] == [True, True, False]
    assert rows[2] == Socket("ESTAB", "10.0.0.1", 22, "10.0.0.2", 5000, frozenset())
    assert rows[0].pids == {1}
    assert isinstance(parse("garbage\n"), Unreadable)
    assert parse("") == ()
    assert is_loopback("localhost")
    assert not is_loopback("spark01")


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["stack", "env", "hosts", "log", "sockets"]), st.integers(0, 900), st.integers(0, 0x10ff), st.text(max_size=80))
def test_damage_never_raises_and_a_cut_stack_never_passes(what: str, at: int, char: int, text: str) -> None:
    healthy = Proc(200, 1).sections("spark02", "10.10.1.2", 2)[f"hang.{what}[200]"].out
    for damaged in (healthy[:at], healthy[:at] + chr(char) + healthy[at + 1:], text):
        case = two(Proc(100, 0), Proc(200, 1), changed={"spark02": {f"hang.{what}[200]": Captured(0, damaged)}})
        found = judged(case)
        assert found
        if what == "stack" and damaged == healthy[:at] and damaged != healthy:
            assert any(f.status is not Status.PASS for f in found)
    assert Path(CAPTURES).is_dir()
