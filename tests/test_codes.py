"""Every code is raised by something: by the judges from text, by the engine, and (where a lab can have the cause) by a fault.

The first two tables name the test that raises each code and are run here with a recorder: what counts is a finding that the program
itself makes. `tests/lab/test_fault_walk.py` walks the faults.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictool import rooms
from fabrictool.lab.faults import FAULTS
from fabrictool.model import RESERVED, Code, Status
from fabrictool.room import Fleet, Room
from fabrictool.snapshot import Snapshot
from fabrictool.verdict import not_acted_on
from tests.engine_codes import CODES as BY_THE_ENGINE
from tests.raised import raised_by, recorded
from tests.specs import node_spec

ROOT = Path(__file__).resolve().parent.parent

FROM_TEXT: dict[Code, str] = {
    Code.LINK_MTU_RUNNING: "link/test_running::test_running_mtu_has_one_step_with_its_undo",
    Code.LINK_MTU_PERSISTED: "link/test_persisted::test_networkmanager_profile",
    Code.LINK_MTU_RANGE: "link/test_running::test_device_maximum",
    Code.LINK_TWO_OWNERS: "link/test_persisted::test_two_owners_networkd_and_networkmanager",
    Code.LINK_NO_OWNER: "link/test_persisted::test_no_owner_warns_with_the_lines_to_write",
    Code.LINK_OWNER_UNSUPPORTED: "link/test_persisted::test_profile_for_any_interface_is_not_written",
    Code.LINK_DHCP_PROFILE: "link/test_persisted::test_dhcp_on_a_fabric_port",
    Code.LINK_DOWN: "link/test_running::test_link_state",
    Code.LINK_ABSENT: "ports/test_judge::test_cable_in_the_other_cage",
    Code.LINK_SPEED: "link/test_running::test_speed_against_the_spec",
    Code.LINK_BINDING: "ports/test_judge::test_selectors_disagree",
    Code.PCIE_WIDTH: "ports/test_judge::test_pcie_width",
    Code.PATH_MTU_HOLE: "probes/test_path::test_judge_pair",
    Code.MGMT_PATH: "ports/test_guard::test_answers_to_the_client_leave_by_the_port",
    Code.FABRIC_IN_USE: "ports/test_guard::test_queue_pairs_up",
    Code.ARP_FLUX: "link/test_running::test_two_rails_in_one_subnet",
    Code.QOS_TRUST: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_DSCP_MAP: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_PFC_MASK: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_PFC_WRONG_PRIORITY: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_SHARED_TC: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_BUFFER: "qos/test_judge::test_a_lossless_priority_without_buffer",
    Code.QOS_GLOBAL_PAUSE: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_NOT_PERSISTED: "qos/test_persist::test_only_what_differs_is_written",
    Code.QOS_OTHER_OWNER: "qos/test_rivals::test_how_another_owner_is_weighed",
    Code.QOS_LLDPAD: "qos/test_rivals::test_lldpad_stops_every_write_that_it_would_fight_over",
    Code.QOS_FW_DCBX: "qos/test_judge::test_one_wrong_setting_is_one_finding_with_its_step",
    Code.QOS_READERS_DISAGREE: "qos/test_readers::test_readers_that_disagree_stop_the_write",
    Code.QOS_UNSUPPORTED: "qos/test_readers::test_no_dcb_bond_vlan_and_vf",
    Code.QOS_ECN: "qos/test_judge::test_ecn_only_where_the_spec_asks",
    Code.RDMA_ABSENT: "rdma/test_judge::test_a_missing_device_is_told_from_a_missing_tool_and_a_missing_stack",
    Code.RDMA_DOWN: "rdma/test_judge::test_a_port_that_is_down_shows_no_rate",
    Code.RDMA_RATE: "rdma/test_judge::test_one_fault_is_one_code",
    Code.RDMA_LINK_LAYER: "rdma/test_judge::test_one_fault_is_one_code",
    Code.RDMA_ACTIVE_MTU: "rdma/test_judge::test_one_fault_is_one_code",
    Code.RDMA_TCLASS_OVERRIDE: "rdma/test_judge::test_one_fault_is_one_code",
    Code.RDMA_READERS_DISAGREE: "rdma/test_judge::test_readers_that_disagree_give_no_verdict",
    Code.NO_ROCEV2_GID: "rdma/test_judge::test_one_fault_is_one_code",
    Code.GID_PINNED: "env/test_lint::test_gid_advice_names_the_entry",
    Code.GID_NOT_AUTOMATIC: "env/test_running::test_old_nccl_has_no_automatic_gid",
    Code.ENV_FILE_DRIFT: "env/test_files::test_drift_shows_both_sides_and_keeps_foreign_lines",
    Code.ENV_LINT: "env/test_lint::test_rules_of_nccl_conf",
    Code.ENV_NO_SUCH_INTERFACE: "env/test_lint::test_rules_of_nccl_conf",
    Code.ENV_RESTART_NEEDED: "env/test_running::test_started_before_the_file_needs_a_restart",
    Code.ENV_DEBUG_LEFT_ON: "env/test_lint::test_rules_of_nccl_conf",
    Code.ENV_OVERRIDE: "env/test_lint::test_other_places",
    Code.ENV_CUDA_ARCH: "env/test_lint::test_cuda_arch",
    Code.NAME_LOOPBACK: "names/test_judge::test_loopback_is_one_step_with_everything",
    Code.NAME_DIFFERS: "names/test_judge::test_something_answers_before_the_file",
    Code.NAME_TEMPLATE: "names/test_cloud_inside::test_template",
    Code.NAME_MDNS: "names/test_judge::test_mdns",
    Code.GLOO_LOOPBACK: "names/test_cloud_inside::test_inside_a_container",
    Code.WRONG_RESULT: "collective/test_result::test_wrong_results_come_first",
    Code.NO_RESULT: "collective/test_result::test_a_run_without_its_closing_line_never_passes",
    Code.RANK_DIED: "collective/test_result::test_a_run_without_its_closing_line_never_passes",
    Code.RUN_TIMEOUT: "collective/test_result::test_a_run_without_its_closing_line_never_passes",
    Code.INIT_HANG: "collective/test_result::test_a_run_without_its_closing_line_never_passes",
    Code.RESULT_UNPARSED: "collective/test_result::test_rows_that_are_not_whole",
    Code.RESULT_STALE: "collective/test_result::test_a_result_of_an_earlier_run",
    Code.SIZE_REDUCED: "collective/test_result::test_another_size_than_asked_for",
    Code.TOO_FEW_GPUS: "collective/test_result::test_a_run_without_its_closing_line_never_passes",
    Code.BAD_ARGUMENT: "collective/test_result::test_a_run_without_its_closing_line_never_passes",
    Code.LAUNCH_FAILED: "collective/test_result::test_other_ranks_or_nodes_than_asked_for",
    Code.LOW_BUSBW: "collective/test_result::test_what_goes_wrong_after_the_result",
    Code.SINGLE_NODE: "prove/test_path_mtu::test_one_node_has_no_path_to_try",
    Code.BOOTSTRAP_BLOCKED: "prove/test_bootstrap_tcp::test_each_way_to_be_blocked_names_its_direction",
    Code.BASELINE_LOW: "prove/test_bandwidth::test_worse_than_the_fleets_own_baseline",
    Code.GPU_BUSY: "prove/test_launch::test_a_forced_run_beside_other_work_warns",
    Code.LEFT_BEHIND: "prove/test_bootstrap_tcp::test_what_is_left_behind",
    Code.COUNTERS_FLAT: "prove/test_rdma_counters::test_one_fault_is_one_code_at_one_node",
    Code.COUNTERS_SHORT: "prove/test_rdma_counters::test_one_fault_is_one_code_at_one_node",
    Code.COUNTERS_INVALID: "prove/test_rdma_counters::test_one_fault_is_one_code_at_one_node",
    Code.SINGLE_RAIL: "prove/test_rdma_counters::test_one_fault_is_one_code_at_one_node",
    Code.RAIL_IDLE: "prove/test_rdma_counters::test_one_of_eight_rails",
    Code.FOREIGN_TRAFFIC: "prove/test_rdma_counters::test_one_fault_is_one_code_at_one_node",
    Code.STRAY_RDMA: "prove/test_losses::test_bytes_over_a_device_that_is_no_rail",
    Code.PACKET_LOSS: "prove/test_losses::test_loss_fails_where_the_switch_is_said_to_do_pfc",
    Code.PRIORITY_WRONG: "prove/test_lossless_priority::test_the_wrong_priority_carries_the_bytes",
    Code.CONTROL_MOVED: "prove/test_control::test_counters_that_move_in_the_control",
    Code.TCP_FALLBACK: "collective/test_transport_judge::test_tcp_fallback_names_the_pair_and_says_why",
    Code.LOG_MISSING: "collective/test_transport_judge::test_a_missing_log_is_unknown",
    Code.TRANSPORT_UNKNOWN: "collective/test_transport_judge::test_what_cannot_be_told_is_unknown",
    Code.GDR_MISSING: "collective/test_transport_judge::test_no_gpudirect",
    Code.SHM_ON_NVLINK: "collective/test_transport_judge::test_host_memory_where_there_is_nvlink",
    Code.NCCL_NO_INTERFACE: "collective/test_symptoms_nccl::test_captures_that_fail",
    Code.NCCL_NO_DEVICE: "collective/test_symptoms_nccl::test_captures_that_fail",
    Code.NCCL_WRONG_INTERFACE: "collective/test_transport_judge::test_the_wrong_bootstrap_interface",
    Code.NCCL_BAD_SETTING: "collective/test_symptoms_nccl::test_captures_that_fail",
    Code.NCCL_MIXED: "collective/test_transport_judge::test_different_builds_of_nccl",
    Code.RDMA_CONNECT: "collective/test_symptoms_rdma::test_rdma_symptoms",
    Code.RDMA_RETRY_EXCEEDED: "collective/test_symptoms_rdma::test_rdma_symptoms",
    Code.RDMA_MEMORY: "collective/test_symptoms_rdma::test_rdma_symptoms",
    Code.ENV_NOT_PROPAGATED: "collective/test_environ::test_a_rank_saw_another_value_or_none",
    Code.GLOO_CONNECT: "collective/test_symptoms_torch::test_torch_symptoms",
    Code.NIXL_TCP: "collective/test_ucx::test_tcp_between_nodes",
    Code.UCX_NO_DEVICE: "collective/test_ucx::test_no_such_device",
    Code.VERSIONS_DIFFER: "prove/test_versions::test_the_one_that_differs_is_named",
    Code.MEMLOCK: "prove/test_memlock::test_the_limit_of_a_container",
    Code.OOM_KILLED: "prove/test_kernel_log::test_one_trouble_is_one_code",
    Code.GPU_XID: "prove/test_kernel_log::test_one_trouble_is_one_code",
    Code.LINK_EVENTS: "prove/test_kernel_log::test_one_trouble_is_one_code",
    Code.STORAGE_ERROR: "prove/test_kernel_log::test_one_trouble_is_one_code",
    Code.STORAGE_TIMEOUT: "prove/test_kernel_log::test_one_trouble_is_one_code",
    Code.HUNG_TASK: "prove/test_kernel_log::test_one_trouble_is_one_code",
    Code.NIC_DEGRADED: "prove/test_rails::test_a_slow_nic_in_a_ring_slows_all_and_is_told_as_such",
    Code.PEER_MEMORY: "prove/test_peermem::test_gpudirect_hindered",
    Code.RANK_HANGS: "prove/test_hang::test_one_rank_stands_apart_and_the_others_wait_for_it",
    Code.TOOL_MISSING: "rdma/test_judge::test_a_missing_device_is_told_from_a_missing_tool_and_a_missing_stack",
    Code.TOOL_TIMEOUT: "ports/test_guard::test_no_rdma_device_means_nothing_in_use",
    Code.NEEDS_ROOT: "env/test_running::test_needs_root_is_unknown",
    Code.UNREADABLE: "qos/test_readers::test_an_interface_that_looks_like_an_option_is_never_put_on_a_command_line",
    Code.NOTHING_KNOWN: "diagnose/test_pastes::test_nothing_known_is_an_outcome_of_its_own",
    Code.NO_EVIDENCE: "report/test_exit::test_nothing_looked_at_is_no_verdict",
    Code.UNREACHABLE: "rdma/test_judge::test_an_unreachable_node_gets_no_verdict",
    Code.BLOCKED: "ports/test_judge::test_rdma_device_absent_blocks_only_the_binding",
}
HERE = frozenset({Code.BUG, Code.SPEC_NOT_ACTED_ON})
# What a lab can have the cause of, and no single fault on a configured node shows.
NO_FAULT = {
    Code.RANK_HANGS: "the lab's consumers are no ranks of a job",
    Code.NIC_DEGRADED: "only a run over the slow NIC shows it, and the walk makes none",
    Code.PEER_MEMORY: "the lab's Sparks have one memory, which the NIC reaches without it",
    Code.VERSIONS_DIFFER: "the lab's nodes share one kernel and one set of programs",
    Code.MEMLOCK: "the lab's containers have this machine's limits",
    **dict.fromkeys((Code.OOM_KILLED, Code.GPU_XID, Code.LINK_EVENTS, Code.STORAGE_ERROR, Code.STORAGE_TIMEOUT, Code.HUNG_TASK),
                    "the lab's nodes have this machine's kernel"),
    Code.LINK_MTU_RANGE: "a veth takes any MTU",
    Code.LINK_NO_OWNER: "a profile of the lab: plain nodes have no owner, and their spec does not ask for one",
    Code.LINK_OWNER_UNSUPPORTED: "needs another distribution's files",
    Code.LINK_BINDING: "a wrong spec, not a wrong node",
    Code.PATH_MTU_HOLE: "shown only while apply raises an MTU: mtu-hole on a node as delivered",
    Code.ARP_FLUX: "a spec with two rails in one subnet",
    Code.QOS_ECN: "the lab's spec does not ask for it",
    Code.RDMA_ACTIVE_MTU: "the lab's devices follow their interface",
    Code.RDMA_READERS_DISAGREE: "both views of the lab have one state",
    Code.GID_NOT_AUTOMATIC: "the lab's containers hold no NCCL",
    Code.ENV_LINT: "any of its rules",
    Code.ENV_CUDA_ARCH: "a wrong spec, not a wrong node",
    Code.NAME_MDNS: "a lab node asks no resolver",
    Code.GLOO_LOOPBACK: "the lab's containers have the node's own files",
    Code.WRONG_RESULT: "needs memory or a NIC that corrupts data",
    Code.NO_RESULT: "shown only by the checks that run a collective",
    Code.RANK_DIED: "shown only by the checks that run a collective",
    Code.RUN_TIMEOUT: "shown only by the checks that run a collective",
    Code.INIT_HANG: "shown only by the checks that run a collective",
    Code.RESULT_UNPARSED: "a damaged output, not a wrong node",
    Code.RESULT_STALE: "shown only by the checks that run a collective",
    Code.SIZE_REDUCED: "shown only by the checks that run a collective",
    Code.TOO_FEW_GPUS: "shown only by the checks that run a collective",
    Code.BAD_ARGUMENT: "a wrong command line, not a wrong node",
    Code.LAUNCH_FAILED: "shown only by the checks that run a collective",
    Code.LOW_BUSBW: "shown only by the checks that run a collective",
    Code.SINGLE_NODE: "a selection of one node",
    Code.BOOTSTRAP_BLOCKED: "shown only by the check of that name, which makes connections",
    Code.BASELINE_LOW: "needs a recording of a better day",
    Code.GPU_BUSY: "shown only by the checks that run a collective",
    Code.LEFT_BEHIND: "a run of ours that did not clean up",
    Code.COUNTERS_FLAT: "shown only by checks that make traffic",
    Code.COUNTERS_SHORT: "shown only by checks that make traffic",
    Code.COUNTERS_INVALID: "shown only by checks that make traffic",
    Code.SINGLE_RAIL: "shown only by checks that make traffic",
    Code.RAIL_IDLE: "shown only by checks that make traffic",
    Code.FOREIGN_TRAFFIC: "shown only by checks that make traffic",
    Code.STRAY_RDMA: "shown only by checks that make traffic",
    Code.PACKET_LOSS: "shown only by checks that make traffic",
    Code.PRIORITY_WRONG: "shown only by checks that make traffic",
    Code.CONTROL_MOVED: "shown only by checks that make traffic",
    Code.TCP_FALLBACK: "shown only by the checks that run a collective",
    Code.LOG_MISSING: "shown only by the checks that run a collective",
    Code.TRANSPORT_UNKNOWN: "shown only by the checks that run a collective",
    Code.GDR_MISSING: "shown only by the checks that run a collective",
    Code.SHM_ON_NVLINK: "shown only by the checks that run a collective",
    Code.NCCL_NO_INTERFACE: "shown only by the checks that run a collective",
    Code.NCCL_NO_DEVICE: "shown only by the checks that run a collective",
    Code.NCCL_WRONG_INTERFACE: "shown only by the checks that run a collective",
    Code.NCCL_BAD_SETTING: "shown only by the checks that run a collective",
    Code.NCCL_MIXED: "shown only by logs of jobs",
    Code.RDMA_CONNECT: "shown only by logs of jobs",
    Code.RDMA_RETRY_EXCEEDED: "shown only by logs of jobs",
    Code.RDMA_MEMORY: "shown only by logs of jobs",
    Code.ENV_NOT_PROPAGATED: "shown only by the checks that run a collective",
    Code.GLOO_CONNECT: "shown only by logs of jobs",
    Code.NIXL_TCP: "shown only by logs of jobs",
    Code.UCX_NO_DEVICE: "shown only by logs of jobs",
    Code.NOTHING_KNOWN: "about text that somebody pastes",
    Code.NO_EVIDENCE: "a judge that says nothing",
    Code.BLOCKED: "stands beside what it is blocked by",
}


@pytest.mark.parametrize(("code", "test"), FROM_TEXT.items(), ids=[str(c) for c in FROM_TEXT])
def test_a_judge_raises_it_from_text(code: Code, test: str) -> None:
    path, _, name = test.partition("::")
    assert code in raised_by(f"tests/{path}.py::{name}")


def test_the_recorder_counts_only_what_the_program_finds_wrong() -> None:
    """The twin of all of the above: a healthy node raises nothing, and neither do findings that a test makes."""
    assert raised_by("tests/qos/test_judge.py::test_a_configured_node_passes_with_evidence_for_every_aspect") == set()
    assert raised_by("tests/link/test_running.py::test_healthy_host_passes_everything") == set()
    assert Code.BUG not in raised_by("tests/report/test_exit.py::test_table")
    with pytest.raises(ValueError, match="needs capsys, monkeypatch"):
        raised_by("tests/lab/test_fault_docs.py::test_a_narrow_terminal_gets_two_lines_a_fault")


def test_the_engine_raises_its_own() -> None:
    """In a process of its own: importing the engine patches sockets and threads."""
    done = subprocess.run([sys.executable, "-m", "tests.engine_codes"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(json.loads(done.stdout)) == {str(c) for c in BY_THE_ENGINE}


def test_a_judge_that_raises_is_a_bug_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[object]:
        raise KeyError("x")

    room: Room[object] = Room("qos", (), lambda snap: snap, broken)  # type: ignore[arg-type]
    monkeypatch.setattr(rooms, "ROOMS", (room,))
    with recorded() as found:
        judged = rooms.findings(node_spec(), Snapshot("spark01"), Fleet())
    assert Code.BUG in found
    assert [(f.code, f.status) for f in judged["qos"]] == [(Code.BUG, Status.UNKNOWN)]


def test_sections_that_nothing_acts_on_are_named() -> None:
    spec = node_spec(kernel_caches={"k": {"container": "x", "kinds": ["triton"], "host_path": "/a", "mounted_at": "/b"}})
    assert [str(Code.SPEC_NOT_ACTED_ON) in note for note in not_acted_on([spec])] == [True]
    assert not_acted_on([node_spec()]) == ()


def test_every_code_is_raised_or_reserved() -> None:
    raised = {*FROM_TEXT, *BY_THE_ENGINE, *HERE}
    assert set(Code) - raised == RESERVED
    assert raised & RESERVED == set()
    assert len(FROM_TEXT) + len(BY_THE_ENGINE) + len(HERE) == len(raised)  # each in one table


def test_every_code_of_a_room_has_a_fault_or_a_reason_why_not() -> None:
    """HOST_KEY_CHANGED and UNREACHABLE are faults too; what only the engine says is tested beside the engine."""
    by_fault = {Code(c) for f in FAULTS for outcome in (*f.expect.values(), *f.wiped.values()) for c in outcome.codes}
    assert set(FROM_TEXT) - by_fault == set(NO_FAULT)
    assert by_fault & set(NO_FAULT) == set()
