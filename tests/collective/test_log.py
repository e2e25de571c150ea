"""The grammar of NCCL's log lines: every notation, prefixes, glued and damaged lines."""

from __future__ import annotations

import pytest

from fabrictool.collective.linemodel import Level
from fabrictool.collective.log import merge, parse
from fabrictool.collective.loglines import LONGEST, lines
from fabrictool.collective.logmodel import CommEvent, Direction, Endpoint, Gdr, Hca, Kind, Via
from fabrictool.collective.logtext import via
from tests.collective.nccl_log import H20, SPARK, capture

HEAD = "node-a:4100:4107 [0] NCCL INFO "
EDGE = HEAD + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"


@pytest.mark.parametrize(("name", "processes", "warnings"), [
    ("socket.txt", 1, 0), ("nvlink.txt", 1, 0), ("shm.txt", 1, 0), ("mpi_local.txt", 2, 0), ("mpi_twohosts.txt", 2, 0),
    ("mpi_tagged.txt", 2, 0), ("mpi_mismatch.txt", 2, 0), ("mpi_killed.txt", 2, 1), ("mpi_T.txt", 2, 0), ("badif.txt", 1, 1),
    ("badhca.txt", 1, 2), ("wrongnccl.txt", 1, 2), ("timeout.txt", 0, 0), ("help.txt", 0, 0), ("badarg.txt", 0, 0), ("toomany.txt", 0, 0),
    ("i_p99.txt", 0, 0),
])
def test_captures(name: str, processes: int, warnings: int) -> None:
    log = parse(capture(name))
    assert (len(log.processes), sum(len(p.warnings) for p in log.processes), log.damaged) == (processes, warnings, 0)
    assert {p.key.host for p in log.processes} <= {"vm"}


def test_what_a_capture_says() -> None:
    first, second = parse(capture("mpi_mismatch.txt")).processes
    assert (first.key.pid, second.key.pid) == (1909, 1910)
    assert first.versions == ("2.28.9+cuda13.0",)
    assert first.networks == ("Socket",)
    assert [(e.name, e.value) for e in first.env] == [("NCCL_SOCKET_IFNAME", "eth0")]
    assert [h.oob for h in second.hcas] == [Endpoint("lo", "127.0.0.1")]
    assert second.sockets == (Endpoint("lo", "127.0.0.1", 0),)
    assert [(c.event, c.rank, c.size, c.nodes) for c in second.comms] == [
        (CommEvent.START, 1, 2, None), (CommEvent.TOPOLOGY, 1, 2, 2), (CommEvent.COMPLETE, 1, 2, None), (CommEvent.DESTROY, 1, 2, None)]
    assert first.rings == ((0, 1),)  # `Channel 00/02 : 0 1` is no edge
    assert [(e.src, e.dst, e.direction, str(e.via), e.own) for e in first.edges][:2] == [
        (1, 0, Direction.RECEIVE, "NET/Socket", 0), (1, 0, Direction.RECEIVE, "NET/Socket", 0)]
    assert parse(capture("wrongnccl.txt")).processes[0].bootstrap == (Endpoint("eth0", "192.0.2.2"),)
    assert parse(capture("timeout.txt")).versions == ("2.28.9+cuda13.0",)
    assert parse(capture("shm.txt")).processes[0].nvlink


def test_a_warning_with_all_its_parts() -> None:
    text = "\n[2026-11-29 18:09:47] vm:1741:1742 [3] bootstrap.cc:114 (bootstrapNetInit) NCCL WARN Bootstrap : no socket interface found\n"
    (line,) = lines(text)
    assert (line.number, line.level, line.where, line.func, line.stamp, line.cuda, line.process.pid) == (
        2, Level.WARN, "bootstrap.cc:114", "bootstrapNetInit", "2026-11-29 18:09:47", 3, 1741)
    assert line.text == "Bootstrap : no socket interface found"
    (old,) = lines("vm:1:2 [0] misc/socket.cc:72 NCCL WARN Connection closed by remote peer\n")
    assert (old.where, old.func, old.stamp, old.text) == ("misc/socket.cc:72", "", "", "Connection closed by remote peer")


@pytest.mark.parametrize("prefix", [
    "[1,0]<stdout>:", "[prterun-node-17@1,0]<stdout>:", "3: ", " 12: ", "[pod/nccl-worker-1/main] ", "worker-1  | ",
    "2026-11-29T18:09:47.123456789Z ", "(EngineCore_0 pid=31) ", "(RayWorkerWrapper pid=12, ip=192.0.2.7) ",
    "\x1b[36m(Worker pid=9)\x1b[0m ",
    "Nov 29 18:09:47 gpu01 all_reduce_perf[4100]: ", "[default0]:", "17:", "[2026-11-29 18:09:47] ", "> ",
])
def test_prefixes_do_not_matter(prefix: str) -> None:
    (plain,), (*_, tagged) = lines(EDGE), lines(prefix + EDGE + "\r")
    assert (tagged.process, tagged.text, tagged.level) == (plain.process, plain.text, plain.level)
    assert len(parse(prefix + EDGE).processes[0].edges) == 1


def test_log_lines_inside_a_result_row() -> None:
    row = "   268435456      67108864     float     sum      -1"
    clean = f"{HEAD}Using network IB\n{EDGE}\n"
    glued = parse(f"{clean}{row}{EDGE}\n")
    assert [len(p.edges) for p in glued.processes] == [2]  # no process on a host `-1node-a`
    after = parse(f"{clean}{EDGE}  17600.0   15.25   22.88       0  17580.0   15.27   22.90       0\n")
    assert [e.via for e in after.processes[0].edges] == [Via(Kind.NET, "IB", 0)] * 2
    two = parse(f"{clean}{EDGE} {EDGE}\n")
    assert len(two.processes[0].edges) == 3


def test_glue_is_told_from_a_host_name_that_begins_with_a_digit() -> None:
    text = "".join(f"{h}:50:50 [0] NCCL INFO Using network IB\n" for h in ("1node", "node", "1node", "1node"))
    assert [(p.key.host, p.lines) for p in parse(text).processes] == [("1node", 3), ("node", 1)]


@pytest.mark.parametrize(("text", "want"), [
    ("NET/IB/0", Via(Kind.NET, "IB", 0)),
    ("NET/IB/3/GDRDMA", Via(Kind.NET, "IB", 3, gdr=Gdr.GDRDMA)),
    ("NET/IB/3/GDRDMA(PCI)", Via(Kind.NET, "IB", 3, gdr=Gdr.PCI)),
    ("NET/IB/3(5)/GDRDMA/Shared", Via(Kind.NET, "IB", 3, 5, Gdr.GDRDMA, True)),
    ("NET/IBext_v8/1/GDRDMA", Via(Kind.NET, "IBext_v8", 1, gdr=Gdr.GDRDMA)),
    ("NET/AWS Libfabric/12/GDRDMA", Via(Kind.NET, "AWS Libfabric", 12, gdr=Gdr.GDRDMA)),
    ("NET/Socket/0", Via(Kind.NET, "Socket", 0)),
    ("P2P/CUMEM/read", Via(Kind.P2P, "CUMEM/read")),
    ("P2P/direct pointer", Via(Kind.P2P, "direct pointer")),
    ("P2P/indirect/3[3]", Via(Kind.P2P, "indirect/3[3]")),
    ("P2P/MNNVL", Via(Kind.P2P, "MNNVL")),
    ("SHM/direct/direct", Via(Kind.SHM, "direct/direct")),
    ("SHM/CE/direct", Via(Kind.SHM, "CE/direct")),
    ("NET/IB/", Via(Kind.UNKNOWN, "NET/IB/")),
    ("NET/IB/0/GDRDMB", Via(Kind.UNKNOWN, "NET/IB/0/GDRDMB")),
    ("NET/IB/x", Via(Kind.UNKNOWN, "NET/IB/x")),
    ("P2P/CUMEN", Via(Kind.UNKNOWN, "P2P/CUMEN")),
])
def test_transports(text: str, want: Via) -> None:
    assert via(text) == want


@pytest.mark.parametrize("bad", [
    "Channel 00/0 : 0[0] -> 0[0] [send] via NET/IB/0", "Channel 00/0 : 0[0] -> 1[0] via NET/IB/0", "Channel 00/02 : 0 1",
    "Channel 00/0 : 0[0] -> 1[0] [send] via P2P/CUMEM", "Channel 00/0 : 0[0] > 1[0] [send] via NET/IB/0", "Channel 0 : 0[0] -> 1[0]",
])
def test_what_is_no_edge(bad: str) -> None:
    assert parse(HEAD + bad).processes[0].edges == ()


@pytest.mark.parametrize(("listed", "want", "whole"), [
    ("[0]a:1/RoCE [1]b:1/RoCE [RO]", (Hca(0, ("a",), 1, "RoCE"), Hca(1, ("b",), 1, "RoCE")), True),
    ("[0]mlx5_0:1/IB/SHARP ", (Hca(0, ("mlx5_0",), 1, "IB", sharp=True),), True),
    ("[0]a_dma:1/RoCE [RO]", (Hca(0, ("a",), 1, "RoCE", data_direct=True),), True),
    ("[0]a:1:3:0/RoCE [RO]", (Hca(0, ("a",), 1, "RoCE", 3, 0),), True),
    ("[0]={[0] a:1/IB, [1] b:1/IB} [RO]", (Hca(0, ("a", "b"), 1, "IB"),), True),
    ("[RO]", (), True),
    ("[0]a:1/RoCE [1]b:1/RoCF [RO]", (Hca(0, ("a",), 1, "RoCE"),), False),
    ("[0]a:1/RoCE [3]b:1/RoCE", (Hca(0, ("a",), 1, "RoCE"), Hca(3, ("b",), 1, "RoCE")), False),
])
def test_device_lists(listed: str, want: tuple[Hca, ...], whole: bool) -> None:
    (got,) = parse(f"{HEAD}NET/IB : Using {listed}; OOB eth0:192.0.2.1<0>").processes[0].hcas
    assert (got.hcas, got.whole, got.oob) == (want, whole, Endpoint("eth0", "192.0.2.1"))
    assert got.relaxed_ordering == ("[RO]" in listed)


def test_other_messages() -> None:
    said = parse("".join(f"{HEAD}{text}\n" for text in (
        "NET/IB : Made virtual device [2] name=a+b speed=400000 ndevs=2", "NET/IB : Made virtual device [3] name=a+ speed=400000 ndevs=2",
        "GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)", "NET/IB : GPU Direct RDMA Enabled for HCA 0 'a'",
        "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 263 mtu 5 GID 3 (0/10A0A0AFFFF0000) fifoRkey=0x1", "NVLS comm 0x1 headRank 0 nHeads 8",
        "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 264 mtu 5 GID 0 (80FE/1)", "NCCL_IB_TC set by environment to 104.",
        "NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)", "Comm config nvlinkCentricSched set to 1",
        "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA", "Bootstrap : Using eth0:fe80::1%eth0<0>"))).processes[0]
    assert said.virtual == (Hca(2, ("a", "b")),)
    assert [(g.enabled, g.target) for g in said.gdr] == [(False, "GPU 0 / HCA 0 (distance 8 > 5)"), (True, "HCA 0 'a'")]
    assert [(q.gid_index, q.gid_ipv4, q.gid_link_local, q.mtu_code) for q in said.qps] == [(3, "10.10.10.1", False, 5), (0, "", True, 5)]
    assert [(e.name, e.value, e.parameter) for e in said.env] == [("NCCL_IB_TC", "104", True)]
    assert said.providers == ("efa",)
    assert said.nvls
    assert [(c.rank, c.via.name, c.via.gdr) for c in said.collnet] == [(3, "SHARP", Gdr.GDRDMA)]
    assert said.bootstrap == (Endpoint("eth0", "fe80::1%eth0"),)


def test_whose_log_it_is() -> None:
    log = parse(SPARK.log(0), node="spark01", source="nccl.log[4100]")
    (process,) = log.processes
    assert (process.key.node, process.key.host, process.last.source if process.last else "") == ("spark01", "node-a", "nccl.log[4100]")
    both = merge([log, parse(SPARK.log(1), node="spark02")])
    assert [p.key.node for p in both.processes] == ["spark01", "spark02"]
    again = merge([parse(H20.log(0)), parse(H20.log(0))])
    assert len(again.processes) == 1


def test_lines_without_a_head_and_damaged_ones() -> None:
    assert [ln.level for ln in lines("NCCL INFO Using network IB")] == [Level.INFO]
    assert [ln.process.known for ln in lines("NCCL INFO Using network IB")] == [False]
    for broken in ("node-a:41x0:4107 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
                   "node-a:4100:4107 [0] NCCL INFX Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"):
        assert [ln.level for ln in lines(broken)] == [Level.DAMAGED]
    assert parse("x" * (LONGEST + 1)).damaged == 1
    assert parse("").empty
    assert not parse("NCCL version 2.28.9+cuda13.0\n").empty
