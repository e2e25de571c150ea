"""What a run is to be, and every reason for which there is none. Nothing is run here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from fabrictool.model import Code, Reason
from fabrictool.probes.plan import Plan, plan
from fabrictool.probes.ready import Refusal
from fabrictool.prove import look
from fabrictool.prove.facts import all_reduce
from fabrictool.snapshot import Captured, Recording, Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.spec.schema import CollectiveSpec, ControlSpec, RuntimeSpec
from tests.probes.jobs import FOLDER, RUN_ID
from tests.prove.fleets import h20s, sparks

MIB, GIB = 1 << 20, 1 << 30
TOOLS = "program /usr/bin/all_reduce_perf\noptions aTJ\nmpirun /usr/bin/mpirun mpirun (Open MPI) 4.1.4\nsrun /usr/bin/srun\npmi pmix\n"
SEEN = {look.APPS: "end\n", look.MEMORY: "MemAvailable: 104857600 kB\n", look.TOOLS: f"{TOOLS}port 41000\nend\n",
        look.ENV: "source docker:vllm-a\nn NCCL_IB_TC\nn NCCL_SOCKET_IFNAME\nend\n"}


def fleet(count: int = 4, most: int = 0, **collective: Any) -> tuple[dict[str, NodeSpec], dict[str, Snapshot]]:
    made = sparks(count)
    spec = CollectiveSpec(**collective, control=ControlSpec(max_bytes_per_node=most) if most else None)
    return {n: dataclasses.replace(w, collective=spec) for n, w in made.wants.items()}, dict(made.snaps)


def seen(nodes: Mapping[str, NodeSpec], node: str = "", **texts: str) -> dict[str, Snapshot]:
    """Everything as it should be; on `node` (all, if none is named) with other texts, by the section's last word."""
    other = {f"run.{k}": v for k, v in texts.items()}
    return {n: Snapshot(n, {k: Captured(0, other.get(k, v) if node in ("", n) else v) for k, v in SEEN.items()}) for n in nodes}


def planned(count: int = 4, *, control: bool = False, force: bool = False, node: str = "", texts: Mapping[str, str] | None = None,
            **collective: Any) -> Plan | Refusal:
    wants, snaps = fleet(count, **collective)
    return plan(RUN_ID, wants, snaps, seen(wants, node, **(texts or {})), control=control, force=force)


def good(count: int = 4, **more: Any) -> Plan:
    got = planned(count, **more)
    assert isinstance(got, Plan), got
    return got


def refusal(count: int = 4, **more: Any) -> Refusal:
    got = planned(count, **more)
    assert isinstance(got, Refusal), got
    return got


def test_four_sparks() -> None:
    got = good(launcher="mpirun", runs=3)
    assert [(s.node, s.first, s.ranks, s.address, s.network) for s in got.job.seats][:2] == [
        ("spark01", 0, 1, "10.10.1.11", "10.10.1.0/24"), ("spark02", 1, 1, "10.10.1.12", "10.10.1.0/24")]
    assert {s.interface for s in got.job.seats} == {"enp1s0f0np0"}
    assert (got.job.folder, got.job.size_bytes, got.bound) == (FOLDER, 256 * MIB, "")
    assert (got.gated, got.default_run, got.idle_s, got.consumer) == (("run1", "run2", "run3"), "default", 3, "docker:vllm-a")
    assert got.job.tool.mpi == 4
    assert got.added["spark01"].pin == ""  # the consumer names an interface itself
    assert got.job.limits.program_s == 78
    assert (got.job.limits.start_s, good(start_s=30).job.limits.start_s) == (120, 30)


def test_facts_tell_what_was_asked_for() -> None:
    got = good(launcher="direct", venv="/opt/v")
    facts = all_reduce(Recording("allreduce", facts=got.facts(("run1", "run2")).to_facts()))
    assert facts == got.facts(("run1", "run2"))
    assert (facts.runs, facts.default_run, facts.program, facts.calls) == (("run1", "run2"), "", "torch", 27)
    assert facts.rank_nodes == ("spark01", "spark02", "spark03", "spark04")
    assert facts.command.startswith("/opt/v/bin/python -u ")
    assert facts.limit_s == got.job.limits.node_s
    assert "NCCL_ALGO" in facts.added
    assert got.facts(()).runs == ()


def test_eight_gpus_a_node() -> None:
    made = h20s()
    spec = CollectiveSpec(launcher="mpirun", size=GIB)
    wants = {n: dataclasses.replace(w, collective=spec) for n, w in made.wants.items()}
    got = plan(RUN_ID, wants, made.snaps, seen(wants), control=False, force=False)
    assert isinstance(got, Plan), got
    assert got.job.ranks == 16
    assert [(s.first, s.ranks) for s in got.job.seats] == [(0, 8), (8, 8)]
    assert got.idle_s == 3  # 98.65 GB at half of 400 GB/s


def test_the_bootstrap_interface_is_pinned_only_where_nobody_names_one() -> None:
    nothing = "source -\nend\n"
    assert good(texts={"env": nothing}).added["spark02"].pin == "enp1s0f0np0"
    assert good(texts={"env": nothing}).consumer == ""
    conf = "source -\nconf NCCL_SOCKET_IFNAME\nend\n"
    assert good(texts={"env": conf}).added["spark02"].pin == ""
    boxed = good(texts={"env": conf}, runtime=RuntimeSpec("a@sha256:" + "0" * 64))
    assert boxed.added["spark02"].pin == "enp1s0f0np0"  # a container does not see the node's file
    told = good(node="spark02", texts={"env": nothing}).facts(("run1",))
    assert told.added["NCCL_SOCKET_IFNAME"] == "=enp1s0f0np0 (spark02)"
    assert told.consumer == "docker:vllm-a (spark01), none (spark02), docker:vllm-a (spark03), docker:vllm-a (spark04)"


def test_unified_memory_makes_the_buffer_smaller_and_says_so() -> None:
    got = good(node="spark03", texts={"memory": "MemAvailable: 1048576 kB\n"})
    assert got.job.size_bytes == 128 * MIB
    assert got.asked_bytes == 256 * MIB
    assert "spark03 has 1024 MiB free" in got.bound
    facts = got.facts(("run1",))
    assert (facts.asked_bytes, facts.size_bytes) == (256 * MIB, 128 * MIB)
    none = refusal(node="spark03", texts={"memory": "MemAvailable: 4 kB\n"})
    assert (none.code, none.reason) == (Code.SIZE_REDUCED, Reason.BLOCKED)
    assert refusal(node="spark03", texts={"memory": "x"}).nodes == ("spark03",)


def test_a_control_run_is_short_and_on_a_rail() -> None:
    got = good(control=True)
    assert (got.gated, got.default_run, got.network) == (("run1",), "", "Socket")
    assert got.facts(("run1",)).calls * got.job.size_bytes * 3 // 2 <= 2 * GIB
    variables = got.added["spark01"].variables("run1", True)
    assert (variables["NCCL_NET"], variables["NCCL_SOCKET_IFNAME"]) == ("Socket", "=enp1s0f0np0")
    small = planned(control=True, most=64 * MIB)
    assert isinstance(small, Plan)
    assert small.facts(("run1",)).calls * small.job.size_bytes * 3 // 2 <= 64 * MIB


def test_a_control_run_never_uses_a_protected_interface() -> None:
    wants, snaps = fleet()
    first = {n: dataclasses.replace(w, protected=("enp1s0f0np0",)) for n, w in wants.items()}
    got = plan(RUN_ID, first, snaps, seen(first), control=True, force=False)
    assert isinstance(got, Plan)
    assert got.added["spark01"].sockets == "enP2p1s0f0np0"
    both = {n: dataclasses.replace(w, protected=("enp1s0f0np0", "enP2p1s0f0np0")) for n, w in wants.items()}
    none = plan(RUN_ID, both, snaps, seen(both), control=True, force=False)
    assert isinstance(none, Refusal)
    assert (none.code, none.nodes) == (Code.BLOCKED, ("spark01",))
    assert isinstance(plan(RUN_ID, both, snaps, seen(both), control=False, force=False), Plan)


def test_busy_gpus_are_left_alone_unless_it_is_forced() -> None:
    busy = {"apps": "4101, /usr/bin/python3\nend\n"}
    no = refusal(node="spark02", texts=busy)
    assert (no.code, no.reason, no.nodes) == (Code.GPU_BUSY, Reason.BLOCKED, ("spark02",))
    assert "spark02: /usr/bin/python3 (4101)" in no.why
    assert isinstance(planned(node="spark02", texts=busy, force=True), Plan)
    desktop = {"apps": "12, /usr/lib/xorg/Xorg\n13, /usr/bin/gnome-shell\nend\n"}
    assert isinstance(planned(node="spark02", texts=desktop), Plan)
    for unknown in ("", "NVIDIA-SMI has failed\nend\n", "4101, x\n"):
        assert refusal(node="spark02", texts={"apps": unknown}).code is Code.GPU_BUSY
        assert isinstance(planned(node="spark02", texts={"apps": unknown}, force=True), Plan)


def test_one_node_is_no_fabric() -> None:
    wants, snaps = fleet()
    alone = {"spark01": wants["spark01"]}
    no = plan(RUN_ID, alone, snaps, seen(alone), control=False, force=False)
    assert isinstance(no, Refusal)
    assert (no.code, no.nodes) == (Code.SINGLE_NODE, ("spark01",))
    assert isinstance(plan(RUN_ID, {}, {}, {}, control=False, force=False), Refusal)


@pytest.mark.parametrize(("launcher", "text", "code", "said"), [
    ("mpirun", "missing mpirun\nend\n", Code.TOOL_MISSING, "spark02: no mpirun"),
    ("mpirun", TOOLS.replace("/usr/bin/all", "/opt/all") + "end\n", Code.TOOL_MISSING, "name one path"),
    ("srun", "missing all_reduce_perf_mpi all_reduce_perf\nend\n", Code.TOOL_MISSING, "all_reduce_perf"),
    ("direct", "missing /opt/v/bin/python\nend\n", Code.TOOL_MISSING, "/opt/v/bin/python"),
    ("direct", "python /x\n", Code.LAUNCH_FAILED, "the end is missing"),
    ("direct", "silent docker 124 \nend\n", Code.LAUNCH_FAILED, "image is there is not known: docker did not answer in time"),
    ("direct", "silent docker 1 no daemon\nend\n", Code.LAUNCH_FAILED, "docker gave no answer: exit status 1: no daemon"),
])
def test_tools_that_are_missing_on_one_node(launcher: str, text: str, code: Code, said: str) -> None:
    no = refusal(node="spark02", texts={"tools": text}, launcher=launcher)
    assert (no.code, no.nodes) == (code, ("spark02",))
    assert said in no.why


def test_a_slurm_that_does_not_tell_what_it_hands_out() -> None:
    """Only the node that starts the job is asked for it."""
    silent = {"tools": TOOLS + "silent sinfo 124 \nend\n"}
    no = refusal(node="spark01", texts=silent, launcher="srun")
    assert (no.code, no.reason, no.nodes) == (Code.LAUNCH_FAILED, Reason.TIMEOUT, ("spark01",))
    assert "sinfo did not answer in time" in no.why
    assert isinstance(planned(node="spark02", texts=silent, launcher="srun"), Plan)


def test_another_mpi() -> None:
    hydra = "program /usr/bin/all_reduce_perf\noptions a\nmpirun /usr/bin/mpirun HYDRA build details:\nend\n"
    no = refusal(texts={"tools": hydra}, launcher="mpirun")
    assert (no.code, no.nodes) == (Code.TOOL_MISSING, ("spark01",))
    assert "is not Open MPI: HYDRA build details:" in no.why


def test_a_consumer_that_the_spec_names_has_to_be_there() -> None:
    no = refusal(node="spark04", texts={"env": "source -\nend\n"}, consumer="docker:vllm-*")
    assert (no.code, no.nodes) == (Code.LAUNCH_FAILED, ("spark04",))
    assert refusal(node="spark04", texts={"env": "source docker:vllm-a\n"}).code is Code.LAUNCH_FAILED
    assert isinstance(planned(texts={"env": "source docker:vllm-a\nend\n"}, consumer="docker:vllm-*"), Plan)
    wants, snaps = fleet()
    looked = seen(wants)
    for section in (look.ENV, look.TOOLS):
        denied = {**looked, "spark02": Snapshot("spark02", {**looked["spark02"].sections, section: Captured(1, "", denied=True)})}
        root = plan(RUN_ID, wants, snaps, denied, control=False, force=False)
        assert isinstance(root, Refusal)
        assert (root.code, root.nodes) == (Code.NEEDS_ROOT, ("spark02",))


def test_settings_that_differ_from_node_to_node() -> None:
    wants, snaps = fleet()
    wants["spark03"] = dataclasses.replace(wants["spark03"], collective=CollectiveSpec(size=GIB))
    no = plan(RUN_ID, wants, snaps, seen(wants), control=False, force=False)
    assert isinstance(no, Refusal)
    assert no.nodes == ("spark03",)


def test_a_node_without_a_bootstrap_address() -> None:
    wants, snaps = fleet()
    wants["spark02"] = dataclasses.replace(wants["spark02"], bootstrap="eth9")
    no = plan(RUN_ID, wants, snaps, seen(wants), control=False, force=False)
    assert isinstance(no, Refusal)
    assert (no.code, no.nodes) == (Code.LAUNCH_FAILED, ("spark02",))
    assert "bootstrap address" in no.why


def test_srun_needs_equal_nodes() -> None:
    wants, snaps = fleet(launcher="srun")
    gpu = wants["spark02"].gpu
    assert gpu is not None
    wants["spark02"] = dataclasses.replace(wants["spark02"], gpu=dataclasses.replace(gpu, count=2))
    no = plan(RUN_ID, wants, snaps, seen(wants), control=False, force=False)
    assert isinstance(no, Refusal)
    assert "GPU counts differ" in no.why


def test_without_a_section_of_the_spec_the_defaults_hold() -> None:
    wants, snaps = fleet()
    bare = {n: dataclasses.replace(w, collective=None) for n, w in wants.items()}
    got = plan(RUN_ID, bare, snaps, seen(bare), control=False, force=False)
    assert isinstance(got, Plan)
    assert (got.launcher.name, got.job.size_bytes, len(got.gated)) == ("direct", 256 * MIB, 3)
