"""UCX's and NIXL's lines: which transport carries the bytes between nodes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.collective.ucx import carried, parse, rdma_devices
from fabrictool.collective.ucx_judge import judge_ucx
from fabrictool.collective.ucxmodel import Carried, Scope
from fabrictool.model import Code, Finding, Status

CAPTURE = (Path(__file__).resolve().parent.parent / "captures" / "ucx" / "mpi-ucx-rc.txt").read_text(encoding="utf-8")
AT = "[1784968340.720454] [gpu02:194  :0]      ucp_worker.c:1903 UCX  INFO    ucp_context_0 "
INTER = AT + "inter-node cfg#2 "
RDMA = INTER + "rma(rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_1:1) am(rc_mlx5/mlx5_0:1) ka(ud_mlx5/mlx5_0:1)\n"
TCP = INTER + "rma_am(tcp/eth0) am(tcp/eth0 cuda_copy/cuda) ka(tcp/eth0)\n"
INTRA = AT + "intra-node cfg#1 rma(cuda_ipc/cuda sysv/memory) am(sysv/memory)\n"
SELF = AT + "self cfg#0 rma(self/memory rc_mlx5/mlx5_0:1)\n"
TABLE = """[1784968340.7] [gpu02:194:0]   +---------------------------+----------------------------------------------+
[1784968340.7] [gpu02:194:0]   | ucp_context_0 inter-node cfg#2 | get by ucp_get* from cuda memory to cuda    |
[1784968340.7] [gpu02:194:0]   +---------------------------+-------------------------+----------------+
[1784968340.7] [gpu02:194:0]   |                   0..17297 | copy-in copy-out       | {small} |
[1784968340.7] [gpu02:194:0]   |                 17298..inf | zero-copy read from remote | {large} |
[1784968340.7] [gpu02:194:0]   +---------------------------+-------------------------+----------------+
"""
BOTH = "50% on rc_mlx5/mlx5_0:1 and 50% on rc_mlx5/mlx5_1:1"


def findings(text: str, expected: tuple[str, ...] = ()) -> list[Finding]:
    return list(judge_ucx(parse(text), "", "diagnose.ucx", expected))


def bad(text: str) -> list[tuple[Status, Code]]:
    return [(f.status, f.code) for f in findings(text) if f.bad]


@pytest.mark.parametrize(("text", "want"), [
    (RDMA, Carried.RDMA), (TCP, Carried.TCP), (INTRA + SELF + RDMA, Carried.RDMA), (INTRA + SELF + TCP, Carried.TCP),
    (INTRA + SELF, Carried.LOCAL), ("", Carried.UNKNOWN), (RDMA + TCP, Carried.MIXED),
    (INTER + "ka(rc_mlx5/mlx5_0:1)\n", Carried.UNKNOWN),  # keepalive carries no data
    (INTER + "am(tcp/eth0) ka(rc_mlx5/mlx5_0:1)\n", Carried.TCP),
    (INTER + "rma(rc_mlx5/mlx5_0:1) am(tcp/eth0)\n", Carried.RDMA),
    (INTER + "tag(rc_verbs/rxe0:1)\n", Carried.RDMA), (INTER + "rma(srd/rdmap16s27:1)\n", Carried.RDMA),
    (INTER + "rma(gga_mlx5/mlx5_0:1)\n", Carried.RDMA), (INTER + "rma(dc_mlx5/mlx5_0:1 tcp/eth0)\n", Carried.RDMA),
    (INTER + "rma(rc_mlx5/mlx5_0:1\n", Carried.UNKNOWN),  # cut
    ("x ep_cfg[2]: tag(rc_mlx5/mlx5_0:1)\n", Carried.RDMA), ("x ep_cfg[2]: tag(tcp/eth0 cuda_copy/cuda)\n", Carried.TCP),
    ("x ep_cfg[0]: tag(self/memory0 rc_verbs/rxe0:1)\n", Carried.LOCAL),
    ("x ep_cfg[0]: tag(sysv/memory rc_mlx5/mlx5_0:1)\n", Carried.LOCAL),
    ("x ep_cfg[0]: tag(sysw/memory rc_mlx5/mlx5_0:1)\n", Carried.UNKNOWN),
    (TABLE.format(small="rc_mlx5/mlx5_0:1", large=BOTH), Carried.RDMA), (TABLE.format(small="tcp/eth0", large="tcp/eth0"), Carried.TCP),
    (TABLE.format(small="tcp/eth0", large="tcp/eth0").replace("inter-node", "intra-node"), Carried.UNKNOWN),
    ("ucp_context.c:1582 UCX  ERROR no usable transports/devices (asked rc on network:mlx5_9:1)\n", Carried.NO_DEVICE),
])
def test_what_carries_the_bytes(text: str, want: Carried) -> None:
    assert carried(parse(text)) is want
    assert carried(parse(text.replace("\n", "\r\n"))) is want
    assert carried(parse("".join(f"(Worker pid=7) \x1b[36m{ln}\x1b[0m\n" for ln in text.split("\n")))) is want


def test_the_capture_of_soft_roce() -> None:
    log = parse(CAPTURE)
    assert (carried(log), rdma_devices(log), log.versions) == (Carried.RDMA, ("rxe0",), ("1.13.1",))
    assert [(c.scope, c.number) for c in log.configs] == [
        (Scope.INTRA_NODE, 0), (Scope.INTRA_NODE, 0), (Scope.UNSAID, 1), (Scope.UNSAID, 1)]
    assert [c.proof.node for c in log.configs] == ["vm1", "vm2", "vm2", "vm1"]
    assert "UCX_NET_DEVICES=rxe0:1" in log.asked[0]
    assert bad(CAPTURE) == []


def test_shares_of_both_rails() -> None:
    log = parse(TABLE.format(small="rc_mlx5/mlx5_0:1", large=BOTH))
    assert [(r.low, r.high, r.what, [(str(lane), share) for lane, share in r.lanes]) for r in log.rows] == [
        (0, 17297, "copy-in copy-out", [("rc_mlx5/mlx5_0:1", 0)]),
        (17298, None, "zero-copy read from remote", [("rc_mlx5/mlx5_0:1", 50), ("rc_mlx5/mlx5_1:1", 50)])]
    assert rdma_devices(log) == ("mlx5_0", "mlx5_1")


@pytest.mark.parametrize("text", [TCP, RDMA + TCP, TABLE.format(small="tcp/eth0", large="tcp/eth0")])
def test_tcp_between_nodes(text: str) -> None:
    (f,) = [f for f in findings(text) if f.bad]
    assert (f.status, f.code, f.path) == (Status.FAIL, Code.NIXL_TCP, "diagnose.ucx.transport")
    assert "tcp/eth0" in f.got
    assert bad(RDMA) == []
    assert [f.subject.nodes for f in findings(TCP)] == [("gpu02",)]


@pytest.mark.parametrize("line", [
    "[1.1] [gpu02:194:0] ucp_context.c:1582 UCX  ERROR no usable transports/devices (asked rc on network:mlx5_9:1)",
    "[1.1] [gpu02:194:0] ucp_context.c:1582 UCX  WARN  network device 'mlx5_9:1' is not available, please use one or more of: 'eth0'(tcp)",
])
def test_no_such_device(line: str) -> None:
    assert bad(line) == [(Status.FAIL, Code.UCX_NO_DEVICE)]
    assert bad(RDMA + line) == [(Status.WARN, Code.UCX_NO_DEVICE)]
    assert bad(RDMA) == []


def test_other_errors() -> None:
    assert (Status.FAIL, Code.UCX_NO_DEVICE) in bad("[1.1] [gpu02:194:0] wireup.c:1 UCX  ERROR no am bcopy transport to gpu01: "
                                                   "rc_mlx5/mlx5_0:1 - Destination is unreachable")
    assert (Status.FAIL, Code.VERSIONS_DIFFER) in bad("UCX  ERROR UCP version is incompatible, required: 1.18, actual: 1.13")
    log = parse("[1.1] [gpu02:194:0] tcp_ep.c:1 UCX  ERROR tcp_ep 0x1 (state=CONNECTED): send(12) failed: Connection reset by peer")
    assert len(log.broken_tcp) == 1


def test_nothing_between_nodes_is_unknown() -> None:
    for text in (INTRA + SELF, "", "hello"):
        assert bad(text) == [(Status.UNKNOWN, Code.NIXL_TCP)]


def test_rails() -> None:
    both = ("mlx5_0", "mlx5_1")
    assert [f.status for f in findings(RDMA, both)] == [Status.PASS, Status.PASS]
    one = INTER + "rma(rc_mlx5/mlx5_0:1)\n"
    assert [(f.status, f.code) for f in findings(one, both) if f.bad] == [(Status.WARN, Code.RAIL_IDLE)]


def test_nixl_says_which_library_it_loaded() -> None:
    log = parse("INFO NIXL UCX backend bound to UCX 1.20.1 at /opt/nixl/libucp.so.0\n")
    assert (log.versions, log.libraries) == (("1.20.1",), ("/opt/nixl/libucp.so.0",))


@pytest.mark.parametrize("text", [TCP * 3, INTRA * 3 + SELF, "x ep_cfg[0]: tag(sysv/memory rc_mlx5/mlx5_0:1)\n"])
def test_damage_never_claims_rdma(text: str) -> None:
    random = Random(text)
    for _ in range(300):
        data = bytearray(text.encode())
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        assert carried(parse(data.decode("utf-8", "surrogateescape"))) is not Carried.RDMA
    for n in range(len(text)):
        assert carried(parse(text[:n])) is not Carried.RDMA


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    assert carried(parse(text)) is not Carried.RDMA or "inter-node" in text or "ep_cfg" in text


@pytest.mark.parametrize("text", ["inter-node cfg#1 rma(" * 300, "| " * 4_000, "ep_cfg[1]: " + "a(b/c " * 1_300, "cfg" * 2_700])
def test_hostile_lines_take_little_time(text: str) -> None:
    assert carried(parse(text)) is Carried.UNKNOWN
