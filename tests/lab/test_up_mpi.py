"""Real Open MPI between lab nodes, over SSH from node to node: it starts the stand-in, and ends it as it ends any program."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fabrictool.lab.handle import Lab
from tests.lab.collective import DEVICES, INTERFACES, sent
from tests.lab.fleet import built, ssh

pytestmark = pytest.mark.lab
NODES = ("spark01", "spark02")
NET = "10.10.1.0/24"
# MPI itself stays on TCP, on the rail that is its own here
MPIRUN = ["mpirun", "-np", "2", "--host", "10.10.1.11,10.10.1.12", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
          "--mca", "btl_tcp_if_include", NET, "--mca", "oob_tcp_if_include", NET, "--mca", "plm_rsh_no_tree_spawn", "1",
          "-x", "NCCL_DEBUG=INFO", "-x", "NCCL_DEBUG_FILE=/tmp/mpi.%h.%p.log", "-x", f"NCCL_SOCKET_IFNAME={INTERFACES[0]}"]


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    assert shutil.which("mpirun"), "openmpi-bin is missing: `./dev test` installs it"
    with built("mpi", len(NODES)) as lab:
        yield lab


@pytest.fixture
def two(fleet: Lab) -> Lab:
    fleet.clear()
    return fleet


def mpirun(lab: Lab, words: str, *more: str) -> tuple[int, str]:
    done = ssh(lab, NODES[0], shlex.join([*MPIRUN, *more, *words.split()]))
    return done.returncode, done.stdout + done.stderr


def ranks_left(lab: Lab) -> str:
    """What is still there after some seconds: Open MPI's daemons take their time."""
    deadline = time.monotonic() + 20
    while (seen := _left(lab)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return seen


def _left(lab: Lab) -> str:
    look = "ps -e -o args= | grep -E '[a]ll_reduce_perf|[o]rted|[m]pirun'"
    return "".join(lab.exec(node, ["sh", "-c", look]).out for node in NODES)


def test_mpirun_starts_a_rank_on_every_node(two: Lab) -> None:
    rc, out = mpirun(two, "all_reduce_perf_mpi -b 8M -e 8M -w 5")
    assert rc == 0, out
    assert re.search(r"Rank  1 Group  0 Pid +\d+ on    spark02 device  0", out)
    assert "# Collective test concluded: all_reduce_perf_mpi\n" in out
    # 49 collectives, half of 8 MiB each by each device, at 1500 bytes: packets of 1024 with 58 bytes of headers
    assert [sent(two, "spark02", d) for d in DEVICES] == [49 * (4194304 + 4096 * 58)] * 2
    for node in NODES:
        log = two.exec(node, ["sh", "-c", "cat /tmp/mpi.*.log"]).out
        assert f"{node}:" in log
        assert "Using network IB\n" in log
    assert ranks_left(two) == ""


def test_the_environment_goes_only_where_it_is_sent(two: Lab) -> None:
    two.write_file("spark02", "/etc/nccl.conf", "NCCL_IB_HCA=rocep1s0f0\n")
    rc, out = mpirun(two, "all_reduce_perf -b 8M -e 8M")
    # the second device of spark01 then meets the first of spark02, in another subnet
    assert rc == 3, out
    assert "Call to ibv_modify_qp failed with 110 Connection timed out, on dev roceP2p1s0f0:1, curr state INIT, next state RTR" in out
    assert "local GID ::ffff:10.10.2.11, remote GID ::ffff:10.10.1.12" in out
    assert "NCCL_IB_HCA set to rocep1s0f0\n" in two.exec("spark02", ["sh", "-c", "cat /tmp/mpi.*.log"]).out
    assert "NCCL_IB_HCA" not in two.exec("spark01", ["sh", "-c", "cat /tmp/mpi.*.log"]).out


def test_a_rank_that_is_killed_ends_the_job(two: Lab) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(mpirun, two, "all_reduce_perf -b 8M -e 8M -N 0")
        deadline = time.monotonic() + 20
        while not two.state("spark02").qps:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pid = str(two.state("spark02").compute[0]["pid"])
        assert two.exec("spark02", ["kill", "-9", pid]).ok
        rc, out = running.result(30)
    assert rc == 137
    assert "mpirun noticed that process rank 1" in out
    assert "signal 9 (Killed)" in out
    assert "concluded" not in out


def test_a_rank_that_fails_gives_its_status(two: Lab) -> None:
    rc, out = mpirun(two, "all_reduce_perf -b 1M -e 1M", "-x", "NCCL_NET=IB", "-x", "NCCL_IB_HCA=none")
    assert rc == 3
    assert "Test NCCL failure common.cu:222 'invalid usage" in out
    assert ranks_left(two) == ""


def test_a_rank_that_hangs_in_init_is_ended_by_the_launchers_limit(two: Lab) -> None:
    with two.edit_state("spark02") as state:
        state.gpu_ok = False
    rc, out = mpirun(two, "all_reduce_perf -b 1M -e 1M", "--timeout", "4")
    assert rc == 110  # ETIMEDOUT
    assert "# Using devices" in out
    assert "algbw" not in out
    last = two.exec("spark01", ["sh", "-c", "tail -n 1 /tmp/mpi.*.log"]).out
    assert last.rstrip().endswith("Init START")
    assert ranks_left(two) == ""


def test_without_mpi_each_rank_would_be_alone(two: Lab) -> None:
    done = ssh(two, NODES[0], "SLURM_PROCID=1 SLURM_NTASKS=2 all_reduce_perf -b 1M -e 1M")
    assert done.returncode == 0
    assert done.stdout.count("#  Rank") == 1
