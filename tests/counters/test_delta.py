"""Pairs of readings: what moved, what wrapped, what began anew, and what is no pair."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from fabrictool.counters import Invalid, Reading, Span, read, span
from fabrictool.counters.delta import moved, total
from fabrictool.counters.loss import Kind, blind, function_growth, port_growth
from fabrictool.counters.model import Table
from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.snapshot import Captured, Snapshot
from tests.prove.counts import Counts, Function

A, B, IF_A, IF_B = "rocep1s0f0", "roceP2p1s0f0", "enp1s0f0np0", "enP2p1s0f0np0"


def node() -> Counts:
    return Counts([Function(A, IF_A, "p0"), Function(B, IF_B, "p0")], {IF_A: 10**9, "enP7s7": 10**8})


def reading(counts: Counts, **changed: Captured | None) -> Reading:
    """`changed`: section name -> text, None to leave it out; `rdma__DEV` stands for `counters.rdma[DEV]`."""
    names = {k: f"counters.{k.replace('__', '[')}{']' if '__' in k else ''}" for k in changed}
    sections = {**counts.sections(), **{names[k]: v for k, v in changed.items()}}
    return read(Snapshot("spark01", {k: v for k, v in sections.items() if v is not None}))


def pair() -> tuple[Counts, Counts]:
    before = node()
    after = deepcopy(before)
    after.wait(10)
    return before, after


def between(before: Counts, after: Counts) -> Span:
    return span(reading(before), reading(after))


def test_bytes_are_four_times_the_words() -> None:
    before, after = pair()
    after.functions[0].sysfs["port_xmit_data"] += 2_500
    got = between(before, after)
    assert got.rdma_bytes(A, "tx") == Value(10_000)
    assert got.rdma_bytes(A, "rx") == Value(0)
    assert got.seconds == Value(10.0)
    assert got.broken is None


def test_without_sysfs_ethtool_tells_the_same_bytes() -> None:
    before, after = pair()
    for counts in (before, after):
        del counts.functions[0].sysfs["port_xmit_data"]
    after.functions[0].ethtool["tx_vport_rdma_unicast_bytes"] += 8_192
    got = between(before, after)
    assert got.rdma_bytes(A, "tx", IF_A) == Value(8_192)
    alone = got.rdma_bytes(A, "tx")
    assert isinstance(alone, Unreadable)
    assert "port_xmit_data" in alone.why
    assert isinstance(got.rdma_bytes(A, "tx", "nosuch"), Unreadable)


def test_32_bits_wrap_once() -> None:
    before, after = pair()
    before.functions[0].hw |= {"out_of_sequence": 2**32 - 6, "rx_write_requests": 4_000_000_000}
    after.functions[0].hw |= {"out_of_sequence": 5, "rx_write_requests": 1_000}
    got = between(before, after)
    assert got.hw(A, "out_of_sequence") == Value(11)
    assert got.hw(A, "rx_write_requests") == Value(294_968_296)


@pytest.mark.parametrize(("name", "old", "new"), [
    ("np_cnp_sent", 2**32 - 6, 5),  # 64 bits: does not wrap here
    ("out_of_sequence", 400, 5),  # 32 bits, but it cannot have counted to 2^32 since
    ("out_of_sequence", 2**32 + 4, 5),
])
def test_a_counter_that_went_back_is_no_sample(name: str, old: int, new: int) -> None:
    before, after = pair()
    before.functions[0].hw[name], after.functions[0].hw[name] = old, new
    got = between(before, after).hw(A, name)
    assert isinstance(got, Invalid)
    assert str(old) in got.why
    assert between(before, after).hw(B, name) == Value(0)


def test_soft_roce_counts_with_64_bits() -> None:
    before, after = pair()
    for counts, n in ((before, 2**32 - 6), (after, 5)):
        counts.functions[0].hw = {"sent_pkts": n, "duplicate_request": n}
        counts.functions[0].sysfs = {}
    got = between(before, after)
    assert isinstance(got.hw(A, "duplicate_request"), Invalid)
    assert isinstance(got.rdma_bytes(A, "tx"), Unreadable)


def test_a_reset_spoils_the_whole_device_and_no_other() -> None:
    before, after = pair()
    after.functions[0].zero()
    after.functions[0].sysfs["port_xmit_data"] = 10**13  # beyond its old value again
    after.functions[1].sysfs["port_xmit_data"] += 25
    got = between(before, after)
    for seen in (got.rdma_bytes(A, "tx"), got.hw(A, "out_of_sequence"), got.port(A, "symbol_error"), got.rdma_bytes(A, "tx", IF_A)):
        assert isinstance(seen, Invalid)
        assert A in seen.why
    assert got.rdma_bytes(B, "tx") == Value(100)


def test_reboots() -> None:
    before, after = pair()
    after.reboot()
    by_id = between(before, after)
    assert isinstance(by_id.broken, Invalid)
    assert "booted" in by_id.broken.why
    assert isinstance(by_id.rdma_bytes(A, "tx"), Invalid)
    assert isinstance(by_id.net(IF_A, "rx_bytes"), Invalid)
    after.boot = before.boot
    by_uptime = between(before, after)
    assert isinstance(by_uptime.broken, Invalid)
    assert isinstance(by_uptime.seconds, Unreadable)


def test_readings_that_are_no_pair() -> None:
    before, after = pair()
    same = between(before, deepcopy(before))
    assert isinstance(same.broken, Invalid)
    assert "one moment" in same.broken.why
    still = deepcopy(before)
    still.uptime_s += 10
    frozen = between(before, still)
    assert isinstance(frozen.broken, Invalid)
    assert "no counter moved" in frozen.broken.why
    still.nets["enP7s7"] += 1
    assert between(before, still).rdma_bytes(A, "tx") == Value(0)  # the device alone stands still: that is a reading
    gone = read(Snapshot("spark01", error=Unreadable(Reason.UNREACHABLE, "no route")))
    for lost in (span(gone, reading(after)), span(reading(before), gone)):
        assert lost.broken == lost.rdma_bytes(A, "tx") == Unreadable(Reason.UNREACHABLE, "no route")


def test_without_a_clock_bytes_are_known_and_time_is_not() -> None:
    before, after = pair()
    after.functions[0].sysfs["port_rcv_data"] += 5
    got = span(reading(before, clock=None), reading(after, clock=Captured(0, "soon\n")))
    assert got.rdma_bytes(A, "rx") == Value(20)
    assert isinstance(got.seconds, Unreadable)


def test_devices_that_come_and_go() -> None:
    before, after = pair()
    without = [replace(counts, functions=counts.functions[1:]) for counts in (before, after)]
    for first, second in ((before, without[1]), (without[0], after)):
        seen = between(first, second).rdma_bytes(A, "tx")
        assert isinstance(seen, Invalid)
        assert A in seen.why
    both = between(before, after)
    assert isinstance(both.rdma_bytes("mlx5_9", "tx"), Unreadable)
    assert both.after.device("mlx5_9") == Absent("RDMA device mlx5_9")


def test_a_counter_at_its_stop_tells_nothing() -> None:
    before, after = pair()
    before.functions[0].sysfs |= {"symbol_error": 65_535, "link_downed": 254, "port_xmit_data": 5}
    after.functions[0].sysfs |= {"symbol_error": 65_535, "link_downed": 255, "port_xmit_data": 2**32 - 1}
    got = between(before, after)
    for name in ("symbol_error", "port_xmit_data"):
        assert isinstance(got.port(A, name), Unreadable)
    assert got.port(A, "link_downed") == Value(1)
    assert got.port(B, "symbol_error") == Value(0)


def test_sums() -> None:
    no, bad = Unreadable(Reason.EMPTY, "x"), Invalid("y")
    assert total([Value(1), Value(2)]) == Value(3)
    assert total([Value(1), no]) == no
    assert total([Value(1), no, bad]) == bad
    assert isinstance(total([]), Unreadable)
    assert isinstance(moved(Table("x", {}), Table("x", {"a": 1}), "a"), Unreadable)


def test_what_only_one_reading_shows_is_unreadable() -> None:
    before, after = pair()
    del before.functions[0].hw["packet_seq_err"]
    growth = {g.name: g.moved for g in function_growth(between(before, after), A)}
    assert isinstance(growth["packet_seq_err"], Unreadable)
    assert growth["out_of_sequence"] == Value(0)
    assert isinstance(blind(tuple(function_growth(between(before, after), A))), Unreadable)
    assert blind(tuple(function_growth(between(before, after), B))) is None
    del before.functions[0].ethtool["rx_discards_phy"]
    seen = {g.name: g.moved for g in port_growth(between(before, after), IF_A, 3)}
    assert isinstance(seen["rx_discards_phy"], Unreadable)
    assert "rx_prio3_discards" in seen
    assert not any("prio" in g.name for g in port_growth(between(before, after), IF_A, None))


def test_a_driver_without_loss_counters_proves_no_absence_of_loss() -> None:
    before, after = pair()
    for counts in (before, after):
        counts.functions[0].hw = {"np_cnp_sent": 5}
    seen = blind(tuple(function_growth(between(before, after), A)))
    assert isinstance(seen, Unreadable)
    assert "out_of_sequence" in seen.why


def test_every_kind_is_watched_at_function_and_port() -> None:
    before, after = pair()
    got = between(before, after)
    assert {g.watched.kind for g in function_growth(got, A)} == set(Kind)
    assert {g.watched.kind for g in port_growth(got, IF_A, 3)} == {Kind.LOSS, Kind.DAMAGE, Kind.HINT, Kind.CONGESTION}
    assert all(g.moved == Value(0) for g in (*function_growth(got, A), *port_growth(got, IF_A, 3)))
