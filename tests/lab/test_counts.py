"""Counters: what RDMA traffic does to them, and that every tool shows the same numbers. Expected numbers are worked out by hand."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from fabrictool.lab.nodeside import driver, sysfs, wire
from fabrictool.lab.nodeside.state import Node, save
from fabrictool.lab.nodeside.wire import Flow
from tests.lab.standins import A, B, call, links, spark

MIB = 1 << 20
DEV = "rocep1s0f0"


def roce() -> Node:
    """Trust dscp with DSCP 26 on priority 3, and PFC there."""
    node = spark()
    for f in node.functions.values():
        driver.set_app(node, f, 26, 3)
        driver.set_pfc(node, f, [0, 0, 0, 1, 0, 0, 0, 0], 7)
    return node


def ethtool(node: Node, interface: str) -> dict[str, int]:
    lines = call(node, f"ethtool -S {interface}").out.splitlines()[1:]
    return {k.strip(): int(v) for k, _, v in (line.partition(": ") for line in lines)}


def test_a_mebibyte_at_4096_is_256_packets_and_their_headers() -> None:
    node = roce()
    wire.carry(node.functions[A], Flow(DEV, MIB, 2 * MIB, 4096, 104, 104))
    seen = ethtool(node, A)
    assert seen["tx_vport_rdma_unicast_bytes"] == 1063424  # 1048576 + 256 * 58
    assert seen["tx_vport_rdma_unicast_packets"] == 256
    assert seen["rx_vport_rdma_unicast_bytes"] == 2126848
    assert seen["tx_prio3_bytes"] == 1064448  # with 4 bytes of check sum each
    assert seen["tx_prio3_packets"] == 256
    assert (seen["rx_prio3_bytes"], seen["rx_prio0_bytes"]) == (2128896, 0)
    assert seen["tx_bytes_phy"] == 1064448
    stat = json.loads(call(node, f"rdma -j statistic show link {DEV}/1").out)[0]
    assert stat["rx_write_requests"] == 4  # of half a mebibyte each


def test_small_packets_have_more_headers() -> None:
    node = roce()
    wire.carry(node.functions[A], Flow(DEV, MIB, 0, 1024))
    assert ethtool(node, A)["tx_vport_rdma_unicast_bytes"] == 1107968  # 1048576 + 1024 * 58


def test_the_functions_of_a_cage_show_the_same_port() -> None:
    node = roce()
    wire.carry(node.functions[A], Flow(DEV, MIB, 0, 4096, 104))
    wire.carry(node.functions[B], Flow("roceP2p1s0f0", MIB, 0, 4096, 104))
    a, b = ethtool(node, A), ethtool(node, B)
    assert a["tx_vport_rdma_unicast_bytes"] == b["tx_vport_rdma_unicast_bytes"] == 1063424
    assert a["tx_bytes_phy"] == b["tx_bytes_phy"] == 2 * 1064448
    assert a["tx_prio3_bytes"] == b["tx_prio3_bytes"] == 2 * 1064448


def test_the_kernels_own_traffic_is_in_no_rdma_counter() -> None:
    node = roce()
    live = {name: replace(link, tx_bytes=5000, tx_packets=10, rx_bytes=700, rx_packets=7) for name, link in links(node).items()}
    out = call(node, f"ethtool -S {A}", live=live).out
    for line in ("tx_bytes: 5000", "tx_vport_unicast_bytes: 5000", "tx_vport_rdma_unicast_bytes: 0", "tx_bytes_phy: 10080",
                 "rx_bytes_phy: 1456", "tx_prio0_bytes: 10080", "tx_prio3_bytes: 0"):
        assert f"     {line}\n" in out
    assert "     rx_bytes: 700\n" in call(node, "ethtool -S enP7s7", live=live).out


@pytest.mark.parametrize(("tclass", "ignores", "trust", "tos", "prio"), [
    ("", False, "dscp", 104, 3), ("Global tclass=96", False, "dscp", 96, 0), ("", True, "dscp", 0, 0), ("", False, "pcp", 104, 0)])
def test_a_packet_rides_on_the_priority_of_the_class_it_really_has(tclass: str, ignores: bool, trust: str, tos: int, prio: int) -> None:
    node = roce()
    fn = node.functions[A]
    fn.tclass, fn.ignores_class, fn.trust = tclass, ignores, trust
    fn.dscp_map[24] = 0
    assert wire.tos_of(fn, 104) == tos
    assert wire.priority(fn, tos) == prio


def test_lost_packets_are_counted_at_both_ends_and_no_fraction_is_forgotten() -> None:
    node = roce()
    fn = node.functions[A]
    fn.lost_per_million = 1500
    lost, owed = wire.carry(fn, Flow(DEV, 0, MIB, 4096))
    assert (lost, round(owed, 4)) == (0, 0.384)
    lost, owed = wire.carry(fn, Flow(DEV, 0, 2 * MIB, 4096), owed)
    assert (lost, round(owed, 4)) == (1, 0.152)
    wire.carry(node.functions[B], Flow("roceP2p1s0f0", 0, 0, 4096, missed=3))
    rows = {r["ifname"]: r for r in json.loads(call(node, "rdma -j statistic").out)}
    assert (rows[DEV]["out_of_sequence"], rows[DEV]["packet_seq_err"]) == (1, 0)
    assert (rows["roceP2p1s0f0"]["packet_seq_err"], rows["roceP2p1s0f0"]["out_of_sequence"]) == (3, 0)


def test_frozen_counters_stand_still_while_the_port_counts_on() -> None:
    node = roce()
    node.functions[A].frozen = True
    wire.carry(node.functions[A], Flow(DEV, MIB, MIB, 4096, 104, 104))
    seen = ethtool(node, A)
    assert (seen["tx_vport_rdma_unicast_bytes"], seen["tx_prio3_packets"]) == (0, 256)


def test_queue_counters_wrap_at_32_bits() -> None:
    node = roce()
    node.functions[A].counts = {"rx_write_requests": (1 << 32) + 5, "np_cnp_sent": (1 << 32) + 5}
    row = json.loads(call(node, "rdma -j statistic").out)[0]
    assert (row["rx_write_requests"], row["np_cnp_sent"]) == (5, (1 << 32) + 5)


def test_sysfs_shows_words_and_a_boot_clears_them(tmp_path: Path) -> None:
    node = roce()
    if os.geteuid():
        pytest.skip("root is needed to mark folders opaque for the overlay")
    save(tmp_path / "state.json", node)
    (tmp_path / "sysfs.lock").touch()
    sysfs.refresh(tmp_path, lambda: links(node))
    folder = tmp_path / f"sys/devices/lab/0000:01:00.0/infiniband/{DEV}/ports/1"
    before = {p.relative_to(folder) for p in folder.rglob("*")}
    wire.carry(node.functions[A], Flow(DEV, MIB, 0, 4096))
    save(tmp_path / "state.json", node)
    sysfs.show_counters(tmp_path)
    assert (folder / "counters/port_xmit_data").read_text() == "265856\n"  # 1063424 / 4
    assert (folder / "counters/port_xmit_packets").read_text() == "256\n"
    assert (folder / "hw_counters/lifespan").read_text() == "10\n"
    driver.reboot(node)
    save(tmp_path / "state.json", node)
    sysfs.show_counters(tmp_path)
    assert (folder / "counters/port_xmit_data").read_text() == "0\n"
    assert {p.relative_to(folder) for p in folder.rglob("*")} == before
