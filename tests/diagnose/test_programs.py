"""What launchers and programs around NCCL print when they end."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Status
from tests.diagnose.table import codes, findings, of_text

SLURM = "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\n"
HEAD = "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: all_reduce_perf\n"


@pytest.mark.parametrize("text", [
    SLURM, SLURM.replace("\n", "\r\n"), SLURM[:52],
    "slurmstepd: error: Detected 2 oom-kill event(s) in step 7.0 cgroup. Some of your processes may have been killed by the cgroup"
    " out-of-memory handler.\n",
    "srun: error: spark02: task 1: Out Of Memory\n",
])
def test_slurm_tells_of_the_memory_limit(text: str) -> None:
    (one,) = [f for f in findings(of_text(text)) if f.bad]
    assert (one.code, one.status) == (Code.OOM_KILLED, Status.FAIL)
    assert "memory limit" in one.why
    assert "--mem" in one.remedy
    assert text.strip()[:40] in one.lines[0]
    assert "nccl-tests" not in one.want


def test_within_a_run_the_rank_died_of_it() -> None:
    found = [f for f in findings(of_text(HEAD + SLURM)) if f.code is Code.RANK_DIED]
    assert [(f.status, "memory limit" in f.why) for f in found] == [(Status.FAIL, True)]


@pytest.mark.parametrize("text", [
    "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-29T18:16:39 DUE TO TIME LIMIT ***\n",
    "srun: error: spark02: task 1: Segmentation fault\n",
    SLURM[:30],
])
def test_other_words_of_slurm_are_no_memory_limit(text: str) -> None:
    assert Code.OOM_KILLED not in codes(of_text(text))
