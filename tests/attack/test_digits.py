"""Thousands of digits where a node tells a number: Python refuses to read them, and a float has no room for them."""

from __future__ import annotations

import pytest

from fabrictool import ports
from fabrictool.env.gids import fits, version
from fabrictool.env.rules import in_range
from fabrictool.model import Unreadable, Value
from fabrictool.prove.ping import Ping, received
from fabrictool.qos.read import ecn
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.values import Rate, parse_size
from tests.ports.sample import Node

MANY = ("4" * 400, "4" * 5000)
ENDS = "".join(f"/sys/class/net/e0/ecn/{end}/enable/{p}:1\n" for end in ("roce_np", "roce_rp") for p in range(8))


@pytest.mark.parametrize("digits", MANY)
def test_no_number_of_so_many_digits(digits: str) -> None:
    with pytest.raises(ValueError, match="not a rate"):
        Rate.parse(f"{digits} Gb/sec (4X HDR)")
    assert received(Ping(0, f"{digits} packets transmitted, {digits} received, 0% packet loss, time 4ms\n", "")) is None
    assert not fits(digits, {}, ("mlx5_0",))
    assert version(f"{digits}.1")
    assert len(list(in_range("NCCL_IB_TC", digits))) == 1
    got = ecn(Snapshot("n", {"qos.ecn[e0]": Captured(0, f"{ENDS}/sys/class/net/e0/ecn/roce_np/cnp_dscp:{digits}\n")}), "e0")
    assert isinstance(got, Value)
    assert got.value.cnp_dscp is None


def test_an_index_of_a_gid_of_so_many_digits() -> None:
    snap = Node().snapshot()
    at = "/sys/class/infiniband/rocep1s0f0/ports/1/gid_attrs/ndevs"
    for index in (*MANY, "\u00b2"):
        tree = snap.sections["ports.rdma"]
        text = f"{at}/{index}:enp1s0f0np0\n{tree.out}"
        changed = Snapshot("n", {**snap.sections, "ports.rdma": Captured(0, text)})
        assert not isinstance(ports.read(changed).rdma, Unreadable)


@pytest.mark.parametrize("text", ["99999999999999999TiB", "5000000TiB", *(f"{many}MiB" for many in MANY)])
def test_a_size_beyond_64_bits(text: str) -> None:
    """`lint` ended in a bug, or took it."""
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


def test_the_twin_numbers_are_read() -> None:
    assert Rate.parse("200 Gb/sec (4X HDR)") == Rate.parse("200000Mb/s") == Rate.gbit(200)
    assert received(Ping(0, "4 packets transmitted, 3 received, 25% packet loss, time 4ms\n", "")) == (4, 3)
    assert (parse_size("256MiB"), parse_size("1024TiB"), parse_size("2.5 GB")) == (2**28, 2**50, 2_500_000_000)
    assert version("2.27.3.post1") == (2, 27, 3)
    assert list(in_range("NCCL_IB_TC", "104")) == []
    got = ecn(Snapshot("n", {"qos.ecn[e0]": Captured(0, f"{ENDS}/sys/class/net/e0/ecn/roce_np/cnp_dscp:48\n")}), "e0")
    assert isinstance(got, Value)
    assert got.value.cnp_dscp == 48
