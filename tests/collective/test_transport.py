"""The transport verdict: captures and made-up logs of every kind, and what must never be called RDMA."""

from __future__ import annotations

import pytest

from fabrictool.collective.edges import Carrier, EdgeVerdict, End
from fabrictool.collective.log import merge, parse
from fabrictool.collective.transport import Overall, Verdict, verdict
from tests.collective.nccl_log import H20, SPARK, Job, capture

VNIC = "NET/IB : Made virtual device [2] name=rocep1s0f0+roceP2p1s0f0 speed=400000 ndevs=2"
LIBFABRIC = SPARK.on(network="AWS Libfabric", using="[RO]")
EFA = "NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"


def judged(text: str, ranks: dict[int, str] | None = None) -> Verdict:
    return verdict(parse(text), ranks)


@pytest.mark.parametrize(("name", "want"), [
    ("socket.txt", Overall.TCP), ("mpi_twohosts.txt", Overall.TCP), ("mpi_tagged.txt", Overall.TCP), ("mpi_mismatch.txt", Overall.TCP),
    ("mpi_killed.txt", Overall.TCP), ("mpi_T.txt", Overall.TCP), ("nvlink.txt", Overall.SINGLE_NODE), ("shm.txt", Overall.SINGLE_NODE),
    ("mpi_local.txt", Overall.SINGLE_NODE), ("badif.txt", Overall.NO_CHANNELS), ("badhca.txt", Overall.NO_CHANNELS),
    ("wrongnccl.txt", Overall.SINGLE_NODE), ("timeout.txt", Overall.NO_CHANNELS), ("toomany.txt", Overall.NO_CHANNELS),
    ("help.txt", Overall.NO_CHANNELS), ("badarg.txt", Overall.NO_CHANNELS), ("i_p99.txt", Overall.NO_CHANNELS),
])
def test_captures(name: str, want: Overall) -> None:
    """With and without the map of ranks that nccl-tests prints."""
    assert judged(capture(name)).overall is want
    assert judged(capture(name), {0: "vm", 1: "vm"}).overall is want


@pytest.mark.parametrize(("job", "want"), [
    (SPARK, Overall.RDMA),
    (SPARK.on(hosts=("a", "b", "c", "d")), Overall.RDMA),
    (SPARK.on(hosts=("a", "b", "c", "d"), tree=True), Overall.RDMA),
    (H20, Overall.RDMA_GDR),
    (H20.on(own_nic=True), Overall.RDMA_GDR),
    (H20.on(pxn=True, tree=True), Overall.RDMA_GDR),
    (H20.on(gdr=""), Overall.RDMA),
    (H20.on(gdr="/GDRDMA/Shared"), Overall.RDMA_GDR),
    (H20.on(network="IBext_v8"), Overall.RDMA_GDR),
    (H20.on(local="SHM/direct/direct"), Overall.RDMA_GDR),
    (SPARK.on(network="Socket"), Overall.TCP),
    (SPARK.on(network="MyPlugin"), Overall.PLUGIN),
    (LIBFABRIC, Overall.PLUGIN),
    (LIBFABRIC.on(extra=(EFA,)), Overall.RDMA),
    (LIBFABRIC.on(extra=("NET/OFI Selected Provider is tcp (found 1 nics)",)), Overall.TCP),
    (SPARK.on(hosts=("a", "a")), Overall.SINGLE_NODE),  # loopback, or two hosts of one name
    (H20.on(hosts=("a",)), Overall.SINGLE_NODE),
    (SPARK.on(index=2, extra=(VNIC,)), Overall.RDMA),
    (SPARK.on(index=7), Overall.RDMA),
], ids=str)
def test_made_up_jobs(job: Job, want: Overall) -> None:
    assert judged(job.log()).overall is want
    assert judged(job.interleaved()).overall is want
    assert judged(job.log(), {r: job.host(r) for r in range(job.size)}).overall is want
    assert verdict(merge(parse(job.log(r)) for r in range(job.size))).overall is want


def edge(got: Verdict, src: int, dst: int) -> EdgeVerdict:
    return next(e for e in got.edges if (e.src, e.dst) == (src, dst))


def test_both_ends_of_an_edge_with_their_devices() -> None:
    got = judged(SPARK.log())
    e = edge(got, 0, 1)
    assert (e.src_node, e.dst_node, e.carriers, e.whole) == ("node-a", "node-b", frozenset({Carrier.RDMA}), True)
    assert e.send == End(frozenset({Carrier.RDMA}), ("NET/IB",), ("rocep1s0f0", "roceP2p1s0f0"), (), 2, 0, e.send.proof if e.send else ())
    assert next(p.text for p in e.proof) == "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"
    assert [p.node for p in e.proof] == ["node-a", "node-a", "node-b", "node-b"]
    assert len(got.edges) == 2
    assert got.local == ()


def test_the_index_is_nccls_own_and_not_the_number_in_the_name() -> None:
    e = edge(judged(H20.on(index=4).log()), 7, 8)
    assert e.send
    assert e.send.devices == ("mlx5_6",)


def test_a_merged_nic_is_named_by_its_own_line_or_by_nobody() -> None:
    named = edge(judged(SPARK.on(index=2, extra=(VNIC,)).log()), 0, 1).send
    assert named
    assert (named.devices, named.unresolved) == (("rocep1s0f0", "roceP2p1s0f0"), ())
    nobody = edge(judged(SPARK.on(index=2).log()), 0, 1).send
    assert nobody
    assert (nobody.devices, nobody.unresolved) == ((), (2,))
    old = edge(judged(SPARK.on(index=0, using="[0]={[0] a:1/RoCE, [1] b:1/RoCE} [RO]").log()), 0, 1).send
    assert old
    assert old.devices == ("a", "b")


def test_a_missing_log_is_no_verdict() -> None:
    for ranks in ({}, {0: "node-a", 1: "node-b"}):
        got = judged(SPARK.log(0), ranks)
        assert (got.overall, [m.ranks for m in got.missing]) == (Overall.LOG_MISSING, [(1,)])
    assert [m.node for m in judged(SPARK.log(0), {0: "node-a", 1: "node-b"}).missing] == ["node-b"]
    assert judged(H20.log(*range(15)), {r: H20.host(r) for r in range(16)}).missing[0].ranks == (15,)
    alone = verdict(parse(SPARK.log()), None, ("node-a", "node-b", "node-c"))
    assert (alone.overall, alone.missing[0].node) == (Overall.LOG_MISSING, "node-c")


def test_a_missing_log_does_not_hide_tcp() -> None:
    got = judged(SPARK.on(network="Socket").log(0))
    assert (got.overall, len(got.missing)) == (Overall.TCP, 1)


def test_sockets_chosen_for_several_nodes_are_tcp_before_the_first_channel() -> None:
    """Connections are made at the first collective, so there may be no channel line."""
    tcp = SPARK.on(network="Socket", channels=0)
    assert judged(tcp.log()).overall is Overall.TCP
    assert judged(tcp.log()).selected_tcp == ("node-a", "node-b")
    assert judged(SPARK.on(channels=0).log()).overall is Overall.NO_CHANNELS
    assert judged(tcp.on(hosts=("a",)).log()).overall is Overall.SINGLE_NODE


def test_two_hosts_that_say_nothing_but_sockets() -> None:
    """AReaL#639: an excerpt without ranks. On one host alone it may be a job of one node."""
    line = "{}:7:7 [0] NCCL INFO NET/Socket : Using [0]bond0:192.0.2.1<0>\n"
    assert judged(line.format("a") + line.format("b")).overall is Overall.TCP
    assert judged(line.format("a")).overall is Overall.NO_CHANNELS
    rdma = "{}:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB bond0:192.0.2.1<0>\n"  # very old versions print both
    assert judged("".join(t.format(h) for h in "ab" for t in (rdma, line))).overall is Overall.NO_CHANNELS


def test_two_jobs_of_one_node_each_are_no_job_of_two() -> None:
    job = H20.on(network="Socket", hosts=("a",))
    old = "".join(job.on(hosts=(h,), comm_id=f"0x{i}").log() for i, h in enumerate("ab", 1))
    without = "\n".join(ln for ln in old.split("\n") if "nNodes" not in ln)
    assert judged(old).overall is Overall.SINGLE_NODE
    assert judged(without).overall is Overall.SINGLE_NODE
    no_id = "\n".join(ln.split(" commId")[0] if "Init START" in ln else ln for ln in without.split("\n"))
    assert judged(no_id).overall is Overall.SINGLE_NODE
    assert not judged("\n".join(ln for ln in without.split("\n") if "comm 0x" not in ln)).selected_tcp


def test_sockets_in_one_nvlink_domain_are_not_used() -> None:
    job = SPARK.on(network="Socket", channels=0, nodes=1)
    line = "Channel 00/0 : {}[0] -> {}[0] via P2P/MNNVL"
    text = "\n".join((job.log(), job.says(0, line.format(0, 1)), job.says(1, line.format(1, 0))))
    got = judged(text)
    assert (got.overall, got.selected_tcp) == (Overall.MNNVL, ())


def test_one_side_alone_proves_nothing() -> None:
    text = "\n".join(ln for ln in SPARK.log().split("\n") if "[receive]" not in ln)
    assert judged(text).overall is Overall.INCOMPLETE
    no_way_back = "\n".join(ln for ln in SPARK.log().split("\n") if "1[0] -> 0[0]" not in ln)
    assert judged(no_way_back).overall is Overall.INCOMPLETE


def test_rdma_and_tcp_are_mixed() -> None:
    mixed = SPARK.log(0) + SPARK.on(network="Socket").log(1)
    assert judged(mixed).overall is Overall.MIXED
    other_run = SPARK.on(network="Socket", comm_id="0x77", tid=9, hosts=("node-c", "node-d"))
    assert judged(SPARK.log() + other_run.log()).overall is Overall.MIXED


def test_shared_memory_between_nodes_is_a_contradiction() -> None:
    text = SPARK.log().replace("[send] via NET/IB/0", "via SHM/direct/direct").replace("[send] via NET/IB/1", "via SHM/direct/direct")
    assert judged(text).overall is Overall.CONTRADICTORY


def test_in_network_reduction_names_no_peer() -> None:
    job = SPARK.on(channels=0, extra=("CollNet 00/0 : 0 [send] via COLLNET/SHARP/0",))
    got = judged(job.log())
    assert (got.overall, got.in_network) == (Overall.PLUGIN, True)


def test_an_edge_of_a_network_that_nobody_chose_is_no_evidence() -> None:
    text = SPARK.on(network="Socket").log().replace("[send] via NET/Socket/0", "[send] via NET/IB/0")
    assert judged(text).overall is Overall.TCP
    assert not judged(text.replace("via NET/Socket/0", "via NET/IB/0")).overall.claims_rdma


def test_logs_of_the_net_subsystem_alone() -> None:
    """Without INIT no line tells ranks: the map of nccl-tests, or the ranks that log, tell them."""
    text = "\n".join(ln for ln in SPARK.log().split("\n") if "comm 0x" not in ln)
    assert judged(text).overall is Overall.RDMA
    assert judged(text, {0: "node-a", 1: "node-b"}).overall is Overall.RDMA
    half = "\n".join(ln for ln in SPARK.log(0).split("\n") if "comm 0x" not in ln)
    assert judged(half).overall is Overall.INCOMPLETE
    assert judged(half, {0: "node-a", 1: "node-b"}).overall is Overall.LOG_MISSING


def test_several_communicators_have_their_own_ranks() -> None:
    """Tensor parallel inside each node, data parallel between nodes: rank 1 is another process in each."""
    world = H20.on(gpus=2, channels=2)
    pairs = [SPARK.on(hosts=("gpu01", "gpu02"), comm_id=f"0xd{i}", gdr="/GDRDMA", pids=(4100 + i, 4102 + i)) for i in range(2)]
    text = world.log() + "".join(p.log().replace("0x55", "0x66") for p in pairs)
    got = judged(text)
    assert got.overall is Overall.RDMA_GDR
    assert {(e.src_node, e.dst_node) for e in got.edges} == {("gpu01", "gpu02"), ("gpu02", "gpu01")}


def test_ranks_that_each_run_alone() -> None:
    """A wrong --mpi: two communicators of one rank."""
    text = "".join(SPARK.on(hosts=(h,), comm_id=f"0x{i}1").log() for i, h in enumerate(("node-a", "node-b"), 1))
    assert judged(text, {0: "node-a", 1: "node-b"}).overall is Overall.NO_CHANNELS
