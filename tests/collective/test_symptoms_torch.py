"""Symptoms of Gloo and of PyTorch's store, which are no lines of NCCL."""

from __future__ import annotations

import pytest

from fabrictool.collective.log import parse
from fabrictool.collective.symptoms import diagnose
from fabrictool.collective.symptoms_judge import judge_symptoms
from fabrictool.model import Code, Status
from tests.collective.nccl_log import SPARK

MESH = "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:{}"
PAIR = "144] timed out connecting: SO_ERROR: Connection refused, remote=[{}]:18911 (rank=8, size=16, local=[{}]:41234)"


@pytest.mark.parametrize(("text", "code", "says"), [
    (MESH.format(PAIR.format("127.0.0.1", "127.0.0.1")), Code.GLOO_LOOPBACK, "127.0.0.1"),
    (MESH.format(PAIR.format("127.0.1.1", "127.0.1.1")), Code.GLOO_LOOPBACK, "127.0.1.1"),
    (MESH.format(PAIR.format("172.17.0.2", "10.10.1.1")), Code.GLOO_CONNECT, "172.17.0.2"),
    (MESH.format("144] no error"), Code.GLOO_CONNECT, "does not say"),
    ("[W1129 ProcessGroupGloo.cpp:760] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback. "
     "Manually set the network interface to bind to with GLOO_SOCKET_IFNAME. (function operator())", Code.GLOO_LOOPBACK, "127.0.0.1"),
    ("RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: ^lo",
     Code.ENV_LINT, "exact names only"),
    ("ifa != nullptr. Unable to find address for: eth9", Code.ENV_NO_SUCH_INTERFACE, "eth9"),
    ("torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.10.1.1, 29500).",
     Code.BOOTSTRAP_BLOCKED, "10.10.1.1"),
    ("[c10d] The IPv4 network addresses of (spark01, 29500) cannot be retrieved; The client socket has failed to connect to "
     "[localhost]:29500 (127.0.0.1, 29500).", Code.BOOTSTRAP_BLOCKED, "loopback"),
    ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", Code.INIT_HANG, "1 of 2"),
    ("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cpu//0", Code.INIT_HANG, "never came"),
    ("[rank0]:[E1129 18:09:47 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=48211)",
     Code.RANK_HANGS, "did not end in time"),
    ("[PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued "
     "collectives. This typically indicates a NCCL/CUDA API hang blocking the watchdog", Code.RANK_HANGS, "does not come back"),
    ("ncclInvalidUsage: This usually reflects invalid usage.\nLast error:\nFailed to initialize any NET plugin", Code.NCCL_NO_DEVICE,
     "is not there"),
])
def test_torch_symptoms(text: str, code: Code, says: str) -> None:
    log = parse(f"INFO starting\n{text}\nTraceback (most recent call last):\n", node="spark02")
    got = diagnose(log)
    assert got.root
    assert (got.root.code, says in got.root.cause, bool(got.root.fix)) == (code, True, True), got.root.cause
    (f,) = judge_symptoms(got, log, "diagnose")
    assert (f.status, f.code, f.subject.nodes, f.path) == (Status.FAIL, code, ("spark02",), "diagnose.cause")
    assert f.got.startswith(f"line {2 + text.count(chr(10))}: ")


@pytest.mark.parametrize("text", [
    "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1",
    "Waiting for clients...", "INFO connect [::1]:80", "remote=[127.0.0.1]", "curl failed to connect (7)",
    "wait timeout", "Unable to find address of the printer", "",
])
def test_healthy_words(text: str) -> None:
    log = parse(SPARK.log() + text + "\n")
    got = diagnose(log)
    assert (got.causes, got.after) == ((), ())
    assert [f.status for f in judge_symptoms(got, log, "diagnose")] == [Status.PASS]


def test_a_peer_that_went_away_is_a_consequence() -> None:
    text = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.10.1.4]:7044"
    log = parse(text)
    got = diagnose(log)
    assert (got.root, [s.code for s in got.after]) == (None, [Code.RANK_DIED])
    assert [(f.status, f.code) for f in judge_symptoms(got, log, "diagnose")] == [(Status.UNKNOWN, Code.RANK_DIED)]


@pytest.mark.parametrize(("text", "code"), [
    ("[c10d] recvValueWithTimeout failed on SocketImpl(fd=52, addr=[localhost]:33424, remote=[localhost]:29714): Failed to recv, got 0 "
     "bytes. Connection was likely closed. Did the remote server shutdown or crash?", Code.RANK_DIED),
    ("DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
     "store->get('0') got error: Failed to recv, got 0 bytes.", Code.RANK_DIED),
    ("Received a dump signal due to a collective timeout from this local rank and we will try our best to dump", Code.RANK_HANGS),
    ("[PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 109 PG status:", Code.RANK_HANGS),
    ("Collective WorkNCCL(SeqNum=109) raised the following async exception: NCCL error: remote process exited or there was a network "
     "error", Code.RANK_DIED),
    ("ncclRemoteError: A call failed.\nLast error:\nsocketProgress: Connection closed by remote peer ", Code.RANK_DIED),
])
def test_what_only_follows_from_another_error(text: str, code: Code) -> None:
    got = diagnose(parse(f"INFO starting\n{text}\n", node="spark02"))
    assert (got.root, {s.code for s in got.after}) == (None, {code})


@pytest.mark.parametrize("text", ["Last error: none\nFailed to initialize any NET plugin", "Last error:\n\nConnection closed by peer",
                                  "Failed to initialize any NET plugin"])
def test_only_the_line_after_last_error_is_read_as_nccls(text: str) -> None:
    got = diagnose(parse(text))
    assert (got.causes, got.after) == ((), ())


def test_the_lone_rank_is_named_as_one_that_may_not_be_at_fault() -> None:
    """Gloo: the side with the greater address errs at once, the others wait half an hour."""
    got = diagnose(parse(MESH.format(PAIR.format("10.10.1.3", "10.10.1.1"))))
    assert got.root
    assert "ask every rank before judging" in got.root.cause
