"""rdma, ibv_devinfo, ethtool, nvidia-smi: one state, seen through each, in the shape of the captures of the real tools."""

from __future__ import annotations

import json
import re

import pytest

from fabrictool.lab.nodeside.wire import active_mtu
from tests.lab.standins import A, B, call, generic, links, spark

# reference output of iproute2 6.1 and rdma-core on a soft-RoCE machine; numbers differ, keys and shape are the tools'
REAL_LINK = ('[{"ifindex":0,"ifname":"rxe0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth1","netdev_index":3}]\n')
REAL_LINK_DOWN = ('[{"ifindex":0,"ifname":"rxe0","port":1,"state":"DOWN","physical_state":"DISABLED","netdev":"eth1","netdev_index":3}]\n')
REAL_RES = '[{"ifindex":0,"ifname":"rxe0","pd":1,"cq":1,"qp":1,"cm_id":0,"mr":0,"ctx":0,"srq":0}]\n'
REAL_DEV = ('[{"ifindex":0,"ifname":"rxe0","node_type":"ca","node_guid":"5054:00ff:fe00:0101",'
            '"sys_image_guid":"5054:00ff:fe00:0101"}]\n')


def keys(text: str) -> list[str]:
    return [k for row in json.loads(text) for k in row]


def test_rdma_link_has_the_real_shape() -> None:
    node = generic()
    live = links(node)
    got = call(node, "rdma -j link", live=live).out
    assert got == REAL_LINK.replace('"netdev_index":3', '"netdev_index":2')
    down = call(node, "rdma -j link", live=links(node, up=False)).out
    assert down == REAL_LINK_DOWN.replace('"netdev_index":3', '"netdev_index":2')
    assert call(node, "rdma link", live=live).out == "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth1 \n"
    assert keys(call(node, "rdma -j dev").out) == [*keys(REAL_DEV)[:3], "fw", *keys(REAL_DEV)[3:]]
    assert keys(call(node, "rdma -j res").out) == keys(REAL_RES)


def test_an_interface_that_is_gone_leaves_a_port_that_is_down() -> None:
    node = spark()
    live = {k: v for k, v in links(node).items() if k != B}
    rows = json.loads(call(node, "rdma -j link", live=live).out)
    assert [(r["ifname"], r["state"], r.get("netdev")) for r in rows] == [
        ("rocep1s0f0", "ACTIVE", A), ("roceP2p1s0f0", "DOWN", None)]


def test_queue_pairs_are_listed_with_the_kernels_own() -> None:
    node = spark()
    idle = json.loads(call(node, "rdma -j resource show qp").out)
    assert [(q["ifname"], q["type"]) for q in idle] == [("rocep1s0f0", "GSI"), ("roceP2p1s0f0", "GSI")]
    node.qps = {"rocep1s0f0": 2}
    busy = json.loads(call(node, "rdma -j res show qp link rocep1s0f0/1").out)
    assert [(q["type"], q["comm"]) for q in busy] == [("GSI", "ib_core"), ("RC", "python3"), ("RC", "python3")]
    assert call(node, "rdma res show qp").out.splitlines()[1].startswith("link rocep1s0f0/1 lqpn 201 rqpn 201 type RC state RTS")
    assert json.loads(call(node, "rdma -j res show mr").out) == []


def test_rdma_says_no_in_its_own_words() -> None:
    got = call(spark(), "rdma link show nosuch/1")
    assert (got.rc, got.out, got.err) == (1, "", "Wrong device name\n")
    got = call(spark(), "rdma -j link", mode="no-core")
    assert (got.rc, got.err) == (1, "Failed to open NETLINK_RDMA socket\n")
    assert call(spark(), "rdma system").out == "netns shared copy-on-fork on \n"
    assert call(spark(), "rdma bogus").rc == 1
    row = json.loads(call(spark(), "rdma -j statistic show link rocep1s0f0/1").out)[0]
    assert (row["ifname"], row["port"], row["out_of_sequence"]) == ("rocep1s0f0", 1, 0)


@pytest.mark.parametrize(("mtu", "active"), [(1500, 1024), (2200, 2048), (4191, 2048), (4192, 4096), (9000, 4096), (576, 256)])
def test_active_mtu_follows_the_interface(mtu: int, active: int) -> None:
    assert active_mtu(mtu) == active
    node = spark()
    code = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}[active]
    out = call(node, "ibv_devinfo -d rocep1s0f0 -i 1", live=links(node, mtu)).out
    assert f"\t\t\tactive_mtu:\t\t{active} ({code})\n" in out
    assert "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n" in out
    assert "roceP2p1s0f0" not in out


def test_ibv_devinfo_lists_gids_only_when_verbose() -> None:
    node = spark()
    assert "GID[" not in call(node, "ibv_devinfo").out
    out = call(node, "ibv_devinfo -v -d rocep1s0f0").out
    assert [m[1] for m in re.finditer(r"^\t\t\tGID\[ {2}(\d)\]:", out, re.M)] == ["0", "1", "2", "3"]
    assert "\t\t\tGID[  3]:\t\t::ffff:10.10.1.11, RoCE v2\n" in out
    node.functions[A].gid_types = "v1"
    assert "RoCE v2" not in call(node, "ibv_devinfo -v -d rocep1s0f0").out


def test_ibv_devinfo_fails_as_the_real_one() -> None:
    node = spark()
    got = call(node, "ibv_devinfo -d nosuch")
    assert (got.rc, got.out, got.err) == (255, "", "IB device 'nosuch' wasn't found\n")
    node.functions.clear()
    assert call(node, "ibv_devinfo").err == "No IB devices found\n"
    assert "PORT_DOWN (1)" in call(spark(), "ibv_devinfo", live=links(spark(), up=False)).out


def test_ethtool_shows_speed_driver_and_pause() -> None:
    node = spark()
    assert "\tSpeed: 200000Mb/s\n\tDuplex: Full\n" in call(node, f"ethtool {A}").out
    down = call(node, f"ethtool {A}", live=links(node, up=False)).out
    assert "\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n" in down
    assert down.endswith("\tLink detected: no\n")
    assert call(node, f"ethtool -i {A}").out.startswith("driver: mlx5_core\n")
    assert "bus-info: 0007:01:00.0\n" in call(node, "ethtool -i enP7s7").out
    assert call(node, f"ethtool -a {A}").out == f"Pause parameters for {A}:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n\n"
    assert call(node, f"ethtool -A {A} rx off").rc == 0
    assert "RX:\t\toff\nTX:\t\ton\n" in call(node, f"ethtool -a {B}").out
    assert call(node, f"ethtool -A {A} tx off").rc == 0
    assert (node.functions[A].global_pause, node.functions[A].pause_tx) == (False, None)


@pytest.mark.parametrize(("argv", "rc", "err"), [
    ("-a lo", 1, "netlink error: Operation not supported\n"), ("-i lo", 71, "Cannot get driver information: Operation not supported\n"),
    ("-S lo", 94, "no stats available\n"), ("-S nosuch", 96, "Cannot get stats strings information: No such device\n"),
    ("-a nosuch", 1, "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n"),
    ("-A lo rx off", 76, "netlink error: Operation not supported\n"),
    ("-A lo rx maybe", 1, "ethtool (-A): invalid value 'maybe' for parameter 'rx'\n"),
    ("--bogus", 1, "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n")])
def test_ethtool_fails_as_version_6_1_does(argv: str, rc: int, err: str) -> None:
    got = call(spark(), f"ethtool {argv}")
    assert (got.rc, got.err) == (rc, err)


def test_pause_counters_exist_only_while_that_pause_is_on() -> None:
    node = spark()
    before = call(node, f"ethtool -S {A}").out
    assert "rx_prio3_pause:" not in before
    assert "     rx_global_pause: 0\n" in before
    call(node, f"mlnx_qos -i {A} -f 0,0,0,1,0,0,0,0")
    call(node, f"ethtool -A {A} rx off tx off")
    after = call(node, f"ethtool -S {A}").out
    assert "     rx_prio3_pause: 0\n" in after
    assert "rx_prio4_pause:" not in after
    assert "global_pause" not in after
    assert "     link_down_events_phy: 1\n" in after


def test_ethtool_may_answer_with_an_error_although_the_values_were_taken() -> None:
    node = spark()
    got = call(node, f"ethtool -A {A} rx off tx off", mode="applied-error")
    assert got.rc == 76
    assert not node.functions[A].global_pause


def test_nvidia_smi_by_profile() -> None:
    node = spark()
    assert call(node, "nvidia-smi --query-gpu=name,compute_cap,count --format=csv,noheader").out == "NVIDIA GB10, 12.1, 1\n"
    node.gpu, node.gpus = "NVIDIA H20", 8
    got = call(node, "nvidia-smi --query-gpu=index,name,compute_cap,memory.total --format=csv").out.splitlines()
    assert got[:2] == ["index, name, compute_cap, memory.total [MiB]", "0, NVIDIA H20, 9.0, 97871 MiB"]
    assert len(got) == 9
    assert call(node, "nvidia-smi -L").out.startswith("GPU 0: NVIDIA H20 (UUID: GPU-")
    assert call(node, "nvidia-smi --query-gpu=bogus --format=csv").rc == 2
    assert call(node, "nvidia-smi", mode="no-driver").rc == 9
    node.gpus = 0
    assert call(node, "nvidia-smi -L").rc == 6


@pytest.mark.parametrize("command", ["mlnx_qos --help", "ethtool -h", "lldptool -h"])
def test_a_stand_in_says_that_it_is_one(command: str) -> None:
    assert "stand-in" in call(spark(), command).out.replace("\n", " ")
