"""all_reduce_perf on two real lab nodes: what it moves, by which way, and what it says. Expected bytes are worked out by hand."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fabrictool.lab.handle import Lab
from tests.lab.collective import DEVICES, INTERFACES, by_kernel, job, received, sent
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
NODES = ("spark01", "spark02")
GATE = "-b 8M -e 8M -w 5 -n 20 -c 1"
# 5 + 2 (1 + 20 + 1) = 49 collectives of 8388608 bytes, of which a ring of two hands on all; half of it by each of two devices
PAYLOAD = 205520896
ON_WIRE = {4096: 208431104, 1024: 217161728}  # + 58 bytes for each packet


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    with built("perf", len(NODES)) as lab:
        yield lab


@pytest.fixture
def two(fleet: Lab) -> Lab:
    """Factory state, jumbo frames, and DSCP 26 on a lossless priority 3."""
    fleet.clear()
    for node in NODES:
        setup = "".join(f"ip link set {i} mtu 9000; mlnx_qos -i {i} --trust dscp >/dev/null; mlnx_qos -i {i} -f 0,0,0,1,0,0,0,0 >/dev/null;"
                        for i in INTERFACES)
        assert fleet.exec(node, ["sh", "-ec", setup]).ok
    return fleet


def test_rdma_moves_the_bytes_of_a_ring_and_the_kernel_hardly_any(two: Lab) -> None:
    kernel = {node: by_kernel(two, node, INTERFACES[0]) for node in NODES}
    done = job(two, NODES, GATE, {"NCCL_IB_TC": "104"})
    assert [r.rc for r in done.ranks] == [0, 0], done
    assert all(22.0 < b < 23.0 for b in done.busbw)
    for node in NODES:
        for device in DEVICES:
            assert (sent(two, node, device), received(two, node, device)) == (ON_WIRE[4096],) * 2
        assert by_kernel(two, node, INTERFACES[0]) - kernel[node] < 200_000
        stats = dict(re.findall(r"^ +(\w+): (\d+)$", two.exec(node, ["ethtool", "-S", INTERFACES[1]]).out, re.M))
        assert int(stats["tx_vport_rdma_unicast_bytes"]) == ON_WIRE[4096]
        assert int(stats["tx_prio3_bytes"]) == int(stats["rx_prio3_bytes"]) == 2 * (ON_WIRE[4096] + 4 * PAYLOAD // 4096)
        assert int(stats["tx_prio0_bytes"]) < 500_000
        assert json.loads(two.exec(node, ["rdma", "-j", "statistic"]).out)[0]["out_of_sequence"] == 0
        assert "NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]; OOB enp1s0f0np0:10.10.1.1" in "".join(done.logs)
    for rank, log in enumerate(done.logs):
        assert log.count(f"Channel 01/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/IB/1\n") == 1
        assert log.count(f"Channel 00/0 : {1 - rank}[0] -> {rank}[0] [receive] via NET/IB/0\n") == 1
        assert "NCCL_IB_TC set by environment to 104." in log


def test_small_packets_carry_more_headers_and_the_right_mtu_is_logged(two: Lab) -> None:
    assert two.exec("spark02", ["ip", "link", "set", INTERFACES[0], "mtu", "1500"]).ok
    done = job(two, NODES, GATE)
    assert done.ranks[0].rc == 0
    assert [sent(two, "spark01", d) for d in DEVICES] == [ON_WIRE[1024], ON_WIRE[4096]]
    assert "NCCL Dev 0 IbDev 0 Port 1 qpn" in done.logs[0]
    assert re.search(r"Dev 0 IbDev 0 Port 1 qpn \d+ mtu 3 GID 3", done.logs[0])
    assert re.search(r"Dev 1 IbDev 1 Port 1 qpn \d+ mtu 5 GID 3", done.logs[0])


def test_sockets_really_send_the_bytes_and_rdma_counts_none(two: Lab) -> None:
    kernel = {node: by_kernel(two, node, INTERFACES[0]) for node in NODES}
    done = job(two, NODES, GATE, {"NCCL_IB_HCA": "mlx5"})
    assert [r.rc for r in done.ranks] == [0, 0]
    assert all(3.9 < b < 4.1 for b in done.busbw)
    for node, log in zip(NODES, done.logs, strict=True):
        moved = by_kernel(two, node, INTERFACES[0]) - kernel[node]
        assert 2 * PAYLOAD <= moved <= 2.2 * PAYLOAD
        assert [sent(two, node, d) for d in DEVICES] == [0, 0]
        assert "NET/IB : No device found.\n" in log
        assert "Using network Socket\n" in log
        assert "via NET/Socket/0\n" in log
        assert "via NET/IB" not in log


def test_one_device_is_one_rail(two: Lab) -> None:
    done = job(two, NODES, GATE, {"NCCL_IB_HCA": "=rocep1s0f0:1"})
    assert all(11.2 < b < 11.6 for b in done.busbw)
    assert [sent(two, "spark01", d) for d in DEVICES] == [2 * ON_WIRE[4096], 0]


def test_queue_pairs_and_the_gpu_are_in_use_as_long_as_it_runs(two: Lab) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job, two, NODES, "-b 8M -e 8M -N 0", limit_s=3)
        deadline = time.monotonic() + 10
        while not two.state("spark01").qps:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found = json.loads(two.exec("spark01", ["rdma", "-j", "resource", "show", "qp"]).out)
        assert [(q["ifname"], q["type"]) for q in found if q["type"] == "RC"] == [(d, "RC") for d in reversed(DEVICES) for _ in range(2)]
        assert [(p["name"], p["kind"]) for p in two.state("spark01").compute] == [("all_reduce_perf", "C")]
        assert {r.rc for r in running.result().ranks} <= {124, 3}
    deadline = time.monotonic() + 10
    while two.state("spark01").qps or two.state("spark01").compute:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_prints_and_writes_as_the_real_one(two: Lab) -> None:
    done = job(two, NODES, GATE, each={"spark01": {"SECRET_TOKEN": "x"}})
    head = "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: all_reduce_perf\n"
    assert done.out.startswith(head)
    assert done.out.endswith("#\n# Collective test concluded: all_reduce_perf\n#\n\n")
    assert re.search(r"^#  Rank  1 Group  0 Pid +\d+ on    spark02 device  0 \[000f:01:00\] NVIDIA GB10$", done.out, re.M)
    assert done.ranks[1].out == ""


USAGE = "invalid usage (run with NCCL_DEBUG=WARN for details) / '"


@pytest.mark.parametrize(("env", "words", "rc", "out"), [
    ({"NCCL_SOCKET_IFNAME": "eth9"}, "-b 1M -e 1M", 3, f"spark01: Test NCCL failure common.cu:222 '{USAGE}"),
    ({"NCCL_NET": "IB", "NCCL_IB_HCA": "nothing"}, "-b 1M -e 1M", 3, USAGE), ({"NCCL_ALGO": "BOGUS"}, "-b 1M -e 1M", 3, USAGE),
    ({}, "-g 2", 5, "Invalid number of GPUs: 2 requested but only 1 were found."), ({}, "-e 1Q", 255, ""),
    ({}, "--what", 0, "USAGE: all_reduce_perf")])
def test_it_fails_as_the_real_one(two: Lab, env: dict[str, str], words: str, rc: int, out: str) -> None:
    done = two.exec("spark01", ["env", *(f"{k}={v}" for k, v in env.items()), "all_reduce_perf", *words.split()])
    assert done.rc == rc
    assert out in done.out
    assert "concluded" not in done.out


def test_a_path_that_does_not_carry_full_packets_ends_the_run(two: Lab) -> None:
    two.switch_port_mtu("a", 1500)
    done = job(two, NODES, GATE, {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": ""})
    assert {r.rc for r in done.ranks} == {3}
    assert "status=IBV_WC_RETRY_EXC_ERR(12)" in done.ranks[0].out + done.ranks[1].out
    rows = [json.loads(two.exec(node, ["rdma", "-j", "statistic", "show", "link", f"{DEVICES[0]}/1"]).out)[0] for node in NODES]
    assert sum(r["local_ack_timeout_err"] for r in rows) > 0


def test_a_cable_that_is_out_is_left_out_without_a_word(two: Lab) -> None:
    for node in NODES:
        two.link(node, INTERFACES[1], False)
    done = job(two, NODES, GATE)
    assert done.ranks[0].rc == 0
    assert "NET/IB : Using [0]rocep1s0f0:1/RoCE [RO];" in done.logs[0]
    assert "roceP2p1s0f0" not in done.logs[0]


def test_noise_is_seeded_and_stays_within_its_bounds(two: Lab) -> None:
    figures = []
    for seed in (1, 2, 1):
        for node in NODES:
            with two.edit_state(node) as state:
                state.noise, state.seed = 0.05, seed
        figures.append(job(two, NODES, GATE).busbw)
    assert figures[0] == figures[2] != figures[1]
    assert all(0.95 * 22.8 < b < 1.05 * 22.95 for bw in figures for b in bw)
