"""The environment as each rank's NCCL saw it."""

from __future__ import annotations

import pytest

from fabrictool.collective.environ import same
from fabrictool.collective.expect import Expect
from fabrictool.model import Code, Finding, Status
from tests.collective.nccl_log import SPARK
from tests.collective.test_transport_judge import findings

TC = "NCCL_IB_TC set by environment to {}."
NVLS = "NCCL_NVLS_ENABLE set by environment to 0."  # shows that the subsystem ENV is on
WANT = Expect(env={"NCCL_IB_TC": "104", "GLOO_SOCKET_IFNAME": "x", "UCX_TLS": "rc"})


def env(text: str, want: Expect | None = WANT) -> list[Finding]:
    return [f for f in findings(text, want) if ".env." in f.path]


def test_every_rank_saw_the_wanted_value() -> None:
    found = env(SPARK.on(env=(TC.format(104),)).log())
    assert [(f.status, f.code, f.subject.nodes, f.path) for f in found] == [
        (Status.PASS, Code.ENV_NOT_PROPAGATED, (n,), "allreduce.transport.env.NCCL_IB_TC") for n in ("node-a", "node-b")]
    assert {f.status for f in env(SPARK.on(env=(TC.format(104),)).log(), Expect(env={"NCCL_IB_TC": "0x68"}))} == {Status.PASS}


def test_a_rank_saw_another_value_or_none() -> None:
    other = SPARK.on(env=(TC.format(104),)).log(0) + SPARK.on(env=(TC.format(0),)).log(1)
    (f,) = [f for f in env(other) if f.bad]
    assert (f.status, f.code, f.subject.nodes, f.got, f.want) == (
        Status.FAIL, Code.ENV_NOT_PROPAGATED, ("node-b",), "NCCL_IB_TC=0", "NCCL_IB_TC=104")
    assert "who sets it" in f.remedy
    none = SPARK.on(env=(TC.format(104),)).log(0) + SPARK.on(env=(NVLS,)).log(1)
    (f,) = [f for f in env(none) if f.bad]
    assert (f.status, f.subject.nodes, f.got) == (Status.FAIL, ("node-b",), "not set")
    shown = SPARK.on(env=(TC.format(104),)).log(0) + SPARK.log(1)
    (f,) = [f for f in env(shown, Expect(env={"NCCL_IB_TC": "104"}, env_shown=True)) if f.bad]
    assert f.status is Status.FAIL


@pytest.mark.parametrize("text", [
    SPARK.log(),  # nothing shows that ENV was in NCCL_DEBUG_SUBSYS
    SPARK.on(network="Socket", env=(NVLS,)).log(),  # the variable is read only for RDMA
    "\n".join(ln for ln in SPARK.on(env=(NVLS,)).log().split("\n") if "COMPLETE" not in ln),  # the log ends early
])
def test_silence_is_no_proof(text: str) -> None:
    found = env(text)
    assert {(f.status, f.code) for f in found} == {(Status.UNKNOWN, Code.UNREADABLE)}


def test_nodes_differ_where_the_spec_says_nothing() -> None:
    other = SPARK.on(env=(TC.format(104),)).log(0) + SPARK.on(env=(TC.format(0),)).log(1)
    (f,) = env(other, None)
    assert (f.status, f.subject.nodes, f.got) == (Status.WARN, ("node-a", "node-b"), "node-a: 104; node-b: 0")
    half = SPARK.on(env=(TC.format(104),)).log(0) + SPARK.log(1)
    (f,) = env(half, None)
    assert (f.status, f.got) == (Status.WARN, "node-a: 104; node-b: not set")
    names = SPARK.on(env=("NCCL_SOCKET_IFNAME set by environment to eth0",)).log(0)
    assert env(names + SPARK.on(env=("NCCL_SOCKET_IFNAME set by environment to eth1",)).log(1), None) == []  # may differ
    assert env(SPARK.on(env=(TC.format(104),)).log(), None) == []


def test_numbers_are_alike_however_they_are_written() -> None:
    assert same("104", "0x68")
    assert not same("104", "105")
    assert not same("=eth0", "eth0")
