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


TRACE = 'Traceback (most recent call last):\n  File "/srv/train.py", line 3, in <module>\n    import torch\n'
GPU_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.19 GiB is free.\n"


@pytest.mark.parametrize("last", ["torch.OutOfMemoryError: ", "torch.cuda.OutOfMemoryError: ", "RuntimeError: "])
def test_a_rank_that_died_for_want_of_gpu_memory(last: str) -> None:
    for text in (TRACE + last + GPU_MEMORY, f"{TRACE}{last}{GPU_MEMORY}".replace("\n", "\r\n"), last + GPU_MEMORY):
        (one,) = [f for f in findings(of_text(text)) if f.bad]
        assert (one.code, one.status) == (Code.RANK_DIED, Status.FAIL)
        assert "2.00 GiB more where 1.19 GiB of 79.10 GiB was free" in one.why
        assert "nvidia-smi" in one.remedy
    (cut,) = findings(of_text((TRACE + last + GPU_MEMORY)[:-60]))
    assert cut.code is Code.RANK_DIED
    assert "free" not in cut.why


@pytest.mark.parametrize("text", [
    f"{TRACE}torch.OutOfMemoryError: CUDA out\n",
    "WARNING: lower gpu_memory_utilization if you see CUDA out of memory errors\n",
    "caught torch.OutOfMemoryError, trying a smaller batch\n",
])
def test_talk_of_gpu_memory_is_no_death(text: str) -> None:
    (one,) = findings(of_text(text))
    assert (one.code, one.status) == (Code.NOTHING_KNOWN, Status.UNKNOWN)


@pytest.mark.parametrize(("name", "said"), [("torch", "no PyTorch"), ("torch.distributed", "no PyTorch"), ("vllm", "no module vllm")])
def test_a_module_that_is_not_there(name: str, said: str) -> None:
    error = f"ModuleNotFoundError: No module named '{name}'\n"
    for text in (TRACE + error, (TRACE + error).replace("\n", "\r\n"), error):
        (one,) = [f for f in findings(of_text(text)) if f.bad]
        assert (one.code, one.status) == (Code.LAUNCH_FAILED, Status.FAIL)
        assert said in one.why
        assert one.lines[-1].endswith(error.strip())


@pytest.mark.parametrize("text", [
    TRACE, f"{TRACE}ModuleNotFoundError: No module na\n", f"{TRACE}ValueError: batch size\n",
    "INFO torch.distributed: flash_attn is not used (No module named 'flash_attn')\n",
    "INFO torch.distributed: import failed with ModuleNotFoundError: No module named 'flash_attn', going on without\n",
])
def test_other_tracebacks_and_modules_that_are_not_needed(text: str) -> None:
    (one,) = findings(of_text(text))
    assert (one.code, one.status) == (Code.NOTHING_KNOWN, Status.UNKNOWN)
