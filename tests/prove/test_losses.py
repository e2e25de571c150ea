"""Loss, damage and what is none; devices that are no rail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.model import Code, Status
from fabrictool.prove.rdma_counters import judge
from fabrictool.snapshot import Captured
from tests.prove.counts import ETHTOOL, PORT
from tests.prove.fleets import A, B, h20s, sparks
from tests.prove.recordings import Fleet
from tests.prove.verdicts import verdict

FAIL, WARN, UNKNOWN, PASS = Status.FAIL, Status.WARN, Status.UNKNOWN, Status.PASS
NODE = "spark02"
CLAIMED = (3,)


def grown(name: str, n: int, pfc: tuple[int, ...] | str = "none", device: str = A) -> Fleet:
    fleet = sparks(4, pfc)
    f = fleet.flow("run1", NODE, device)
    (f.sysfs if name in PORT else f.ethtool if name in ETHTOOL else f.hw)[name] = n
    if name in ETHTOOL:  # the port's: its other function shows it too
        fleet.flow("run1", NODE, B).ethtool[name] = n
    return fleet


LOSS = ("out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "req_transport_retries_exceeded",
        "duplicate_request", "roce_adp_retrans", "roce_slow_restart", "port_xmit_discards", "rx_discards_phy", "rx_prio3_discards",
        "rx_prio3_buf_discard", "rx_prio3_cong_discard", "tx_discards_phy")


@pytest.mark.parametrize("name", LOSS)
def test_loss_fails_where_the_switch_is_said_to_do_pfc(name: str) -> None:
    lossy = verdict(judge, grown(name, 12))
    assert (lossy.codes, lossy.nodes) == ({(Code.PACKET_LOSS, WARN)}, {NODE})
    assert name in lossy.bad[0].got
    assert "per million packets" in lossy.bad[0].got
    assert f"{name}: " in lossy.bad[0].why
    held = verdict(judge, grown(name, 12, CLAIMED))
    assert held.codes == {(Code.PACKET_LOSS, FAIL)}
    assert "sw1" in held.bad[0].why
    assert verdict(judge, grown(name, 12, (4,))).codes == {(Code.PACKET_LOSS, WARN)}  # PFC for another priority


@pytest.mark.parametrize("name", ["rx_icrc_encapsulated", "symbol_error", "link_downed", "rx_crc_errors_phy", "link_down_events_phy",
                                  "rx_out_of_range_len_phy", "tx_pause_storm_error_events"])
def test_damage_fails_on_any_fabric(name: str) -> None:
    got = verdict(judge, grown(name, 1))
    assert (got.codes, got.nodes) == ({(Code.PACKET_LOSS, FAIL)}, {NODE})


@pytest.mark.parametrize("name", ["rnr_nak_retry_err", "out_of_buffer", "tx_pause_storm_warning_events"])
def test_a_slow_receiver_is_not_the_fabric(name: str) -> None:
    assert verdict(judge, grown(name, 5, CLAIMED)).codes == {(Code.PACKET_LOSS, WARN)}


@pytest.mark.parametrize("name", ["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rx_prio3_pause", "tx_prio3_pause"])
def test_congestion_control_at_work_passes(name: str) -> None:
    got = verdict(judge, grown(name, 4_000, CLAIMED))
    assert got.passes
    assert any(name in f.got for f in got.findings)


@pytest.mark.parametrize("name", ["rx_corrected_bits_phy", "req_cqe_flush_error", "port_xmit_wait", "rx_prio0_discards",
                                  "rx_read_requests"])
def test_what_is_normal_is_not_mentioned(name: str) -> None:
    got = verdict(judge, grown(name, 4_000, CLAIMED))
    assert got.passes


def test_loss_names_the_function_and_counts_per_million() -> None:
    got = verdict(judge, grown("packet_seq_err", 30, device=B))
    (f,) = got.bad
    assert (f.path, f.subject.rail, f.subject.port) == ("rdma_counters.loss.function", "b", "p0")
    # 10.06 GB each way and run, in packets of 4096 bytes: 14.7 million in three runs
    assert f.got == "packet_seq_err +30 (2.04 per million packets)"


def test_twins_show_one_port_once() -> None:
    """Both functions show the port's discards: 12, not 24."""
    (f,) = verdict(judge, grown("rx_discards_phy", 12)).bad
    assert (f.path, f.subject.place) == ("rdma_counters.loss.port", "p0")
    assert f.got.startswith("rx_discards_phy +12 (")


def test_counters_of_32_bits_wrap() -> None:
    fleet = sparks(4)
    fleet.counts[NODE].functions[0].hw |= {"packet_seq_err": 2**32 - 5, "rx_write_requests": 2**32 - 1}
    assert verdict(judge, fleet).passes
    fleet.flow("run2", NODE, A).hw["packet_seq_err"] = 9
    got = verdict(judge, fleet)
    assert got.codes == {(Code.PACKET_LOSS, WARN)}
    assert got.bad[0].got.startswith("packet_seq_err +9 ")


def test_what_was_there_before_the_run_is_history() -> None:
    fleet = sparks(4, CLAIMED)
    fleet.counts[NODE].functions[0].hw |= {"out_of_sequence": 500_000, "local_ack_timeout_err": 3}
    fleet.counts[NODE].functions[0].sysfs |= {"symbol_error": 11, "link_downed": 2}
    assert verdict(judge, fleet).passes


def test_a_driver_that_shows_no_loss_counters() -> None:
    fleet = sparks(4)
    for f in fleet.counts[NODE].functions:
        f.hw = {"rx_write_requests": 1}
    got = verdict(judge, fleet)
    assert {(c, s) for c, s in got.codes} == {(Code.UNREADABLE, UNKNOWN)}
    assert {f.path for f in got.bad} == {"rdma_counters.loss.function"}


def test_loss_counters_read_too_soon_prove_nothing() -> None:
    fleet = sparks(4)
    case = fleet.recording()
    for run in fleet.facts.runs:
        text = case.at(f"{run}.after", NODE).sections[f"counters.rdma[{A}]"].out.replace("lifespan:10\n", "lifespan:10000\n")
        fleet.put(f"{run}.after", NODE, f"counters.rdma[{A}]", Captured(0, text))
    got = verdict(judge, fleet)
    assert got.codes == {(Code.UNREADABLE, UNKNOWN)}
    assert "lifespan" in got.bad[0].why
    assert got.bad[0].subject.rail == "a"


def test_without_the_ports_own_counters_the_result_says_so() -> None:
    fleet = sparks(4)
    for run in fleet.facts.runs:
        for interface in ("enp1s0f0np0", "enP2p1s0f0np0"):
            fleet.put(f"{run}.before", NODE, f"counters.ethtool[{interface}]", Captured(127, "", "ethtool: not found"))
            fleet.put(f"{run}.after", NODE, f"counters.ethtool[{interface}]", Captured(127, "", "ethtool: not found"))
    got = verdict(judge, fleet)
    assert got.passes
    assert any(f"port p0 of {NODE}" in text for text in got.unproven)


def test_a_run_that_broke_off_may_tell_why_by_its_losses() -> None:
    fleet = grown("local_ack_timeout_err", 40, CLAIMED)
    fleet.put("run1", NODE, "rank[1]", Captured(3, "", "status=IBV_WC_RETRY_EXC_ERR(12)\n"))
    got = verdict(judge, fleet)
    assert got.codes == {(Code.BLOCKED, UNKNOWN), (Code.PACKET_LOSS, FAIL)}


def test_bytes_over_a_device_that_is_no_rail() -> None:
    """NCCL took a device of storage: the rails miss what went over it. One that the spec does not name has no other user."""
    fleet = h20s()
    fleet.flow("run2", "gpu01", "mlx5_4").tx = 9_000_000_000
    fleet.flow("run2", "gpu01", "mlx5_0").tx -= 9_000_000_000
    got = [f for f in verdict(judge, fleet).bad if f.path.startswith("rdma_counters.stray")]
    assert [(f.code, f.status, f.subject.nodes, f.subject.function) for f in got] == [(Code.STRAY_RDMA, FAIL, ("gpu01",), "mlx5_4")]
    assert "other_rdma" in got[0].got
    fleet = h20s()
    fleet.flow("run2", "gpu01", "mlx5_4").tx = 700_000_000
    fleet.wants["gpu01"] = replace(fleet.wants["gpu01"], other_rdma=())
    unlisted = verdict(judge, fleet)
    assert (unlisted.codes, unlisted.nodes, unlisted.places) == ({(Code.STRAY_RDMA, FAIL)}, {"gpu01"}, {"mlx5_4"})
    assert "does not name" in unlisted.bad[0].got


def test_a_burst_of_storage_beside_a_run_that_the_rails_carried_whole() -> None:
    """No fault of the fabric, and no proof either: the spec's other devices must stay flat in it."""
    fleet = h20s()
    fleet.flow("run2", "gpu01", "mlx5_4").tx = 700_000_000
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes, got.places) == ({(Code.FOREIGN_TRAFFIC, UNKNOWN)}, {"gpu01"}, {"mlx5_4"})
    assert "other_rdma" in got.bad[0].got
    fleet.flow("run2", "gpu01", "mlx5_4").tx = 900_000
    assert verdict(judge, fleet).passes


def test_a_storage_device_that_is_always_busy_is_foreign_traffic() -> None:
    fleet = h20s()
    for phase in ("idle", *fleet.phases):
        fleet.flow(phase, "gpu01", "mlx5_5").rx = 90_000_000
    got = verdict(judge, fleet)
    assert (got.codes, got.places) == ({(Code.FOREIGN_TRAFFIC, UNKNOWN)}, {"mlx5_5"})


def test_a_device_that_is_no_rail_and_cannot_be_read() -> None:
    fleet = h20s()
    for moment in ("run1.before", "run1.after"):
        fleet.put(moment, "gpu02", "counters.rdma[mlx5_4]", Captured(0, "/proc/sys/kernel/ostype:Linux\n"))
    got = verdict(judge, fleet)
    assert (got.codes, got.nodes) == ({(Code.UNREADABLE, UNKNOWN)}, {"gpu02"})


def test_keepalives_of_storage_are_flat() -> None:
    fleet = h20s()
    for phase in ("idle", *fleet.phases):
        fleet.flow(phase, "gpu01", "mlx5_4").rx = 250_000
    assert verdict(judge, fleet).passes
