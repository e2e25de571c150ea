"""The small PyTorch program, run for real with a PyTorch of a few lines: what it prints, and how it ends when something is wrong."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fabrictool.node
from tests.node.torches import fake

PROGRAM = Path(str(fabrictool.node.__file__)).with_name("allreduce.py")
ENV = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
ARGS = ("--size", "4096", "--warmup", "5", "--iterations", "20", "--verify", "1", "--deadline", "30")


def run(folder: Path, *args: str, fault: str = "", torch: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    path = str(fake(folder)) if torch else ""
    return subprocess.run([sys.executable, "-S", "-B", str(PROGRAM), *(args or ARGS)], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": path, "FAKE_FAULT": fault, **ENV, **env}, timeout=60)


def test_it_prints_one_line_of_json(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    got = json.loads(line)
    assert (got["fabrictool"], got["format"]) == ("allreduce", 1)
    assert (got["size_bytes"], got["ranks"], got["warmup"], got["iterations"], got["verify"]) == (4096, 1, 5, 20, 1)
    assert got["time_us"] == pytest.approx(2000)
    assert got["algbw_gbytes_per_s"] == pytest.approx(4096 / 0.002 / 1e9, abs=1e-4)
    assert got["busbw_gbytes_per_s"] == 0  # one rank sends nothing
    assert (got["wrong"], got["torch"], got["nccl"], got["cuda"]) == (0, "2.9.9+fake", "2.28.9", "13.0")
    assert len(got["hostnames"]) == 1
    assert got["devices"] == ["NVIDIA Fake"]


def test_it_calls_the_collective_as_often_as_the_facts_say(tmp_path: Path) -> None:
    from fabrictool.prove.facts import AllReduce

    facts = AllReduce("direct", "torch", 4096, 5, 20, 1, ("a",), ("run1",))
    assert f"calls: {facts.calls} of {{4096}}" in run(tmp_path).stderr


@pytest.mark.parametrize(("fault", "rc", "said"), [
    ("broken", 3, "PyTorch cannot be imported by"), ("driver", 3, "CUDA driver version is insufficient"),
    ("no-gpu", 3, "finds no CUDA device"), ("refused", 5, "RuntimeError: NCCL error: remote process exited"),
])
def test_what_is_wrong_is_the_last_line(tmp_path: Path, fault: str, rc: int, said: str) -> None:
    done = run(tmp_path, fault=fault)
    assert (done.returncode, done.stdout) == (rc, "")
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_without_pytorch_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, torch=False)
    assert done.returncode == 3
    assert "No module named 'torch'" in done.stderr


def test_a_wrong_result_is_counted_and_fails(tmp_path: Path) -> None:
    done = run(tmp_path, fault="wrong")
    assert done.returncode == 7
    assert json.loads(done.stdout)["wrong"] == 1


def test_more_ranks_than_gpus(tmp_path: Path) -> None:
    done = run(tmp_path, LOCAL_RANK="1")
    assert (done.returncode, done.stdout) == (4, "")
    assert "1 GPUs here, and this is the rank of GPU 1" in done.stderr


def test_its_own_deadline_shows_where_it_hangs(tmp_path: Path) -> None:
    done = run(tmp_path, *ARGS[:-1], "1", fault="hangs")
    assert done.returncode == 1
    assert "init_process_group" in done.stderr


@pytest.mark.parametrize(("fault", "where"), [("hangs", "init_process_group"), ("never-meets", "in all_reduce")])
def test_a_start_has_a_limit_of_its_own(tmp_path: Path, fault: str, where: str) -> None:
    done = run(tmp_path, *ARGS, "--start", "1", fault=fault)
    assert done.returncode == 1
    assert "Timeout (0:00:01)!" in done.stderr
    assert where in done.stderr


def test_after_the_first_call_its_start_is_over(tmp_path: Path) -> None:
    assert run(tmp_path, *ARGS, "--start", "1", fault="slow").returncode == 0


def test_after_the_first_call_the_deadline_counts(tmp_path: Path) -> None:
    done = run(tmp_path, *ARGS[:-1], "2", "--start", "1", fault="stalls")
    assert done.returncode == 1
    assert "Timeout (0:00:0" in done.stderr
    assert "group made" in done.stderr


@pytest.mark.parametrize(("args", "env", "said"), [
    (("--size", "6", *ARGS[2:]), {}, "multiple of 4"), (("--size", "4096"), {}, "required"),
    ((*ARGS[:2], "--warmup", "-1", *ARGS[4:]), {}, "--warmup must be at least 0"),
    (ARGS, {"MASTER_ADDR": ""}, "not set in the environment: MASTER_ADDR"), (ARGS, {"RANK": "x"}, "no numbers in the environment: RANK"),
])
def test_wrong_arguments(tmp_path: Path, args: tuple[str, ...], env: dict[str, str], said: str) -> None:
    done = run(tmp_path, *args, **env)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_oldest_python_of_nodes_can_read_it() -> None:
    text = PROGRAM.read_text(encoding="ascii")
    tree = ast.parse(text, feature_version=(3, 8))
    top = {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    assert "torch" not in top
    assert top <= set(sys.stdlib_module_names)
