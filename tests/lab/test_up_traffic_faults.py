"""What each fault of traffic does to a collective on two lab nodes. What the program under test says about it is tested elsewhere."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence

import pytest

from fabrictool.lab.faults import FAULTS, inject
from fabrictool.lab.handle import Lab
from tests.lab.collective import DEVICES, INTERFACES, Job, job, sent
from tests.lab.fleet import built, ping, ssh

pytestmark = pytest.mark.lab
NODES = ("spark01", "spark02")
GATE = "-b 8M -e 8M -w 5 -n 20 -c 1"
JUMBO = 8972


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    with built("tfault", len(NODES)) as lab:
        for node in NODES:
            setup = "".join(f"ip link set {i} mtu 9000; mlnx_qos -i {i} --trust dscp >/dev/null; "
                            f"mlnx_qos -i {i} -f 0,0,0,1,0,0,0,0 >/dev/null;" for i in INTERFACES)
            assert lab.exec(node, ["sh", "-ec", setup]).ok
            lab.write_file(node, "/etc/nccl.conf", "NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0\nNCCL_IB_TC=104\n")
        lab.keep()
        yield lab


@pytest.fixture
def two(fleet: Lab) -> Lab:
    fleet.restore()
    for node in NODES:
        assert fleet.exec(node, ["sh", "-ec", "".join(f"ip link set {i} mtu 9000;" for i in INTERFACES)]).ok
    return fleet


def broken(lab: Lab, name: str, function: str = "", limit_s: int = 30, words: str = GATE) -> Job:
    inject(lab, "spark02", name, function)
    return job(lab, NODES, words, limit_s=limit_s)


def statuses(done: Job) -> list[int]:
    return [r.rc for r in done.ranks]


def stats(lab: Lab, node: str) -> dict[str, int]:
    return {k: int(v) for k, v in re.findall(r"^ +(\w+): (\d+)$", lab.exec(node, ["ethtool", "-S", INTERFACES[0]]).out, re.M)}


def statistic(lab: Lab, node: str, name: str) -> int:
    return sum(int(row[name]) for row in json.loads(lab.exec(node, ["rdma", "-j", "statistic"]).out))


def test_twin_of_all_nothing_is_wrong(two: Lab) -> None:
    done = job(two, NODES, GATE)
    assert statuses(done) == [0, 0]
    assert min(done.busbw) > 22
    assert stats(two, "spark02")["rx_prio3_bytes"] > 400_000_000
    assert statistic(two, "spark02", "out_of_sequence") == 0
    assert ping(two, "spark01", "10.10.1.12", JUMBO)


@pytest.mark.parametrize(("name", "low", "high"), [("tcp-fallback", 3.9, 4.1), ("tcp-fast", 21.3, 22.0)])
def test_sockets_instead_of_rdma(two: Lab, name: str, low: float, high: float) -> None:
    done = broken(two, name)
    assert statuses(done) == [0, 0]
    assert all(low < b < high for b in done.busbw)
    assert all("NET/IB : No device found." in log and "Using network Socket" in log for log in done.logs)
    assert [sent(two, node, d) for node in NODES for d in DEVICES] == [0] * 4


@pytest.mark.parametrize("name", ["verbs-missing", "hca-misnamed"])
def test_one_node_on_sockets_never_meets_the_others(two: Lab, name: str) -> None:
    done = broken(two, name, limit_s=4)
    assert statuses(done) == [124, 124]
    assert "Using network IB" in done.logs[0]
    assert "Using network Socket" in done.logs[1]
    assert "Init COMPLETE" in done.logs[0] + done.logs[1]
    assert "Connected all rings" not in done.logs[0] + done.logs[1]


def test_an_idle_rail_is_listed_and_carries_nothing(two: Lab) -> None:
    done = broken(two, "rail-idle", "b")
    assert statuses(done) == [0, 0]
    assert all(11.2 < b < 11.6 for b in done.busbw)
    assert "NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE" in done.logs[0]
    assert "via NET/IB/1" not in done.logs[0]
    assert sent(two, "spark01", DEVICES[0]) > 400_000_000
    assert sent(two, "spark01", DEVICES[1]) == 0


def test_a_degraded_port_is_slow_and_looks_fine(two: Lab) -> None:
    done = broken(two, "nic-13g")
    assert statuses(done) == [0, 0]
    assert all(1.5 < b < 1.7 for b in done.busbw)
    assert "Speed: 200000Mb/s" in two.exec("spark02", ["ethtool", INTERFACES[0]]).out


def test_frozen_counters(two: Lab) -> None:
    done = broken(two, "counters-frozen")
    assert statuses(done) == [0, 0]
    assert min(done.busbw) > 22
    assert [sent(two, "spark02", d) for d in DEVICES] == [0, 0]
    assert sent(two, "spark01", DEVICES[0]) > 200_000_000
    assert stats(two, "spark02")["tx_bytes_phy"] > 400_000_000


def test_traffic_on_a_priority_that_is_not_protected(two: Lab) -> None:
    done = broken(two, "wrong-priority")
    assert statuses(done) == [0, 0]
    assert "NCCL_IB_TC set by environment to 104." in done.logs[1]
    here, there = stats(two, "spark02"), stats(two, "spark01")
    assert (here["tx_prio3_bytes"], there["rx_prio3_bytes"]) == (0, 0)
    assert here["tx_prio0_bytes"] > 400_000_000
    assert here["rx_prio3_bytes"] > 400_000_000  # the other way is right


def test_lost_packets_are_counted_at_both_ends(two: Lab) -> None:
    done = broken(two, "packets-lost", "a")
    assert statuses(done) == [0, 0]
    lost = statistic(two, "spark02", "out_of_sequence")
    assert 50 < lost < 150  # two per thousand of 50176 packets
    assert statistic(two, "spark01", "packet_seq_err") == lost
    assert statistic(two, "spark01", "out_of_sequence") == 0


def test_wrong_sums(two: Lab) -> None:
    done = broken(two, "wrong-result")
    assert done.ranks[0].rc == 7
    assert "# Out of bounds values : 2 FAILED\n" in done.out
    assert " 12 " in done.out


def test_a_rank_that_the_kernel_kills(two: Lab) -> None:
    done = broken(two, "rank-dead", words="-b 8M -e 8M -n 400")
    assert done.ranks[1].rc in (137, -9)  # `timeout` dies as its program did
    assert done.ranks[0].rc == 3
    assert "concluded" not in done.out
    assert any("Out of memory: Killed process" in text for _, text in two.state("spark02").kernel_log)


def test_a_rank_that_hangs_in_init(two: Lab) -> None:
    done = broken(two, "init-hang", limit_s=3)
    assert statuses(done) == [124, 124]
    assert done.logs[0].rstrip().endswith("Init START")
    assert "Init START" not in done.logs[1]


def test_a_hole_between_two_nodes(two: Lab) -> None:
    done = broken(two, "mtu-hole-pair", "a")
    assert set(statuses(done)) == {3}
    assert "status=IBV_WC_RETRY_EXC_ERR(12)" in done.logs[0] + done.logs[1]
    assert not ping(two, "spark01", "10.10.1.12", JUMBO)
    assert ping(two, "spark01", "10.10.1.12", 1472)
    assert ping(two, "spark01", "10.10.2.12", JUMBO)


def test_a_result_file_of_yesterday(two: Lab) -> None:
    inject(two, "spark01", "stale-json")
    began = time.strftime("%Y-%m-%d %H:%M:%S")
    job(two, NODES, f"{GATE} -J /tmp/result.json")
    found = json.loads(two.read_file("spark01", "/tmp/result.json") or "")
    assert found["start_time"] < found["end_time"] or found["start_time"] == found["end_time"]
    assert found["end_time"] < began


def test_a_log_that_is_not_there(two: Lab) -> None:
    done = broken(two, "log-missing")
    assert statuses(done) == [0, 0]
    assert done.logs[1] == ""
    assert done.logs[0]


def test_foreign_traffic_moves_counters_and_holds_queue_pairs(two: Lab) -> None:
    inject(two, "spark02", "foreign-rdma", "a")
    deadline = time.monotonic() + 10
    while sent(two, "spark02", DEVICES[0]) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert two.state("spark02").qps == {DEVICES[0]: 2}
    assert sent(two, "spark02", DEVICES[1]) == 0


def test_ephemeral_ports_that_nobody_reaches(two: Lab) -> None:
    done = broken(two, "firewall", limit_s=4)
    assert 124 in statuses(done)
    assert all("Connected all rings" not in log for log in done.logs)
    assert ssh(two, "spark02", "true").returncode == 0
    assert ping(two, "spark01", "10.10.1.12", JUMBO)
    two.restore()
    assert statuses(job(two, NODES, GATE)) == [0, 0]


def test_programs_on_the_gpu(two: Lab) -> None:
    for name in ("gpu-busy", "gpu-desktop"):
        inject(two, "spark02", name)
    for program in two.state("spark02").compute:
        assert two.exec("spark02", ["test", "-d", f"/proc/{program['pid']}"]).ok


def test_no_name_of_a_fault_is_on_a_node(two: Lab) -> None:
    """In no process, file or log that a fault of traffic leaves."""
    names = [f.name for f in FAULTS if f.traffic is not None and f.name != "firewall"]
    for name in names:
        inject(two, "spark02", name)
    look: Sequence[str] = ["sh", "-c", "ps -e -o args=; grep -rhE '.' /tmp /etc/nccl.conf /opt/fabrictool-lab/node 2>/dev/null"]
    seen = two.exec("spark02", look).out
    assert [n for n in names if n in seen] == []
