"""Faults with which a run comes to no result, or to none that can be judged: each gives its row's codes and names the node or pair that
is the cause, not those that wait or follow. The same verdicts come from the bundle of each run. Other rows: test_traffic_walk.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.lab.faults import Fault, inject
from fabrictool.lab.handle import Lab
from tests.e2e import traffic

pytestmark = pytest.mark.lab
MINE = [f for f in traffic.ROWS if not traffic.judged(f)]


@pytest.fixture(scope="module")
def kept() -> Iterator[Lab]:
    with traffic.configured("broken") as lab:
        yield lab


@pytest.mark.parametrize("fault", MINE, ids=[f.name for f in MINE])
def test_each_fault_is_told_as_its_row_says(kept: Lab, fault: Fault, tmp_path: Path) -> None:
    traffic.told(kept, fault, tmp_path / "bundle.tar.gz")


def test_a_busy_gpu_is_used_all_the_same_when_asked_for(kept: Lab, tmp_path: Path) -> None:
    kept.restore()
    inject(kept, traffic.WHERE, "gpu-busy")
    ended = traffic.check(kept, None, tmp_path / "bundle.tar.gz", "--force")
    assert ended.rc == 0, traffic.lines(ended)
    assert traffic.found(ended, "allreduce") == [("warn", "GPU_BUSY", ("node", (traffic.WHERE,), "", ""))]


def test_when_all_faults_are_gone_the_fleet_passes_again(kept: Lab, tmp_path: Path) -> None:
    kept.restore()
    traffic.passes(kept, tmp_path / "again.tar.gz")


def test_no_fault_of_traffic_is_left_out() -> None:
    assert {f.name for f in MINE} == {
        "verbs-missing", "hca-misnamed", "rank-dead", "init-hang", "mtu-hole-pair", "stale-json", "log-missing", "foreign-rdma", "firewall",
        "gpu-busy"}
