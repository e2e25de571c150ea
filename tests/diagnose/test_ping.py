"""ping: what a large one that is lost shows, and what it does not."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Finding, Status
from tests.diagnose.table import PASTES, findings, of_text

HEAD = "admin@spark01:~$ ping -c 3 -M do -s 8972 10.10.1.12\nPING 10.10.1.12 (10.10.1.12) 8972(9000) bytes of data.\n"
ASKS = "admin@spark01:~$ ping -c 3 10.10.1.12\n"
LOST = "\n--- 10.10.1.12 ping statistics ---\n3 packets transmitted, 0 received, 100% packet loss, time 2043ms\n"


def paste(name: str) -> str:
    return (PASTES / f"ping-{name}.txt").read_text(encoding="utf-8")


def only(text: str) -> Finding:
    (one,) = findings(of_text(text))
    assert one.code is Code.PATH_MTU_HOLE
    return one


@pytest.mark.parametrize(("said", "got"), [
    ("ping: local error: message too long, mtu=1500\n", "pings of 9000 bytes are refused by the sending node itself: the limit is 1500"),
    ("ping: local error: message too long, mtu: 1500\n", "pings of 9000 bytes are refused by the sending node itself: the limit is 1500"),
    ("From 10.10.1.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n",
     "pings of 9000 bytes are refused by a router, small ones pass: the limit is 1500"),
])
def test_a_device_says_that_it_is_too_large(said: str, got: str) -> None:
    for text in (HEAD + said + LOST, (HEAD + said + LOST).replace("\n", "\r\n"), HEAD + said):  # also where the end is cut
        one = only(text)
        assert (one.status, one.got) == (Status.FAIL, got)
        assert any(said.strip() in line for line in one.lines)


def test_the_message_alone() -> None:
    one = only("ping: local error: message too long, mtu=1500\n")
    assert (one.status, one.got) == (Status.FAIL, "packets of more than 1500 bytes do not pass (local mtu)")


def test_lost_packets_are_a_hole_only_beside_small_ones_that_pass() -> None:
    alone = only(HEAD + LOST)
    assert alone.status is Status.UNKNOWN
    assert "whether small packets pass is not here" in alone.why
    for text in (HEAD + LOST + paste("small"), paste("small") + HEAD + LOST):
        assert (only(text).status, only(text).got) == (Status.FAIL, "pings of 9000 bytes are lost, small ones pass")
    for other in (("10.10.1.12", "10.10.1.13"), ("spark01", "spark02")):  # of another address, or from another node: no control
        told = findings(of_text(HEAD + LOST + paste("small").replace(*other)))
        assert [f.status for f in told] == [Status.UNKNOWN, Status.UNKNOWN]
    both = only(HEAD + LOST + ASKS + "PING 10.10.1.12 (10.10.1.12) 56(84) bytes of data.\n" + LOST)
    assert (both.status, "small packets are lost as well" in both.why) == (Status.UNKNOWN, True)


def test_what_passes_shows_it_only_undivided() -> None:
    assert only(paste("healthy")).status is Status.PASS
    assert only(paste("healthy").replace("-M do ", "")).status is Status.UNKNOWN  # perhaps in fragments
    assert only(paste("healthy").split("\n", 1)[1]).status is Status.UNKNOWN
    assert only(paste("small")).status is Status.UNKNOWN
    assert only(paste("healthy").replace("3 received, 0%", "2 received, 33%")).status is Status.UNKNOWN


def test_the_size_of_a_packet_by_other_pings() -> None:
    for head, size in (("PING fd00::2(fd00::2) 8952 data bytes", 9000), ("PING n2 (10.10.1.12): 8972 data bytes", 9000)):
        assert f"pings of {size} bytes are refused" in only(f"{head}\nping: local error: message too long, mtu: 1500\n{LOST}").got


@pytest.mark.parametrize("end", [
    "", "\n--- 10.10.1.12 ping statistics ---\n", LOST[:-70],
    "From 10.10.1.11 icmp_seq=1 Destination Host Unreachable\n" + LOST.replace("0 received,", "0 received, +3 errors,"),
])
def test_no_verdict_on_what_is_cut_or_not_reached(end: str) -> None:
    assert only(HEAD + end).status is Status.UNKNOWN
