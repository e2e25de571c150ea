"""Where comparisons turn: one step on either side of each limit. Bytes are worked out from the table of `recordings`, by hand."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Status
from fabrictool.prove import lossless_priority, rdma_counters
from tests.prove.fleets import A, B, h20s, sparks
from tests.prove.recordings import CONTROL, IDLE_S, RUN_S, WIRE, WIRE_H20, control
from tests.prove.verdicts import verdict

FAIL, WARN, UNKNOWN, PASS = Status.FAIL, Status.WARN, Status.UNKNOWN, Status.PASS
NODE = "spark02"


@pytest.mark.parametrize(("share", "code", "status"), [
    (0.009, Code.COUNTERS_FLAT, FAIL), (0.011, Code.COUNTERS_SHORT, FAIL), (0.969, Code.COUNTERS_SHORT, FAIL),
    (0.971, None, PASS), (1.149, None, PASS), (1.151, Code.FOREIGN_TRAFFIC, UNKNOWN)])
@pytest.mark.parametrize("way", ["tx", "rx"])
def test_bytes_of_a_run(share: float, code: Code | None, status: Status, way: str) -> None:
    fleet = sparks(4)
    for device in (A, B):
        setattr(fleet.flow("run2", NODE, device), way, round(WIRE[4] * share / 2))
    got = verdict(rdma_counters.judge, fleet)
    path = f"rdma_counters.bytes.{way}" if code else f"rdma_counters.bytes.run2.{way}"
    assert {f.status for f in got.at(path) if f.subject.nodes == (NODE,)} == {status}
    assert got.codes == ({(code, status)} if code else set())


@pytest.mark.parametrize(("share", "code", "status"), [
    (0.29, Code.RAIL_IDLE, FAIL), (0.31, Code.RAIL_IDLE, WARN), (0.69, Code.RAIL_IDLE, WARN), (0.71, None, PASS)])
@pytest.mark.parametrize("way", ["tx", "rx"])
def test_share_of_the_mean(share: float, code: Code | None, status: Status, way: str) -> None:
    """One of eight rails with that share of the mean, in one direction; the other seven carry the rest."""
    fleet = h20s()
    mean = WIRE_H20 * 1.02 / 8
    for device in fleet.rails:
        setattr(fleet.flow("run1", "gpu01", device), way, round(mean * (share if device == "mlx5_2" else (8 - share) / 7)))
    got = verdict(rdma_counters.judge, fleet)
    assert got.codes == ({(code, status)} if code else set())
    assert got.places == ({"p2/ens2np0/rail r2"} if code else set())


@pytest.mark.parametrize(("share", "passes"), [(0.0099, True), (0.0101, False)])
def test_foreign_bytes_in_the_time_of_a_run(share: float, passes: bool) -> None:
    fleet = sparks(4)
    fleet.flow("idle", NODE, A).tx = fleet.flow("idle", NODE, B).tx = round(WIRE[4] * share * IDLE_S / RUN_S / 2)
    got = verdict(rdma_counters.judge, fleet)
    assert got.codes == (set() if passes else {(Code.FOREIGN_TRAFFIC, UNKNOWN)})


@pytest.mark.parametrize(("n", "passes"), [(999_996, True), (1_000_000, False)])
def test_a_device_that_stands_still(n: int, passes: bool) -> None:
    fleet = h20s()
    fleet.flow("run3", "gpu02", "mlx5_5").tx = n
    assert verdict(rdma_counters.judge, fleet).codes == (set() if passes else {(Code.FOREIGN_TRAFFIC, UNKNOWN)})
    four = sparks(4)
    four.more["control"] = control(sparks(4), "enp1s0f0np0", CONTROL[4], leak=n)
    assert verdict(rdma_counters.judge, four).codes == (set() if passes else {(Code.CONTROL_MOVED, FAIL)})


@pytest.mark.parametrize(("share", "passes"), [(0.969, False), (0.972, True)])
def test_sockets_of_the_control(share: float, passes: bool) -> None:
    fleet = sparks(4)
    fleet.more["control"] = control(sparks(4), "enp1s0f0np0", round(CONTROL[4] * share))
    assert verdict(rdma_counters.judge, fleet).codes == (set() if passes else {(Code.COUNTERS_SHORT, UNKNOWN)})


@pytest.mark.parametrize(("share", "status"), [(0.02, None), (0.04, FAIL)])
def test_bytes_that_slip_to_another_priority(share: float, status: Status | None) -> None:
    """By a function that sends with two classes: so much of its bytes on priority 0."""
    fleet = sparks(4)
    for interface_bytes in (fleet.flow("run1", NODE, A), fleet.flow("run1", NODE, B)):
        part = round(interface_bytes.tx * share * 2)
        interface_bytes.ethtool |= {"tx_prio3_bytes": -part, "tx_prio0_bytes": part}
    got = verdict(lossless_priority.judge, fleet)
    assert got.codes == ({(Code.PRIORITY_WRONG, status)} if status else set())


@pytest.mark.parametrize(("n", "status"), [(550_000_000, None), (650_000_000, WARN)])
def test_other_traffic_on_the_port(n: int, status: Status | None) -> None:
    """3 % of 19.73 GB are 592 MB."""
    fleet = sparks(4)
    fleet.flow("run1", NODE, A).ethtool["tx_prio0_bytes"] = n
    got = verdict(lossless_priority.judge, fleet)
    assert got.codes == ({(Code.PRIORITY_WRONG, status)} if status else set())
