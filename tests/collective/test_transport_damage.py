"""Cut, flipped, renamed, prefixed and concatenated logs: nothing raises, damage claims no RDMA, and what it does not touch stays."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.collective.expect import Expect
from fabrictool.collective.log import parse
from fabrictool.collective.transport import Overall, verdict
from fabrictool.collective.transport_judge import judge_transport
from fabrictool.model import Status
from tests.collective.nccl_log import CAPTURES, H20, SPARK, capture

NAMES = sorted(p.name for p in CAPTURES.glob("*.txt"))
TCP = ("socket.txt", "mpi_twohosts.txt", "mpi_tagged.txt", "mpi_mismatch.txt", "mpi_killed.txt", "mpi_T.txt")
LOCAL = ("nvlink.txt", "shm.txt", "mpi_local.txt")
RDMA = SPARK.on(hosts=("node-a", "node-b", "node-c"))
RANKS = {0: "node-a", 1: "node-b", 2: "node-c"}
MIXED = RDMA.log(0, 1) + RDMA.on(network="Socket").log(2)
WANTS = {n: Expect(("rocep1s0f0", "roceP2p1s0f0"), (), "enp1s0f0np0", True) for n in RDMA.hosts}


def overall(text: str, ranks: dict[int, str] | None = None) -> Overall:
    """Also makes every finding, so that none of the judges raises."""
    log = parse(text)
    got = verdict(log, ranks)
    found = list(judge_transport(got, log, WANTS, "x.transport"))
    whole = [f for f in found if f.path == "x.transport.overall"]
    assert got.overall.claims_rdma == (bool(whole) and all(f.status is Status.PASS for f in whole))
    return got.overall


def flipped(text: str, random: Random, count: int) -> str:
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    for _ in range(count):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return data.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", NAMES)
def test_captures_cut_at_every_line_never_claim_rdma(name: str) -> None:
    parts = capture(name).split("\n")
    for n in range(0, len(parts) + 1, 1 if len(parts) < 140 else 7):
        got = overall("\n".join(parts[:n]))
        assert not got.claims_rdma
        if name in LOCAL:
            assert got is not Overall.TCP  # one node's log is no fallback, wherever it ends
        got = overall("\n".join(parts[n:]))
        assert not got.claims_rdma


@pytest.mark.parametrize("name", [*TCP, *LOCAL])
def test_captures_with_flipped_bytes_never_claim_rdma(name: str) -> None:
    random = Random(name)
    text = capture(name)
    for count in (1, 1, 1, 3, 10, 100, 1000):
        assert not overall(flipped(text, random, count)).claims_rdma


@pytest.mark.parametrize("name", TCP)
def test_a_few_damaged_lines_do_not_change_tcp(name: str) -> None:
    random = Random(name)
    for _ in range(12):
        assert overall(flipped(capture(name), random, 2)) is Overall.TCP


def test_rdma_logs_cut_at_every_line_claim_nothing_before_their_end() -> None:
    parts = RDMA.log().split("\n")
    need = max(i for i, ln in enumerate(parts) if " via NET/IB/" in ln)
    for n in range(len(parts)):
        got = overall("\n".join(parts[:n]), RANKS)
        # Every edge has two channels: all but the last receive line of the last edge must be there.
        assert got.claims_rdma == (n >= need), n
        assert got is not Overall.TCP


def test_mixed_logs_with_damage_never_claim_rdma() -> None:
    random = Random(7)
    assert overall(MIXED, RANKS) is Overall.MIXED
    parts = MIXED.split("\n")
    for n in range(len(parts)):
        assert not overall("\n".join(parts[:n]), RANKS).claims_rdma
        assert not overall("\n".join(parts[:n] + parts[n + 1:]), RANKS).claims_rdma
    for count in (1, 5, 20, 100, 400):
        for _ in range(8):
            assert not overall(flipped(MIXED, random, count), RANKS).claims_rdma


UNRELATED = ("P2P Chunksize", "Bootstrap: Using", "NCCL version", "Destroy COMPLETE", "Init START", "nNodes")


@pytest.mark.parametrize("needle", UNRELATED)
def test_one_damaged_line_that_tells_nothing_of_channels_changes_nothing(needle: str) -> None:
    """Any character of one such line, also of its host, pid and head."""
    parts = RDMA.log().split("\n")
    at = next(i for i, ln in enumerate(parts) if needle in ln)
    for k in range(0, len(parts[at]), 3):
        line = parts[at]
        damaged = line[:k] + chr(ord(line[k]) ^ 1) + line[k + 1:]
        text = "\n".join([*parts[:at], damaged, *parts[at + 1:]])
        assert overall(text, RANKS) is Overall.RDMA, damaged
        assert overall(text) is Overall.RDMA, damaged
    assert overall("\n".join(parts[:at] + parts[at + 1:]), RANKS) is Overall.RDMA


@pytest.mark.parametrize("name", [*TCP, *LOCAL])
def test_other_names_and_numbers_keep_the_verdict(name: str) -> None:
    text = capture(name)
    want = overall(text)
    renamed = text.replace("vm:", "gpu-node-17:").replace(" vm ", " gpu-node-17 ").replace("eth0", "ens7f1np1").replace("0x0123", "0xfe23")
    for old in ("1693", "1666", "1718", "1717", "1778", "1779", "1845", "1846", "1909", "1910", "1974", "1975", "2046", "2047"):
        renamed = renamed.replace(f":{old}:", f":9{old}:")
    assert overall(renamed) is want
    assert overall("\r\n".join(text.split("\n"))) is want
    assert overall("\n".join("2026-11-29T18:09:47.1Z [pod/nccl-0/main] " + ln for ln in text.split("\n"))) is want


def test_concatenated_logs() -> None:
    for name in TCP:
        assert overall(capture(name) + capture("nvlink.txt")) is Overall.TCP
        assert not overall(capture(name) + RDMA.log()).claims_rdma
    assert overall(capture("nvlink.txt") + capture("shm.txt")) is Overall.SINGLE_NODE
    again = RDMA.on(pids=(1, 2, 3), comm_id="0x99")
    assert overall(RDMA.log() + again.log()) is Overall.RDMA
    assert overall(RDMA.log() + RDMA.log()) is Overall.RDMA
    assert overall(RDMA.log() + H20.log()) is Overall.RDMA  # each complete, but not all with GPUDirect
    assert overall(RDMA.log() + H20.log(*range(15))) is Overall.LOG_MISSING


@given(st.text(max_size=300), st.integers(0, 40))
def test_text_of_any_kind_does_not_raise(noise: str, at: int) -> None:
    parts = SPARK.log().split("\n")
    parts.insert(at, noise)
    overall("\n".join(parts))
    assert not overall(noise).claims_rdma


@given(st.lists(st.sampled_from((*SPARK.log().split("\n"), *SPARK.on(network="Socket").log().split("\n"))), max_size=60))
def test_lines_in_any_order_never_claim_rdma_beside_sockets(parts: list[str]) -> None:
    got = overall("\n".join(parts))
    if any("via NET/Socket" in p for p in parts):
        assert not got.claims_rdma


@pytest.mark.parametrize("text", [
    ":" * 50_000, "a:1:1 [0] " * 2_000, "node:1:1 [0] NCCL INFO " * 600, "[" * 20_000, "\x1b]" * 8_000, "-> via " * 2_000,
    "Channel 00/0 : " * 1_000, "1" * 16_000 + ":1:1 [0] NCCL INFO x", "NCCL INFO NET/IB : Using " + "[0]={" * 1_500,
    "\n".join(f"h{i}:1:1 [0] NCCL INFO x" for i in range(3_000)), "\udcff\udc80" * 100, "\0" * 100,
    "node-a:1:1 [0] NCCL INFO comm 0x1 rank 1 nranks 9999999 cudaDev 0 - Init COMPLETE",
])
def test_hostile_text_is_read_in_little_time(text: str) -> None:
    assert not overall(text).claims_rdma
