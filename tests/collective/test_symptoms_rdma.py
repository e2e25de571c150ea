"""Symptoms of queue pairs, completions, memory and ports, in the wordings of NCCL 2.18 to 2.30."""

from __future__ import annotations

import pytest

from fabrictool.collective.log import parse
from fabrictool.collective.symptoms import diagnose
from fabrictool.collective.symptoms_judge import judge_symptoms
from fabrictool.model import Code, Status
from tests.collective.nccl_log import H20, SPARK
from tests.collective.test_symptoms_nccl import failing, found

QP = "Call to ibv_modify_qp failed with {}, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 3, "
GIDS = "local GID ::ffff:{}, remote GID ::ffff:{}"
WC = "NET/IB : Got completion from peer 10.10.1.4<48133> with {} opcode=0 len=32768 {} (Recv) localGid ::ffff:10.10.1.1"
IB = "transport/net_ib.cc:1296"


@pytest.mark.parametrize(("text", "code", "says"), [
    (QP.format("110 Connection timed out") + GIDS.format("10.10.1.1", "10.10.2.4"), Code.RDMA_CONNECT, "look like different rails"),
    (QP.format("110 Connection timed out") + GIDS.format("10.10.1.1", "10.10.1.4"), Code.RDMA_CONNECT, "look like one rail"),
    (QP.format("110 Connection timed out") + "local GID N/A, remote GID fe80::1", Code.RDMA_CONNECT, "rocep1s0f0"),
    ("Call to ibv_modify_qp failed with error Connection timed out errno 110", Code.RDMA_CONNECT, "no way to its peer"),
    ("Call to ibv_modify_qp failed with error Connection timed out", Code.RDMA_CONNECT, "no way to its peer"),
    (QP.format("22 Invalid argument"), Code.RDMA_CONNECT, "NCCL_IB_GID_INDEX"),
    (QP.format("101 Network is unreachable"), Code.RDMA_CONNECT, "no route"),
    (QP.format("19 No such device"), Code.RDMA_CONNECT, "vanished"),
    (QP.format("524 Unknown error 524"), Code.RDMA_CONNECT, "could not be set up"),
    ("NET/IB : Got completion from peer 10.10.1.4<48133> with error 12, opcode 0, len 0, vendor err 129 (Recv)",
     Code.RDMA_RETRY_EXCEEDED, "not acknowledged"),
    (WC.format("status=12", "vendor err 129"), Code.RDMA_RETRY_EXCEEDED, "10.10.1.4"),
    (WC.format("status=IBV_WC_RETRY_EXC_ERR(12)", "vendor_err=129"), Code.RDMA_RETRY_EXCEEDED, "not acknowledged"),
    (WC.format("status=IBV_WC_RNR_RETRY_EXC_ERR(13)", "vendor_err=135"), Code.RDMA_RETRY_EXCEEDED, "posted no buffer"),
    (WC.format("status=4", "vendor err 81"), Code.RDMA_MEMORY, "ACS"),
    (WC.format("status=IBV_WC_REM_ACCESS_ERR(10)", "vendor_err=136"), Code.RDMA_MEMORY, "ACS"),
    (WC.format("status=9", "vendor err 1"), Code.RDMA_CONNECT, "status 9"),
    ("Call to ibv_create_qp failed with error Cannot allocate memory errno 12", Code.RDMA_MEMORY, "locked"),
    ("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", Code.RDMA_MEMORY, "locked"),
    ("Call to ibv_reg_mr failed with error Bad address errno 14", Code.RDMA_MEMORY, "GPU memory"),
    ("NET/IB : mlx5_0:1 Got async event : port error", Code.LINK_EVENTS, "port error"),
    ("NET/IB : mlx5_0:1 Got async fatal event: IBV_EVENT_PORT_ERR", Code.LINK_EVENTS, "port"),
])
def test_rdma_symptoms(text: str, code: Code, says: str) -> None:
    got, findings = found(failing(text, IB))
    assert got.root
    assert (got.root.code, says in got.root.cause, bool(got.root.fix)) == (code, True, True), got.root.cause
    assert [(f.status, f.code, f.subject.nodes) for f in findings if f.bad] == [(Status.FAIL, code, ("node-b",))]
    assert diagnose(parse(H20.log())).root is None


@pytest.mark.parametrize("text", [
    "NET/IB : mlx5_0:1 Got async event : port active", "NET/IB : mlx5_0:1 Got async event : GID table change",
    "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 263 mtu 5 GID 3 (0/10A0A0AFFFF0000)",
])
def test_news_that_are_no_fault(text: str) -> None:
    log = parse(SPARK.on(extra=(text,)).log())
    assert [f for f in judge_symptoms(diagnose(log), log, "x.symptoms") if f.bad] == []


@pytest.mark.parametrize("damaged", [
    "Got completion from peer 10.10.1.4<48133> with status=IBV_WC_RETRY", "Call to ibv_modify_qp failed wi", "ibv_reg_mr",
    "Got completion from peer with error", "Got async event : por",
])
def test_lines_that_are_cut_mean_nothing(damaged: str) -> None:
    got, _ = found(failing(damaged, IB))
    assert got.causes == ()
    assert [ln.text for ln in got.unexplained] == [damaged]


def test_a_flush_after_the_first_error_is_its_consequence() -> None:
    """nccl#1405: status 12 on one rank, and thousands of flushed requests everywhere."""
    lines = [H20.warns(1, IB, WC.format("status=5", "vendor err 249"), f"2026-11-29 18:09:{50 + i % 9}") for i in range(40)]
    lines.insert(20, H20.warns(9, IB, WC.format("status=12", "vendor err 129"), "2026-11-29 18:09:47"))
    got, findings = found("".join(ln + "\n" for ln in lines))
    assert [(s.code, s.node) for s in got.causes] == [(Code.RDMA_RETRY_EXCEEDED, "gpu02")]
    assert [(s.lines, len(s.proof)) for s in got.after] == [(40, 3)]
    assert [(f.status, f.subject.nodes) for f in findings if f.bad] == [(Status.FAIL, ("gpu02",))]


def test_tries_to_set_up_a_queue_pair() -> None:
    """34 tries look like a hang of a minute."""
    text = "Call to ibv_modify_qp failed with 110 Connection timed out retrying (2/34)"
    got, _ = found("\n".join(SPARK.says(0, t) for t in (*SPARK.start(0), text)))
    assert got.root
    assert got.root.code is Code.RDMA_CONNECT
    went_on, _ = found("\n".join(SPARK.says(0, t) for t in (*SPARK.start(0), text, SPARK.complete(0), "Connected all rings")))
    assert went_on.root is None
