"""Captured texts, numbers that are none, cut and hostile texts."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.counters import parse
from fabrictool.counters.model import Table, size_text
from fabrictool.model import Reason, Unreadable, Value
from fabrictool.snapshot import Captured
from tests.prove.counts import ethtool_text
from tests.qos.blocks import CAPTURES, blocks

VIRTIO = (CAPTURES / "rdma/ethtool-virtio.txt").read_text()
STATISTICS = re.search(r"^# ethtool -S eth0\n(.*?)^rc=0", VIRTIO, re.MULTILINE | re.DOTALL)
MLX5 = ethtool_text({"rx_packets": 12, "tx_vport_rdma_unicast_bytes": 20_124_606_136, "tx_prio3_bytes": 18_446_744_073_709_551_615})


def test_a_real_ethtool() -> None:
    assert STATISTICS
    got = parse.ethtool(Captured(0, STATISTICS[1]), "eth0")
    assert got.get("rx_queue_0_bytes") == Value(70_366)
    assert got.get("rx_queue_0_drops") == Value(0)
    assert len(got.names) == 14
    missing = got.get("tx_prio3_bytes")
    assert isinstance(missing, Unreadable)
    assert (missing.reason, "no tx_prio3_bytes" in missing.why) == (Reason.EMPTY, True)


def test_a_real_soft_roce_device() -> None:
    """It counts packets and no bytes: what is missing is not 0."""
    got = parse.statistic(next(b for b in blocks("rdma/rdma-statistic.json.txt")).got)
    assert not isinstance(got, Unreadable)
    assert got["rxe0"].get("sent_pkts") == Value(0)
    assert isinstance(got["rxe0"].get("port_xmit_data"), Unreadable)
    sysfs = (CAPTURES / "rdma/sys-class-infiniband.txt").read_text().splitlines()
    pairs = (ln.removeprefix("./").split(": ", 1) for ln in sysfs if ln.startswith("./"))
    files = {f"/x/{k}": v for k, v in pairs}
    assert parse.files(files, "rxe0", "/x/ports/1/hw_counters/").names == got["rxe0"].names
    assert parse.files(files, "rxe0", "/x/ports/1/counters/") == Table("rxe0", {})


@pytest.mark.parametrize("text", ["", "N/A (no PMA)", "-1", "1e6", "0x10", "12 34", "٣", "1_000", "18446744073709551616", "9" * 5000, "+5",
                                  "1.0"])
def test_what_is_no_number(text: str) -> None:
    assert parse.number(text) is None
    got = parse.table("x", [("a", text), ("b", "5")])
    assert isinstance(got.get("a"), Unreadable)
    assert got.get("b") == Value(5)


def test_told_twice() -> None:
    assert parse.table("x", [("a", "1"), ("a", "1")]).get("a") == Value(1)
    for second in ("2", "N/A"):
        for pairs in ([("a", "1"), ("a", second)], [("a", second), ("a", "1")]):
            assert isinstance(parse.table("x", pairs).get("a"), Unreadable)


@pytest.mark.parametrize(("got", "reason"), [
    (Captured(94, "", "no stats available\n"), Reason.FAILED),
    (Captured(96, "", "Cannot get stats strings information: No such device\n"), Reason.FAILED),
    (Captured(0, ""), Reason.EMPTY),
    (Captured(0, "     rx_packets: 5\n"), Reason.GARBLED),
    (Captured(0, "NIC statistics:"), Reason.GARBLED),
])
def test_ethtool_that_says_nothing(got: Captured, reason: Reason) -> None:
    for seen in (parse.ethtool(got, "eth0"), parse.ethtool(Captured(got.rc or 1, MLX5, got.err), "eth0")):
        assert isinstance(seen.values, Unreadable)
        assert isinstance(seen.get("rx_packets"), Unreadable)
    assert parse.ethtool(got, "eth0").values.reason is reason  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "  \n"])
def test_cut_anywhere_a_counter_is_whole_or_missing(ending: str) -> None:
    text = MLX5.replace("\n", ending)
    full = parse.ethtool(Captured(0, text), "eth0")
    assert full == parse.ethtool(Captured(0, MLX5), "eth0")
    for end in range(len(text)):
        seen = parse.ethtool(Captured(0, text[:end]), "eth0")
        for name in full.names:
            assert seen.get(name) in (full.get(name), seen.get(name) if isinstance(seen.get(name), Unreadable) else None)


CLOCK = "86400.25 1641604.75\n1767261600.500000000\n0b0c2f0e-6d1c-4c6e-9d65-111111111111\n"


def test_clocks() -> None:
    for text in (CLOCK, CLOCK.replace("\n", "\r\n")):
        got = parse.clock(Captured(0, text))
        assert (got.uptime_s, got.epoch_s) == (Value(86_400.25), Value(1_767_261_600.5))
        assert got.boot == Value("0b0c2f0e-6d1c-4c6e-9d65-111111111111")
    busybox = parse.clock(Captured(1, "5.10 9.99\n1767261600.%N\n", "cat: boot_id: No such file or directory"))
    assert (busybox.uptime_s, busybox.epoch_s) == (Value(5.1), Value(1_767_261_600.0))
    assert isinstance(busybox.boot, Unreadable)
    assert parse.stamp(Captured(0, "1767261600.25\n")) == Value(1_767_261_600.25)
    for bad in ("", "now\n", "nan\n", "1e9\n", "\udcff\n"):
        assert isinstance(parse.stamp(Captured(0, bad)), Unreadable)
        assert isinstance(parse.clock(Captured(0, bad)).uptime_s, Unreadable)
    full = parse.clock(Captured(0, CLOCK))
    for end in range(len(CLOCK)):
        cut = parse.clock(Captured(0, CLOCK[:end]))
        for seen, whole in ((cut.uptime_s, full.uptime_s), (cut.epoch_s, full.epoch_s), (cut.boot, full.boot)):
            assert seen == whole or isinstance(seen, Unreadable)


@pytest.mark.parametrize("text", ["", "[", "{}", "null", '[1]', '[{"ifname": 5, "port": 1}]', '[{"ifname": "a", "port": 2, "x": 1}]'])
def test_statistics_that_are_not_understood(text: str) -> None:
    got = parse.statistic(Captured(0, text))
    assert isinstance(got, Unreadable) or got == {}
    assert isinstance(parse.statistic(Captured(1, '[{"ifname":"a","port":1,"x":1}]')), Unreadable)


def test_a_device_in_two_rows_is_not_known() -> None:
    rows = json.dumps([{"ifname": "a", "port": 1, "x": 1}, {"ifname": "a", "port": 1, "x": 2}, {"ifname": "b", "port": 1, "x": True}])
    got = parse.statistic(Captured(0, rows))
    assert not isinstance(got, Unreadable)
    assert isinstance(got["a"].get("x"), Unreadable)
    assert isinstance(got["b"].get("x"), Unreadable)


@settings(max_examples=300, deadline=None)
@given(st.text(), st.integers(0, 255), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=8))
def test_any_text_is_answered(text: str, rc: int, doc: object) -> None:
    parse.ethtool(Captured(rc, text, text), "x")
    parse.ethtool(Captured(0, f"NIC statistics:\n{text}\n"), "x")
    parse.clock(Captured(rc, text))
    parse.stamp(Captured(rc, text))
    parse.statistic(Captured(0, json.dumps(doc)))
    parse.statistic(Captured(rc, text))
    parse.files({f"/a/{text}": text, "/a/b": text}, "x", "/a/")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=6), st.integers(0, len(MLX5)))
def test_flipped_bytes(noise: bytes, at: int) -> None:
    raw = MLX5.encode()
    text = (raw[:at] + noise + raw[at + len(noise):]).decode("utf-8", "surrogateescape")
    got = parse.ethtool(Captured(0, text), "x")
    assert all(isinstance(got.get(n), (Value, Unreadable)) for n in ("rx_packets", "tx_prio3_bytes"))


def test_sizes_for_people() -> None:
    assert [size_text(n) for n in (0, 999, 1_000, 312_000, 1_500_000, 19_730_006_016)] == [
        "0 B", "999 B", "1.0 kB", "312.0 kB", "1.5 MB", "19.73 GB"]
