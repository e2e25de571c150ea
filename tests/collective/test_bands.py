"""What a bus bandwidth means beside the ports that were read. Figures are measured ones or a share of a port's rate."""

from __future__ import annotations

import pytest

from fabrictool.collective.bands import WHY, Band, Capacity, PortCapacity, band, port_capacity, smallest
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports import Pcie
from fabrictool.values import Rate

GEN5_X4, GEN5_X1 = Pcie(4, 4, 32.0, 32.0), Pcie(1, 4, 32.0, 32.0)
NONE = Unreadable(Reason.EMPTY, "eth0: the driver tells no speed")
FAST = Value(Rate.gbit(200))
BOTH: tuple[Observed[Pcie], ...] = (Value(GEN5_X4), Value(GEN5_X4))


def spark(rates: tuple[Observed[Rate], ...] = (FAST, FAST), pcie: tuple[Observed[Pcie], ...] = BOTH) -> Capacity:
    port = port_capacity("p0", rates, pcie)
    assert isinstance(port, PortCapacity)
    return Capacity("spark01", (port,))


H20 = Capacity("gpu01", tuple(PortCapacity(f"p{i}", Rate.gbit(400), None, 1) for i in range(8)))


def test_twins_of_one_port_count_once() -> None:
    assert spark().gbytes_per_s == 25
    assert str(spark()) == "25.0 GB/s (1 port, 2 rails)"
    assert H20.gbytes_per_s == 400
    assert spark((FAST, NONE)).gbytes_per_s == 25  # one that is down tells nothing; the port has the other's rate
    assert spark((FAST, Value(Rate.gbit(100)))).gbytes_per_s == 12.5


def test_pcie_holds_a_port_back_when_all_of_it_was_read() -> None:
    """x1 at 32 GT/s with 128b/130b: 31.5 Gb/s, beside 126.0 of a whole function: 157.5 of 200."""
    assert spark(pcie=(Value(GEN5_X4), Value(GEN5_X1))).gbytes_per_s == pytest.approx(19.69, abs=0.01)
    for unread in (NONE, Absent("no PCI device"), Value(Pcie(4, 4))):
        assert spark(pcie=(Value(GEN5_X1), unread)).gbytes_per_s == 25


@pytest.mark.parametrize("rates", [(), (NONE, NONE), (Absent("x"),), (Value(Rate(0)),)])
def test_a_rate_that_was_not_read_is_no_rate(rates: tuple[Observed[Rate], ...]) -> None:
    assert isinstance(port_capacity("p0", rates, ()), Unreadable)


@pytest.mark.parametrize(("busbw", "want"), [
    (22.9, Band.GOOD), (21.3, Band.GOOD), (25.0, Band.GOOD), (11.4, Band.ONE_RAIL), (9.5, Band.ONE_RAIL), (13.0, Band.ONE_RAIL),
    (4.0, Band.TCP), (2.5, Band.TCP), (6.0, Band.TCP), (18.0, Band.LOW), (8.0, Band.LOW), (1.6, Band.LOW), (0.0, Band.LOW),
    (27.0, Band.ABOVE)])
def test_bands_of_one_port_of_200_with_two_rails(busbw: float, want: Band) -> None:
    assert band(busbw, spark(), 0.85) is want
    assert bool(WHY[want]) is (want is not Band.GOOD)


@pytest.mark.parametrize(("busbw", "want"), [(360, Band.GOOD), (320, Band.GOOD), (46, Band.ONE_RAIL), (9, Band.TCP), (216, Band.LOW),
                                             (25, Band.LOW)])
def test_bands_of_eight_ports_of_400(busbw: float, want: Band) -> None:
    assert band(busbw, H20, 0.80) is want


def test_one_rail_of_one_is_no_band_of_its_own() -> None:
    alone = Capacity("a", (PortCapacity("p0", Rate.gbit(100), None, 1),))
    assert band(11.4, alone, 0.95) is Band.LOW
    assert band(11.4, alone, 0.85) is Band.GOOD


def test_the_slowest_node_sets_the_bar() -> None:
    slow = spark((Value(Rate.gbit(100)),))
    assert smallest((spark(), slow, spark())) is slow
