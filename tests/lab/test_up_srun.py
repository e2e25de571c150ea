"""Real Slurm on lab nodes: srun starts the ranks, which meet by PMIx."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fabrictool.lab import slurm
from fabrictool.lab.handle import Lab
from tests.lab.collective import INTERFACES, sent
from tests.lab.fleet import built, ssh

pytestmark = pytest.mark.lab
NODES = ("spark01", "spark02")
SRUN = ("srun --nodelist=spark01,spark02 --nodes=2 --ntasks=2 --ntasks-per-node=1 --immediate=20 --kill-on-bad-exit=1 --input=none "
        f"--export=ALL,NCCL_SOCKET_IFNAME={INTERFACES[0]}")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    assert slurm.missing() == [], "`./dev test` installs them"
    with built("srun", len(NODES)) as lab:
        slurm.start(lab)
        yield lab


def srun(lab: Lab, words: str) -> tuple[int, str]:
    done = ssh(lab, NODES[0], f"{SRUN} {words}")
    return done.returncode, done.stdout + done.stderr


def test_srun_starts_a_rank_on_every_node(fleet: Lab) -> None:
    before = sent(fleet, "spark02", "rocep1s0f0")
    rc, out = srun(fleet, "--mpi=pmix all_reduce_perf_mpi -b 8M -e 8M -w 5")
    assert rc == 0, out
    assert re.search(r"Rank  1 Group  0 Pid +\d+ on    spark02 device  0", out)
    assert "# Collective test concluded: all_reduce_perf_mpi\n" in out
    assert sent(fleet, "spark02", "rocep1s0f0") - before == 49 * (4194304 + 4096 * 58)


def test_without_pmix_each_task_is_a_job_of_its_own(fleet: Lab) -> None:
    rc, out = srun(fleet, "--mpi=none all_reduce_perf -b 1M -e 1M")
    assert rc == 0
    assert len(re.findall(r"Rank  0 Group", out)) == 2
    assert "Rank  1" not in out


def test_a_rank_that_is_killed_ends_the_job(fleet: Lab) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(srun, fleet, "--mpi=pmix all_reduce_perf -b 8M -e 8M -N 0")
        deadline = time.monotonic() + 30
        while not fleet.state("spark02").qps:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert fleet.exec("spark02", ["kill", "-9", str(fleet.state("spark02").compute[0]["pid"])]).ok
        rc, out = running.result(60)
    assert rc in (137, 143), out  # the killed task's status, or that of the one which Slurm ended for it
    assert "task 1: Killed" in out
    assert "concluded" not in out
    assert fleet.exec("spark01", ["squeue", "-h"]).out == ""
