"""What fabrictool's own AllReduce over PyTorch prints."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.collective.result import gate_busbw
from fabrictool.collective.rows import NOT_RUN
from fabrictool.collective.tests_own import parse
from fabrictool.model import Code, Status, Unreadable, Value
from tests.collective.judging import ASKED, FLEET, NODES, at, bad, judged, passes
from tests.collective.samples import MIB256

DOC: dict[str, Any] = {
    "fabrictool": "allreduce", "format": 1, "size_bytes": MIB256, "ranks": 4, "warmup": 5, "iterations": 20, "verify": 1,
    "time_us": 17600.0, "algbw_gbytes_per_s": 15.2520, "busbw_gbytes_per_s": 22.8780, "wrong": 0, "torch": "2.9.0", "cuda": "13.0",
    "nccl": "2.28.9", "hostnames": list(FLEET.nodes), "devices": ["NVIDIA GB10"] * 4,
}
OUT = json.dumps(DOC, sort_keys=True) + "\n"
STEPS = [f"fabrictool-allreduce: rank {r} on spark0{r + 1}: {step}\n" for r in range(4) for step in ("starting", "warmed up", "timed")]


def made(**changes: object) -> str:
    return json.dumps({**DOC, **changes}, sort_keys=True) + "\n"


def test_a_healthy_line_passes() -> None:
    run = parse("spark01:9:9 [0] NCCL INFO x\n" + OUT, STEPS)
    findings = judged(run)
    assert bad(findings) == []
    assert (run.ranks, run.hosts, run.nccl, run.version) == (Value(4), FLEET.nodes, Value("2.28.9"), Value("torch 2.9.0"))
    assert run.rows[0].out_of_place == NOT_RUN
    assert gate_busbw(run) == Value(22.878)
    assert at(findings, "ranks").got == "4 ranks on 4 nodes"


@pytest.mark.parametrize(("out", "errors", "rc", "code"), [
    ("", [], 0, Code.NO_RESULT), (OUT[:-30], [], 0, Code.NO_RESULT), (made(verify=0), [], 0, Code.NO_RESULT),
    (made(ranks=5), [], 0, Code.NO_RESULT), (made(format=2), [], 0, Code.NO_RESULT), (made(time_us="x"), [], 0, Code.NO_RESULT),
    ("", STEPS, 137, Code.RANK_DIED), ("", STEPS, 124, Code.RUN_TIMEOUT),
    ("", [s for s in STEPS if "starting" in s], 124, Code.INIT_HANG),
    ("", [STEPS[0] + "Timeout (0:00:30)!\n"], 1, Code.INIT_HANG),
    ("", [*STEPS, "Timeout (0:00:30)!\n"], 1, Code.RUN_TIMEOUT),
    ("", ["fabrictool-allreduce: rank 1 on spark02: there are 0 GPUs here, and this is the rank of GPU 0\n"], 4, Code.TOO_FEW_GPUS),
    ("", ["fabrictool-allreduce: rank 1 on spark02: PyTorch cannot be imported by /usr/bin/python3: x\n"], 3, Code.LAUNCH_FAILED),
    ("", ["fabrictool-allreduce: rank 1 on spark02: failed: DistBackendError: NCCL error\n"], 5, Code.NO_RESULT),
    ("", ["allreduce.py: error: --size must be a multiple of 4\n"], 2, Code.BAD_ARGUMENT),
])
def test_no_result(out: str, errors: list[str], rc: int, code: Code) -> None:
    run = parse(out, errors)
    ended = at(judged(run, rc=rc), "ended")
    assert (ended.code, ended.status) == (code, Status.FAIL)
    assert ended.subject == (NODES["spark02"] if errors and "on spark02: " in errors[0] else FLEET)
    assert isinstance(gate_busbw(run), Unreadable)


def test_wrong_results_and_contradictions() -> None:
    assert bad(judged(parse(made(wrong=3)), rc=7)) == [(Code.WRONG_RESULT, Status.FAIL)]
    assert isinstance(gate_busbw(parse(made(busbw_gbytes_per_s=92.9))), Unreadable)
    assert isinstance(gate_busbw(parse(made(time_us=1760.0))), Unreadable)
    assert bad(judged(parse(OUT + OUT))) == [(Code.RESULT_UNPARSED, Status.UNKNOWN)]


def test_flips_and_cuts_pass_nothing_new() -> None:
    whole, chance = passes(judged(parse(OUT))), random.Random(5)
    for end in range(len(OUT) - 1):
        assert not parse(OUT[:end]).concluded
    for _ in range(1000):
        at_byte = chance.randrange(len(OUT))
        text = OUT[:at_byte] + chr(ord(OUT[at_byte]) ^ (1 << chance.randrange(8))) + OUT[at_byte + 1:]
        run = parse(text)
        assert passes(judged(run, ASKED)) <= whole
        gate = gate_busbw(run)
        assert isinstance(gate, Unreadable) or gate == Value(22.878) or (isinstance(gate, Value) and abs(gate.value - 22.878) < 1)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.dictionaries(st.sampled_from(sorted(DOC)), st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text())))
def test_anything_is_answered(text: str, changes: dict[str, object]) -> None:
    for out in (text, made(**changes), text + OUT):
        parse(out, [text, out])
