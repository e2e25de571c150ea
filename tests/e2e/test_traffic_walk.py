"""Four lab Sparks pass with numbers; faults that a run lives through flip them to their rows' codes, and name the node, rail or port. The
same verdicts come from the bundle of each run. docs/faults.md is the same table; test_traffic_broken.py walks its other rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.lab.faults import Fault, inject
from fabrictool.lab.handle import Lab
from tests.e2e import fleet, traffic

pytestmark = pytest.mark.lab
MINE = [f for f in traffic.ROWS if traffic.judged(f)]


@pytest.fixture(scope="module")
def kept() -> Iterator[Lab]:
    with traffic.configured("traffic") as lab:
        yield lab


def test_healthy_sparks_pass_with_numbers(kept: Lab, tmp_path: Path) -> None:
    traffic.passes(kept, tmp_path / "healthy.tar.gz")


@pytest.mark.parametrize("fault", MINE, ids=[f.name for f in MINE])
def test_each_fault_is_told_as_its_row_says(kept: Lab, fault: Fault, tmp_path: Path) -> None:
    traffic.told(kept, fault, tmp_path / "bundle.tar.gz")


def test_pairs_find_the_degraded_nic(kept: Lab) -> None:
    """A ring of four tells only that one of them is slow; the finding says to try pairs."""
    kept.restore()
    inject(kept, traffic.WHERE, "nic-13g")
    well, sick = (fleet.tool("check", "allreduce", "rails", "-i", traffic.spec(kept), "-l", f"spark01,{other}", "-o", "json")
                  for other in ("spark03", traffic.WHERE))
    assert well.rc == 0, traffic.lines(well)
    assert sick.rc == 1
    assert [code for _, code, _ in traffic.found(sick, "rails")] == ["NIC_DEGRADED"]


def test_when_all_faults_are_gone_the_fleet_passes_again(kept: Lab, tmp_path: Path) -> None:
    kept.restore()
    traffic.passes(kept, tmp_path / "again.tar.gz")


def test_no_fault_of_traffic_is_left_out() -> None:
    assert {f.name for f in MINE} == {
        "tcp-fallback", "tcp-fast", "rail-idle", "nic-13g", "counters-frozen", "wrong-priority", "packets-lost", "wrong-result",
        "gpu-desktop"}
