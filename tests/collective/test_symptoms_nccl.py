"""Symptoms of interfaces, connections, settings and versions: each found in a log that shows it, and not in a healthy one."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from fabrictool.collective import symptom_nccl, symptom_rdma, symptom_torch, symptoms_judge
from fabrictool.collective.log import parse
from fabrictool.collective.symptom_model import Weight
from fabrictool.collective.symptoms import Diagnosis, diagnose
from fabrictool.collective.symptoms_judge import judge_symptoms
from fabrictool.model import Code, Finding, Status
from tests.collective.nccl_log import CAPTURES, H20, SPARK, capture

CHECKS = Path(__file__).resolve().parents[2] / "checks"
WHERE = "misc/socket.cc:544"


def failing(text: str, where: str = WHERE) -> str:
    """Two healthy starts, and rank 1 then warns and gives up."""
    start = [SPARK.says(0, t) for t in SPARK.start(0)] + [SPARK.says(1, t) for t in SPARK.start(1)]
    return "\n".join((*start, SPARK.warns(1, where, text), SPARK.says(1, "init.cc:126 -> 6"), "")) + "\n"


def found(text: str) -> tuple[Diagnosis, list[Finding]]:
    log = parse(text)
    got = diagnose(log)
    return got, list(judge_symptoms(got, log, "x.symptoms"))


@pytest.mark.parametrize(("text", "code", "says"), [
    ("Bootstrap : no socket interface found", Code.NCCL_NO_INTERFACE, "NCCL_SOCKET_IFNAME"),
    ("NET/IB : No IP interface found.", Code.NCCL_NO_INTERFACE, "NCCL_SOCKET_IFNAME"),
    ("NET/Socket : no interface found", Code.NCCL_NO_INTERFACE, "NCCL_SOCKET_IFNAME"),
    ("NET/IB : Unable to open device mlx5_3", Code.NCCL_NO_DEVICE, "permission"),
    ("Failed to initialize any NET plugin", Code.NCCL_NO_DEVICE, "NCCL_NET"),
    ("Error: network IB not found.", Code.NCCL_NO_DEVICE, "NCCL_NET"),
    ("socketPollConnect: connect to 10.10.1.4<36085> returned Connection refused, exceeded error retry count after 35 attempts",
     Code.BOOTSTRAP_BLOCKED, "10.10.1.4"),
    ("socketPollConnect: connect returned Connection refused, exceeded error retry count (35)", Code.BOOTSTRAP_BLOCKED, "a peer"),
    ("ncclOsSocketPollConnect: connect to 10.10.1.4<37857> returned No route to host, exceeded error retry count after 35 attempts",
     Code.BOOTSTRAP_BLOCKED, "No route to host"),
    ("socketStartConnect: exceeded retries (20000)", Code.BOOTSTRAP_BLOCKED, "a peer"),
    ("Net : Connect to 10.10.1.4<48655> failed : Connection timed out", Code.BOOTSTRAP_BLOCKED, "10.10.1.4"),
    ("socketPollConnect: connect to 127.0.1.1<36085> returned Connection refused, exceeded error retry count after 35 attempts",
     Code.NCCL_WRONG_INTERFACE, "loopback"),
    ("socketPollConnect: connect to 169.254.3.1<36085> returned No route to host, exceeded error retry count after 35 attempts",
     Code.NCCL_WRONG_INTERFACE, "link-local"),
    ("socketPollConnect: connect to 172.17.0.3<36085> returned No route to host, exceeded error retry count after 35 attempts",
     Code.NCCL_WRONG_INTERFACE, "docker"),
    ('Unrecognized element token "BOGUS" when parsing "ring,BOGUS"', Code.NCCL_BAD_SETTING, "BOGUS"),
    ("Error : no algorithm/protocol available for function AllReduce with datatype ncclFloat32.", Code.NCCL_BAD_SETTING, "NCCL_PROTO"),
    ("Message truncated : received 2048 bytes instead of 256", Code.NCCL_MIXED, "2048"),
    ("Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22705", Code.NCCL_MIXED, "versions"),
    ("Detected mixed local Net device counts: 2 and 1", Code.NCCL_MIXED, "fewer RDMA devices"),
    ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device f01000", Code.LAUNCH_FAILED, "same GPU"),
    ("Error while creating shared memory segment /dev/shm/nccl-aB3d (size 9637888)", Code.LAUNCH_FAILED, "/dev/shm"),
])
def test_symptoms(text: str, code: Code, says: str) -> None:
    got, findings = found(failing(text))
    assert got.root
    assert (got.root.code, says in got.root.cause, bool(got.root.fix)) == (code, True, True)
    (f,) = [f for f in findings if f.bad]
    assert (f.status, f.code, f.subject.nodes, f.path) == (Status.FAIL, code, ("node-b",), "x.symptoms.cause")
    assert text[:60] in f.got
    assert got.root.proof[0].number == 1 + failing(text).split("\n").index(SPARK.warns(1, WHERE, text).strip())
    healthy = diagnose(parse(SPARK.log()))
    assert (healthy.causes, healthy.after, healthy.stuck) == ((), (), ())


def test_a_device_that_is_not_there_is_first_a_question_of_its_name() -> None:
    got, _ = found(capture("badhca.txt"))
    assert got.root
    assert got.root.fix.startswith("compare NCCL_IB_HCA with `rdma link`")


def test_advice_to_run_a_check_is_a_line_to_copy() -> None:
    """As `explain CHECK` has it. Rules with a function of their own are looked at by their sources."""
    for module in (symptom_nccl, symptom_rdma, symptom_torch, symptoms_judge):
        text = inspect.getsource(module)
        assert re.findall(r"(?:run|at|see) the [a-z_]+ check\b|\bthe [a-z_]+ and [a-z_]+ checks\b", text) == []
        for line in re.findall(r"`fabrictool check ([a-z_ ]+) -i INVENTORY`", text):
            assert set(line.split()) <= {p.stem for p in CHECKS.glob("*.py")}, line


@pytest.mark.parametrize(("name", "code"), [
    ("badif.txt", Code.NCCL_NO_INTERFACE), ("badhca.txt", Code.NCCL_NO_DEVICE), ("wrongnccl.txt", Code.NCCL_BAD_SETTING),
])
def test_captures_that_fail(name: str, code: Code) -> None:
    got, findings = found(capture(name))
    assert [(f.status, f.code, f.subject.nodes) for f in findings if f.bad] == [(Status.FAIL, code, ("vm",))]
    assert got.stuck == ()


@pytest.mark.parametrize("name", sorted(p.name for p in CAPTURES.glob("*.txt")))
def test_captures_without_a_fault_of_their_own_get_none(name: str) -> None:
    """What nccl-tests says of itself is not judged here."""
    got, findings = found(capture(name))
    if name not in ("badif.txt", "badhca.txt", "wrongnccl.txt", "mpi_killed.txt"):
        assert [f for f in findings if f.bad] == []
        assert got.unexplained == ()


def test_a_rank_that_died_is_not_the_cause_of_its_own_death() -> None:
    """mpi_killed: one rank only sees the other go."""
    got, findings = found(capture("mpi_killed.txt"))
    assert (got.root, [s.code for s in got.after], got.lone) == (None, [Code.RANK_DIED], True)
    assert [(f.status, f.code) for f in findings if f.bad] == [(Status.UNKNOWN, Code.RANK_DIED)]
    assert got.after[0].told.weight is Weight.AFTER


@pytest.mark.parametrize("text", [
    "Connection reset by peer", "socketProgress: Connection closed by remote peer node-a<44321>", "Call to send failed : Broken pipe",
    "NET/IB : Got completion from peer 10.10.1.4<4> with status=5 opcode=0 len=0 vendor err 249 (Recv)",
    "communicator encountered a fatal error",
])
def test_what_follows_from_another_error_is_never_the_cause(text: str) -> None:
    alone, findings = found(failing(text))
    assert (alone.root, len(alone.after)) == (None, 1)
    assert {f.status for f in findings if f.bad} == {Status.UNKNOWN}
    first = failing("Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_0:1", "transport/net_ib.cc:100")
    with_cause, _ = found(SPARK.warns(0, WHERE, text) + first)
    assert with_cause.root
    assert with_cause.root.code is Code.RDMA_CONNECT


def test_the_first_error_wins_by_its_time() -> None:
    late = H20.warns(0, WHERE, "Mismatched NCCL version", "2026-11-29 18:09:47")
    early = H20.warns(9, WHERE, "Bootstrap : no socket interface found", "2026-11-29 18:09:41")
    got, findings = found(late + early)
    assert [s.code for s in got.causes] == [Code.NCCL_NO_INTERFACE, Code.NCCL_MIXED]
    assert [(f.status, f.code) for f in findings] == [(Status.FAIL, Code.NCCL_NO_INTERFACE), (Status.WARN, Code.NCCL_MIXED)]
    unstamped, _ = found((late + early).replace("[2026-11-29 18:09:41] ", ""))
    assert [s.code for s in unstamped.causes] == [Code.NCCL_MIXED, Code.NCCL_NO_INTERFACE]  # then by place


def test_only_one_rank_errs() -> None:
    got, findings = found(failing("Bootstrap : no socket interface found"))
    assert (got.lone, len(got.erring), [k.node for k in got.waiting]) == (True, 1, ["node-a"])
    assert "only this rank errs" in findings[0].why
    both = failing("Mismatched NCCL version") + SPARK.warns(0, WHERE, "Mismatched NCCL version")
    got, findings = found(both)
    assert not got.lone
    assert [f.subject.nodes for f in findings] == [("node-b",), ("node-a",)]


@pytest.mark.parametrize("text", [
    "socketPollConnect: connect to 10.10.1.4<36085> returned Connection refused, retrying (3/34) after sleep for 300 msec",
    "Call to connect returned Connection refused, retrying",
])
def test_tries_count_only_when_nothing_came_after(text: str) -> None:
    stopped = [SPARK.says(0, t) for t in SPARK.start(0)]
    got, _ = found("\n".join([*stopped, SPARK.says(0, text)]))
    assert got.root
    assert got.root.code is Code.BOOTSTRAP_BLOCKED
    went_on, _ = found("\n".join([*stopped, SPARK.says(0, text), SPARK.says(0, SPARK.complete(0))]))
    assert went_on.root is None
    real, _ = found("\n".join([*stopped, SPARK.says(0, text)]) + failing("Bootstrap : no socket interface found"))
    assert [s.code for s in real.causes] == [Code.NCCL_NO_INTERFACE]


@pytest.mark.parametrize(("where", "text"), [
    ("ras/client_support.cc:160", "RAS failed to establish a client listening socket at localhost:28028"),
    ("ras/ras.cc:300", "Call to bind failed: Address already in use"),
    ("misc/socket.cc:400", "Call to bind to 127.0.0.1<28028> failed : Address already in use"),
])
def test_two_jobs_on_a_node_are_no_fault(where: str, text: str) -> None:
    got, findings = found(SPARK.log() + SPARK.warns(1, where, text))
    assert (got.causes, got.unexplained) == ((), ())
    assert [f for f in findings if f.bad] == []


def test_warnings_that_no_rule_knows() -> None:
    _, findings = found(failing("Something that nobody foresaw"))
    assert [(f.status, f.code, f.subject.nodes) for f in findings if f.bad] == [
        (Status.UNKNOWN, Code.INIT_HANG, ("node-a",)), (Status.UNKNOWN, Code.NOTHING_KNOWN, ("node-b",))]
    _, through = found(SPARK.log() + SPARK.warns(1, WHERE, "Something that nobody foresaw"))
    assert [(f.status, f.code) for f in through if f.bad] == [(Status.WARN, Code.NOTHING_KNOWN)]


@pytest.mark.parametrize("text", [
    "ssh: Connection reset by peer", "Error: docker network foo not found", "curl: (7) Failed to connect to x port 1: Connection refused",
    "Connection closed by remote host.",
])
def test_other_programs_words_are_no_symptoms(text: str) -> None:
    got, _ = found(SPARK.log() + text + "\n")
    assert (got.causes, got.after) == ((), ())


def test_what_nccl_tests_and_pytorch_repeat_of_nccl_counts() -> None:
    text = "ncclRemoteError: connect to 10.10.1.4<36085> returned Connection refused, exceeded error retry count after 35 attempts\n"
    got, findings = found(text)
    assert [(f.code, f.subject.nodes) for f in findings] == [(Code.BOOTSTRAP_BLOCKED, ())]
    assert got.erring == ()
