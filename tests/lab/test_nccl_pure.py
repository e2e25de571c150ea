"""The stand-in of NCCL, without a lab: its settings, its choices, its rings, its log. Rules: nccl.md 2 and 3."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from fabrictool.lab.nodeside import capacity
from fabrictool.lab.nodeside.nccl import adapters, interfaces, params, ring
from fabrictool.lab.nodeside.nccl.adapters import Adapter
from fabrictool.lab.nodeside.nccl.interfaces import Interface
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.params import Params
from tests.lab.standins import A, spark

MIB = 1 << 20


def resolved(environ: dict[str, str], files: dict[str, str]) -> dict[str, str]:
    return params.resolve(environ, "/home/u", lambda path: files.get(path, ""))


def test_the_environment_wins_then_the_users_file_then_the_systems() -> None:
    files = {"/etc/nccl.conf": "A=etc\nB=etc\nC=etc\n", "/home/u/.nccl.conf": "A=home\nB=home\n", "/x.conf": "B=named\n"}
    assert resolved({"A": "env"}, files) == {"A": "env", "B": "home", "C": "etc"}
    found = resolved({"NCCL_CONF_FILE": "/x.conf"}, files)
    assert (found["A"], found["B"]) == ("etc", "named")  # then the user's own file does not count


def test_a_file_is_read_to_the_letter() -> None:
    text = "# no\nNCCL_SOCKET_IFNAME==eth0\nNCCL_X = 1\nQ=\"a\"\nCR=eth0\r\nnothing\n #A=1\nL=" + "x" * 2000
    found = dict(params.parse(text))
    assert found["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert found["NCCL_X "] == " 1"
    assert found["Q"] == '"a"'
    assert found["CR"] == "eth0\r"
    assert found[" #A"] == "1"
    assert len(found["L"]) == 1023
    assert "nothing" not in found


def test_a_number_is_told_once_and_a_word_that_is_none_is_refused() -> None:
    told: list[str] = []
    p = Params({"NCCL_IB_TC": "104", "NCCL_IB_TIMEOUT": "0x16", "NCCL_IB_SL": "many"})
    p.tell = lambda subsystem, text: told.append(text)
    assert [p.number("IB_TC", 0), p.number("IB_TC", 0), p.number("IB_TIMEOUT", 20), p.number("IB_SL", 3), p.number("IB_X", 7)] == [
        104, 104, 22, 3, 7]
    assert told == ["NCCL_IB_TC set by environment to 104.", "NCCL_IB_TIMEOUT set by environment to 22.",
                    "Invalid value many for NCCL_IB_SL, using default 3."]


@pytest.mark.parametrize(("name", "asked", "yes"), [
    ("eth1", "eth1", True), ("eth10", "eth1", True), ("eth10", "=eth1", False), ("eth1", "=eth1,eth2", True), ("lo", "^docker,lo", False),
    ("eth0", "^docker,lo", True), ("eth1", "^=eth10", True), ("eth10", "^=eth10", False), ("eth0", "eth0\r", False)])
def test_interface_names(name: str, asked: str, yes: bool) -> None:
    assert interfaces.chosen(name, asked) is yes


def test_interfaces_come_in_the_kernels_order() -> None:
    found = [Interface("lo", "127.0.0.1"), Interface("docker0", "172.17.0.1"), Interface("eth1", "10.0.0.1"), Interface("eth0", "10.0.0.2")]
    assert [i.name for i in interfaces.pick(found, "eth0,eth1")] == ["eth1", "eth0"]
    assert [i.name for i in interfaces.pick(found, "")] == ["eth1", "eth0"]
    assert [i.name for i in interfaces.pick(found[:2], "")] == ["docker0"]
    assert [i.name for i in interfaces.pick(found[:1], "x")] == ["lo"]  # a wish of one character counts as none
    assert interfaces.pick(found, "enp1") == []
    assert Interface("eth0", "fe80::1", 4).shown == "eth0:fe80::1%eth0<0>"


@pytest.mark.parametrize(("name", "asked", "yes"), [
    ("mlx5_1", "mlx5_1", True), ("mlx5_10", "mlx5_1", True), ("mlx5_10", "=mlx5_1", False), ("mlx5_1", "=mlx5_1:1", True),
    ("mlx5_1", "=mlx5_1:2", False), ("mlx5_4", "^mlx5_4,mlx5_5", False), ("mlx5_6", "^mlx5_4,mlx5_5", True),
    ("mlx5_10", "^=mlx5_1", True), ("rocep1s0f0", "rocep1s0f0 ", False), ("roceP2p1s0f0", "rocep1s0f0", False)])
def test_adapter_names(name: str, asked: str, yes: bool) -> None:
    assert adapters.wanted(name, asked) is yes


def test_the_gid_is_that_of_an_ipv4_address_with_roce_v2() -> None:
    v6, v4 = "fe80:0000:0000:0000:0000:5bff:fe00:0101", "0000:0000:0000:0000:0000:ffff:c0a8:6410"
    table = ((v6, "IB/RoCE v1"), (v6, "RoCE v2"), (v4, "IB/RoCE v1"), (v4, "RoCE v2"))
    a = Adapter("rocep1s0f0", 0, 200000, "RoCE", A, "0000:01:00.0", table)
    assert adapters.gid_index(a, -1) == 3
    assert adapters.gid_index(a, 2) == 2
    assert adapters.gid_index(Adapter("x", 0, 1, "RoCE", A, "", table[:2]), -1) == 0
    assert adapters.ipv4(v4) == "192.168.100.16"
    assert adapters.ipv4(v6) == adapters.ipv4("junk") == ""
    assert adapters.shown_gid(v4) == "0/1064A8C0FFFF0000"  # as NCCL 2.28.9 logged it for that address


def test_rings_go_node_by_node_and_each_channel_leaves_by_another_rank() -> None:
    hosts = ["a", "a", "b", "b"]
    assert ring.order(hosts, 0) == [0, 1, 2, 3]
    assert ring.order(hosts, 1) == [1, 0, 3, 2]
    assert ring.from_zero([1, 0, 3, 2]) == [0, 3, 2, 1]
    leaving = [(e.channel, e.source, e.target) for e in ring.edges(hosts, 2) if hosts[e.source] != hosts[e.target]]
    assert leaving == [(0, 1, 2), (0, 3, 0), (1, 0, 3), (1, 2, 1)]
    assert ring.edges(["a"], 2) == []


@pytest.mark.parametrize(("count", "ranks", "sent"), [
    (2 * MIB, 2, [8388608] * 2),  # 8 MiB of floats: half of it twice
    (2 * MIB, 4, [12582912] * 4),  # a quarter six times
    (10, 4, [60, 64, 60, 56])])  # blocks of 3, 3, 2, 2 elements, by hand: rank 0 hands on 0 3 2, then 1 0 3
def test_bytes_that_a_rank_hands_on(count: int, ranks: int, sent: list[int]) -> None:
    got = [ring.passed_on(count, ranks, place, 4) for place in range(ranks)]
    assert got == sent
    assert sum(got) == 2 * (ranks - 1) * count * 4  # whatever the blocks


def test_a_channels_share_loses_no_element() -> None:
    assert sum(ring.share(2097155, 16, c) for c in range(16)) == 2097155


def test_a_cage_is_never_worth_more_than_its_rate() -> None:
    node = spark()
    rows = capacity.adapters(node)
    assert [round(capacity.total(some), 1) for some in (rows, rows[:1])] == [22.9, 11.5]
    node.functions[A].pcie_width = 2
    assert round(capacity.total(capacity.adapters(node)[:1]), 1) == 5.7
    for fn in node.functions.values():
        fn.degraded_gbit = 13
    assert round(capacity.total(capacity.adapters(node)), 3) == 1.625


@pytest.mark.parametrize(("environ", "lines"), [
    ({}, 0), ({"NCCL_DEBUG": "VERSION"}, 1), ({"NCCL_DEBUG": "WARN"}, 3), ({"NCCL_DEBUG": "INFO"}, 6),
    ({"NCCL_DEBUG": "info", "NCCL_DEBUG_SUBSYS": "NET"}, 6), ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "^INIT,NET"}, 5)])
def test_what_the_log_lets_through(environ: dict[str, str], lines: int) -> None:
    out = io.StringIO()
    log = Log(Params(environ), "node", 7, out)
    log.version(True)
    log.info("INIT", "one")
    log.info("NET", "two")
    log.info("ALL", "three")
    log.warn("file.cc:1", "bad")
    log.trace("file.cc:2", 3)
    text = out.getvalue()
    assert len(text.splitlines()) == lines
    if lines > 4:
        assert text.startswith("node:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n")
        assert "\n\n[" in text  # a warning has an empty line before it


def test_the_log_file_is_named_after_host_and_process(tmp_path: Path) -> None:
    log = Log(Params({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"{tmp_path}/n.%h.%p.log"}), "node", 7)
    log.info("ALL", "x", 2, 9)
    assert (tmp_path / "n.node.7.log").read_text() == "node:7:9 [2] NCCL INFO x\n"
    Log(Params({"NCCL_DEBUG": "VERSION", "NCCL_DEBUG_FILE": f"{tmp_path}/none"}), "node", 7).info("ALL", "x")
    assert not (tmp_path / "none").exists()
