"""Our own PyTorch program on lab nodes, in the environment that each of them has for it: started by us, with no MPI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fabrictool.lab.factory import VENV
from fabrictool.lab.handle import Lab
from fabrictool.lab.inside import Done
from tests.lab.collective import DEVICES, INTERFACES, sent
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
NODES = ("spark01", "spark02")
PROGRAM = Path(__file__).parents[2] / "fabrictool" / "node" / "allreduce.py"
HEAD = "192.168.1.11"
# 5 + 1 + 20 + 1 collectives of 8 MiB, half of it by each device, in packets of 1024 bytes with 58 of headers
ON_WIRE = 27 * (4194304 + 4096 * 58)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    with built("torch", len(NODES)) as lab:
        for node in NODES:
            lab.write_file(node, "/opt/allreduce.py", PROGRAM.read_bytes())
        lab.keep()
        yield lab


@pytest.fixture
def two(fleet: Lab) -> Lab:
    fleet.restore()
    return fleet


def ranks(lab: Lab, env: Mapping[str, str] | None = None, deadline: int = 20, nodes: tuple[str, ...] = NODES) -> list[Done]:
    def one(rank: int, node: str) -> Done:
        more = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(len(nodes)), "MASTER_ADDR": HEAD, "MASTER_PORT": "29511",
                "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/tmp/torch.%h.log", "NCCL_SOCKET_IFNAME": INTERFACES[0], **(env or {})}
        words = ["--size", "8388608", "--warmup", "5", "--iterations", "20", "--verify", "1", "--deadline", str(deadline)]
        return lab.exec(node, ["env", *(f"{k}={v}" for k, v in more.items()), f"{VENV}/bin/python", "-u", "/opt/allreduce.py", *words])

    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(one, range(len(nodes)), nodes))


def test_our_program_runs_times_and_verifies(two: Lab) -> None:
    first, second = ranks(two)
    assert (first.rc, second.rc) == (0, 0), first.err + second.err
    found = json.loads(first.out)
    assert second.out == ""
    assert 22.0 < found["busbw_gbytes_per_s"] < 23.0
    assert (found["wrong"], found["ranks"], found["nccl"], found["hostnames"]) == (0, 2, "2.28.9", list(NODES))
    assert found["devices"] == ["NVIDIA GB10"] * 2
    assert "stand.in" in found["torch"]
    assert [sent(two, node, d) for node in NODES for d in DEVICES] == [ON_WIRE] * 4
    log = two.read_file("spark01", "/tmp/torch.spark01.log") or ""
    assert "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1\n" in log
    assert "Destroy COMPLETE" in log
    assert two.state("spark01").compute == []


def test_wrong_results_are_found(two: Lab) -> None:
    with two.edit_state("spark02") as state:
        state.wrong_elements = 3
    first = ranks(two)[0]
    assert first.rc == 7
    assert json.loads(first.out)["wrong"] > 0


def test_a_failing_library_is_an_error_in_pytorchs_words(two: Lab) -> None:
    first, second = ranks(two, {"NCCL_NET": "IB", "NCCL_IB_HCA": "none"})
    assert {first.rc, second.rc} == {5}
    assert "DistBackendError: NCCL error in: " in first.err
    assert "ncclInvalidUsage" in first.err


def test_a_rank_that_is_not_there_is_waited_for_until_the_deadline(two: Lab) -> None:
    with two.edit_state("spark02") as state:
        state.gpu_ok = False
    first, second = ranks(two, deadline=4)
    assert (first.rc, second.rc) == (1, 1)
    assert "bootstrap.py" in first.err  # its stack


def test_without_a_gpu_it_says_so(two: Lab) -> None:
    with two.edit_state("spark01") as state:
        state.gpus = 0
    done = two.exec("spark01", ["env", "RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", f"MASTER_ADDR={HEAD}", "MASTER_PORT=29512",
                                f"{VENV}/bin/python", "/opt/allreduce.py", "--size", "8", "--warmup", "0", "--iterations", "1",
                                "--verify", "1", "--deadline", "9"])
    assert done.rc == 3
    assert "finds no CUDA device" in done.err
