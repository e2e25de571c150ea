"""Findings from a transport verdict: each code with a log that shows it, and its healthy twin."""

from __future__ import annotations

import pytest

from fabrictool.collective.expect import Expect, of_gpu, of_spec
from fabrictool.collective.log import parse
from fabrictool.collective.transport import verdict
from fabrictool.collective.transport_judge import judge_transport
from fabrictool.model import Code, Finding, Status, SubjectKind
from tests.collective.nccl_log import H20, H20_HCAS, SPARK, Job, capture
from tests.specs import node_spec

RAILS = ("rocep1s0f0", "roceP2p1s0f0")
SPARK_WANT = Expect(RAILS, (), "enp1s0f0np0", True)
H20_WANT = Expect(tuple(h.split(":")[0] for h in H20_HCAS), ("mlx5_4", "mlx5_5"), "bond1", False, "required")
MTU4 = "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 263 mtu 5 GID {}"


def findings(text: str, want: Expect | None = None, ranks: dict[int, str] | None = None) -> list[Finding]:
    log = parse(text)
    got = verdict(log, ranks)
    return list(judge_transport(got, log, dict.fromkeys(got.nodes, want) if want else {}, "allreduce.transport"))


def bad(found: list[Finding]) -> set[tuple[Status, Code]]:
    return {(f.status, f.code) for f in found if f.bad}


def of(found: list[Finding], code: Code) -> list[Finding]:
    return [f for f in found if f.code is code and f.bad]


@pytest.mark.parametrize(("job", "want"), [(SPARK, SPARK_WANT), (H20, H20_WANT), (SPARK.on(tree=True), SPARK_WANT)])
def test_a_healthy_run_passes_with_evidence(job: Job, want: Expect) -> None:
    found = findings(job.log(), want)
    assert bad(found) == set()
    assert {f.path.removeprefix("allreduce.transport.") for f in found} == {
        "overall", "logs", "edges", "hca", "hca_used", "gdr", "bootstrap", "versions"}
    pair = next(f for f in found if f.path == "allreduce.transport.edges")
    assert (pair.subject.kind, pair.subject.nodes, pair.subject.peer) == (SubjectKind.PAIR, (job.hosts[0],), job.hosts[1])
    assert "counters prove it" in pair.got
    assert all(f.path.startswith("allreduce.transport.") for f in found)


def test_tcp_fallback_names_the_pair_and_says_why() -> None:
    found = findings(SPARK.on(network="Socket", env=("NCCL_IB_DISABLE set by environment to 1.",)).log(), SPARK_WANT)
    (pair,) = of(found, Code.TCP_FALLBACK)
    assert (pair.status, pair.subject.nodes, pair.subject.peer, pair.path) == (
        Status.FAIL, ("node-a",), "node-b", "allreduce.transport.edges")
    assert "NET/Socket" in pair.got
    assert "line 15: Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0" in pair.got
    assert "NCCL_IB_DISABLE=1 is set" in pair.why
    assert of(findings(SPARK.log(), SPARK_WANT), Code.TCP_FALLBACK) == []


@pytest.mark.parametrize("name", ["socket.txt", "mpi_twohosts.txt", "mpi_tagged.txt"])
def test_tcp_fallback_in_captures_although_they_exit_0(name: str) -> None:
    (f,) = of(findings(capture(name)), Code.TCP_FALLBACK)
    assert (f.status, f.subject.kind, f.subject.nodes) == (Status.FAIL, SubjectKind.NODE, ("vm",))
    assert "No RDMA device" in f.why or "no RDMA device" in f.why


def test_sockets_chosen_and_nothing_connected_yet() -> None:
    found = of(findings(SPARK.on(network="Socket", channels=0).log()), Code.TCP_FALLBACK)
    assert [(f.subject.nodes, f.got) for f in found] == [(("node-a",), "Using network Socket"), (("node-b",), "Using network Socket")]


@pytest.mark.parametrize("name", ["nvlink.txt", "shm.txt", "mpi_local.txt"])
def test_one_node_is_no_verdict_on_the_fabric(name: str) -> None:
    (f,) = of(findings(capture(name)), Code.SINGLE_NODE)
    assert (f.status, f.path, f.subject.nodes) == (Status.UNKNOWN, "allreduce.transport.overall", ("vm",))
    assert of(findings(SPARK.log()), Code.SINGLE_NODE) == []


def test_a_missing_log_is_unknown() -> None:
    found = findings(SPARK.log(0), SPARK_WANT, {0: "node-a", 1: "node-b"})
    assert bad([f for f in found if "hca" not in f.path]) == {(Status.UNKNOWN, Code.LOG_MISSING)}
    (f,) = of(found, Code.LOG_MISSING)
    assert (f.subject.nodes, f.got) == (("node-b",), "no log of rank 1")
    assert [f.subject.nodes for f in found if f.code is Code.LOG_MISSING and not f.bad] == [("node-a",)]
    without_map = of(findings(H20.log(*range(12))), Code.LOG_MISSING)
    assert [f.got for f in without_map] == ["no log of ranks 12, 13, 14, 15"]


@pytest.mark.parametrize(("text", "says"), [
    (SPARK.on(network="MyPlugin").log(), "MyPlugin"),
    (SPARK.on(channels=0).log(), "no channel lines"),
    ("\n".join(ln for ln in SPARK.log().split("\n") if "[send]" not in ln), "only one end"),
    (SPARK.log().replace("[send] via NET/IB/0", "via SHM/direct").replace("[send] via NET/IB/1", "via SHM/direct"), "only inside a node"),
    (SPARK.on(nodes=1, channels=0).log() + SPARK.says(0, "Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL\n")
     + SPARK.says(1, "Channel 00/0 : 1[0] -> 0[0] via P2P/MNNVL"), "NVLink"),
    (capture("badif.txt"), "no channel lines"), (capture("timeout.txt"), "no channel lines"),
])
def test_what_cannot_be_told_is_unknown(text: str, says: str) -> None:
    found = of(findings(text), Code.TRANSPORT_UNKNOWN)
    assert {f.status for f in found} == {Status.UNKNOWN}
    assert says in found[0].why
    assert found[0].remedy
    assert of(findings(SPARK.log()), Code.TRANSPORT_UNKNOWN) == []


def test_one_rail_of_two() -> None:
    for job in (SPARK.on(hcas=SPARK.hcas[:1]), SPARK.on(index=0)):
        found = of(findings(job.log(), SPARK_WANT), Code.SINGLE_RAIL)
        assert [(f.status, f.subject.nodes, f.got) for f in found] == [
            (Status.FAIL, (n,), "rocep1s0f0") for n in ("node-a", "node-b")]
        assert of(findings(job.log()), Code.SINGLE_RAIL) == []  # nobody said that there should be two
    only_b = SPARK.log(0) + SPARK.on(hcas=SPARK.hcas[:1]).log(1)
    assert [f.subject.nodes for f in of(findings(only_b, SPARK_WANT), Code.SINGLE_RAIL)] == [("node-b",)]


def test_some_rails_of_eight() -> None:
    listed = of(findings(H20.on(hcas=H20_HCAS[:6]).log(), H20_WANT), Code.RAIL_IDLE)
    assert [(f.status, f.path) for f in listed] == [(Status.FAIL, "allreduce.transport.hca")] * 2
    assert "mlx5_8, mlx5_9" in listed[0].why
    used = of(findings(H20.on(channels=5).log(), H20_WANT), Code.RAIL_IDLE)
    assert [(f.status, f.path) for f in used] == [(Status.WARN, "allreduce.transport.hca_used")] * 2
    assert of(findings(H20.log(), H20_WANT), Code.RAIL_IDLE) == []


def test_rails_that_cannot_be_read_are_unknown() -> None:
    no_list = "\n".join(ln for ln in SPARK.log().split("\n") if "NET/IB : Using" not in ln)
    unread = [f for f in findings(no_list, SPARK_WANT) if f.path.endswith(".hca")]
    assert [(f.status, f.code) for f in unread] == [(Status.UNKNOWN, Code.UNREADABLE)] * 2
    beyond = [f for f in findings(SPARK.on(index=2).log(), SPARK_WANT) if f.path.endswith(".hca_used")]
    assert [(f.status, f.code) for f in beyond] == [(Status.UNKNOWN, Code.UNREADABLE)] * 2


def test_no_rdma_device_of_the_rails() -> None:
    found = of(findings(SPARK.on(network="Socket").log(), SPARK_WANT), Code.NCCL_NO_DEVICE)
    assert [(f.status, f.got) for f in found] == [(Status.FAIL, "none")] * 2
    assert of(findings(SPARK.log(), SPARK_WANT), Code.NCCL_NO_DEVICE) == []


def test_a_device_that_is_no_rail() -> None:
    found = of(findings(H20.on(hcas=(*H20_HCAS, "mlx5_4:1/RoCE")).log(), H20_WANT), Code.STRAY_RDMA)
    assert [(f.status, f.got) for f in found] == [(Status.WARN, "mlx5_4")] * 2
    assert of(findings(H20.log(), H20_WANT), Code.STRAY_RDMA) == []


@pytest.mark.parametrize(("want", "status"), [
    (Expect(unified_memory=False, gpudirect="required"), Status.FAIL), (Expect(unified_memory=False), Status.WARN),
    (Expect(unified_memory=False, gpudirect="none"), Status.SKIP), (Expect(unified_memory=True), Status.PASS), (Expect(), Status.SKIP),
    (of_gpu("NVIDIA GB10"), Status.PASS), (of_gpu("NVIDIA H200"), Status.WARN), (of_gpu(""), Status.SKIP),
])
def test_no_gpudirect(want: Expect, status: Status) -> None:
    job = H20.on(gdr="", extra=("GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)",))
    found = [f for f in findings(job.log(), want) if f.path.endswith(".gdr")]
    assert [(f.code, f.status) for f in found] == [(Code.GDR_MISSING, status)] * 2
    assert ("distance 8 > 5" in found[0].why) == (status in (Status.FAIL, Status.WARN))
    assert all(f.status is Status.PASS for f in findings(H20.log(), want) if f.path.endswith(".gdr"))


def test_host_memory_where_there_is_nvlink() -> None:
    (f,) = of(findings(capture("shm.txt")), Code.SHM_ON_NVLINK)
    assert (f.status, f.why) == (Status.WARN, "NCCL_P2P_DISABLE=1 is set")
    job = H20.on(local="SHM/direct/direct")
    assert len(of(findings(job.log(), Expect(nvlink=True)), Code.SHM_ON_NVLINK)) == 2
    assert of(findings(job.log(), Expect(nvlink=False)), Code.SHM_ON_NVLINK) == []
    assert of(findings(job.log()), Code.SHM_ON_NVLINK) == []  # nothing says that there is NVLink
    assert of(findings(H20.log(), Expect(nvlink=True)), Code.SHM_ON_NVLINK) == []


@pytest.mark.parametrize(("job", "want", "status"), [
    (SPARK.on(oob="enP7s7"), SPARK_WANT, Status.FAIL), (SPARK.on(oob="docker0"), SPARK_WANT, Status.FAIL),
    (SPARK.on(oob="docker0"), None, Status.WARN), (SPARK.on(oob="wlP9s9"), None, Status.WARN), (SPARK.on(oob="lo"), None, Status.WARN),
    (SPARK.on(oob="tailscale0"), None, Status.WARN), (SPARK.on(oob="br-1a2b"), None, Status.WARN),
])
def test_the_wrong_bootstrap_interface(job: Job, want: Expect | None, status: Status) -> None:
    found = of(findings(job.log(), want), Code.NCCL_WRONG_INTERFACE)
    assert [(f.status, f.path) for f in found] == [(status, "allreduce.transport.bootstrap")] * 2
    for healthy in (SPARK, SPARK.on(oob="bond1")):
        assert of(findings(healthy.log()), Code.NCCL_WRONG_INTERFACE) == []
    assert of(findings(SPARK.log(), SPARK_WANT), Code.NCCL_WRONG_INTERFACE) == []


def test_ranks_of_one_node_on_different_interfaces() -> None:
    found = findings(capture("mpi_mismatch.txt"))
    (f,) = of(found, Code.NCCL_WRONG_INTERFACE)
    assert (f.status, f.got) == (Status.FAIL, "eth0 192.0.2.2, lo 127.0.0.1")
    (env,) = of(found, Code.ENV_NOT_PROPAGATED)
    assert (env.status, env.path) == (Status.WARN, "allreduce.transport.env.NCCL_SOCKET_IFNAME")
    assert of(findings(capture("mpi_twohosts.txt")), Code.NCCL_WRONG_INTERFACE) == []


def test_different_builds_of_nccl() -> None:
    text = SPARK.log(0) + SPARK.on(version="2.27.5+cuda12.9").log(1)
    (f,) = of(findings(text), Code.NCCL_MIXED)
    assert (f.status, "2.27.5: node-b" in f.got) == (Status.WARN, True)
    cuda = SPARK.log(0) + SPARK.on(version="2.28.9+cuda12.9").log(1)
    assert of(findings(cuda), Code.NCCL_MIXED) == []


def test_link_local_gids_on_roce() -> None:
    found = of(findings(SPARK.on(extra=(MTU4.format("0 (80FE/1)"),)).log()), Code.NO_ROCEV2_GID)
    assert [f.status for f in found] == [Status.WARN] * 2
    ok = SPARK.on(extra=(MTU4.format("3 (0/10A0A0AFFFF0000)"),))
    assert of(findings(ok.log()), Code.NO_ROCEV2_GID) == []
    assert [f.got for f in findings(ok.log()) if f.path.endswith(".gid")] == ["GID 3 10.10.10.1"] * 2
    infiniband = SPARK.on(hcas=("mlx5_0:1/IB",), extra=(MTU4.format("0 (80FE/1)"),))
    assert of(findings(infiniband.log()), Code.NO_ROCEV2_GID) == []


def test_what_the_spec_expects() -> None:
    got = of_spec(node_spec(), RAILS, {"NCCL_IB_TC": "104"})
    assert (got.hcas, got.bootstrap, got.unified_memory, got.gpudirect) == (RAILS, "enp1s0f0np0", True, "preferred")
    assert of_spec(node_spec(gpu=None), (), {}).unified_memory is None
