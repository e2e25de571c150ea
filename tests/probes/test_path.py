"""The DF ping: its argv, every kind of answer, the verdict on a pair. Texts are those of iputils 20221126."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Code, Finding, Status
from fabrictool.probes.path import control_ping, df_ping, payload
from fabrictool.prove.ping import Ping, Verdict, classify, judge_pair

HEAD = "PING 10.10.1.2 (10.10.1.2) from 10.10.1.1 : 8972(9000) bytes of data.\n"
REPLIES = "".join(f"8980 bytes from 10.10.1.2: icmp_seq={i} ttl=64 time=0.18 ms\n" for i in (1, 2, 3))
STATS = "\n--- 10.10.1.2 ping statistics ---\n"
OK = Ping(0, f"{HEAD}{REPLIES}{STATS}3 packets transmitted, 3 received, 0% packet loss, time 2033ms\n"
             "rtt min/avg/max/mdev = 0.1/0.1/0.2/0.0 ms\n")
LOST = Ping(1, f"{HEAD}{STATS}3 packets transmitted, 0 received, 100% packet loss, time 2047ms\n\n")
PARTLY = Ping(0, f"{HEAD}{STATS}3 packets transmitted, 1 received, 66.6667% packet loss, time 2047ms\n")
LOCAL = Ping(1, f"{HEAD}{STATS}3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2047ms\n",
             "ping: local error: message too long, mtu=1500\n" * 3)
ROUTED = Ping(1, f"{HEAD}From 10.9.9.9 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n{STATS}"
                 "3 packets transmitted, 0 received, +1 errors, 100% packet loss, time 2047ms\n")
UNREACHABLE = Ping(1, f"{HEAD}From 10.10.1.1 icmp_seq=1 Destination Host Unreachable\n{STATS}"
                      "3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2051ms\npipe 3\n")
BUSYBOX = Ping(1, "", "ping: invalid option -- 'M'\nBusyBox v1.35.0 (Debian) multi-call binary.\n\nUsage: ping [OPTIONS] HOST\n")
BIND = Ping(2, "", "ping: bind: Cannot assign requested address\n")
NO_ROUTE = Ping(2, "", "ping: connect: Network is unreachable\n")
NONE = Ping(127, "", "sh: 1: ping: not found\n")
HANGS = Ping(124, HEAD)


@pytest.mark.parametrize(("large", "small", "want"), [
    (OK, OK, Verdict.OK), (LOST, OK, Verdict.HOLE), (LOST, LOST, Verdict.INCONCLUSIVE), (LOST, UNREACHABLE, Verdict.INCONCLUSIVE),
    (LOST, PARTLY, Verdict.INCONCLUSIVE), (LOCAL, OK, Verdict.LOCAL_MTU), (ROUTED, OK, Verdict.ROUTED_HOLE),
    (UNREACHABLE, UNREACHABLE, Verdict.INCONCLUSIVE), (PARTLY, OK, Verdict.PARTLY_LOST), (BUSYBOX, OK, Verdict.BAD_USAGE),
    (BIND, OK, Verdict.BAD_USAGE), (NO_ROUTE, NO_ROUTE, Verdict.INCONCLUSIVE), (NONE, NONE, Verdict.TOOL_MISSING),
    (OK, NONE, Verdict.TOOL_MISSING), (HANGS, OK, Verdict.TIMEOUT), (LOST, HANGS, Verdict.TIMEOUT), (Ping(0, ""), OK, Verdict.GARBLED),
    (Ping(1, OK.out), OK, Verdict.GARBLED),
])
def test_classify(large: Ping, small: Ping, want: Verdict) -> None:
    assert classify(large, small) is want


def test_crlf() -> None:
    assert classify(Ping(0, OK.out.replace("\n", "\r\n")), OK) is Verdict.OK
    assert classify(Ping(1, LOST.out.replace("\n", "\r\n")), OK) is Verdict.HOLE


def test_no_prefix_of_a_good_answer_is_a_hole_and_none_of_a_lost_one_a_pass() -> None:
    for end in range(len(OK.out)):
        assert classify(Ping(0, OK.out[:end]), OK) in (Verdict.OK, Verdict.GARBLED)
    for end in range(len(LOST.out)):
        assert classify(Ping(1, LOST.out[:end]), OK) in (Verdict.HOLE, Verdict.GARBLED)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=100), st.text(max_size=100), st.integers(0, 255))
def test_any_text_is_never_a_pass_or_a_hole(out: str, err: str, rc: int) -> None:
    assert classify(Ping(rc, out, err), OK) not in (Verdict.OK, Verdict.HOLE)


def test_argv() -> None:
    run = df_ping(9000, "10.10.1.1", "10.10.1.2")
    assert run.argv == ("ping", "-n", "-M", "do", "-s", "8972", "-c", "3", "-W", "2", "-I", "10.10.1.1", "10.10.1.2")
    assert run.timeout_s == 12
    small = control_ping("10.10.1.1", "10.10.1.2").argv
    assert small[small.index("-s") + 1] == "56"
    assert payload(9000, "fd00::2") == 8952
    quick = df_ping(9000, "10.10.1.1", "10.10.1.2", quick=True).argv
    assert quick == (*run.argv[:8], "-i", "0.2", *run.argv[8:])


@pytest.mark.parametrize("address", ["-f", "spark02", "10.10.1.2; reboot", ""])
def test_only_addresses_reach_the_argv(address: str) -> None:
    with pytest.raises(ValueError):
        df_ping(9000, "10.10.1.1", address)
    with pytest.raises(ValueError):
        df_ping(9000, address, "10.10.1.2")
    with pytest.raises(ValueError):
        control_ping("10.10.1.1", address)


def judged(large: Ping, small: Ping) -> Finding:
    return judge_pair("spark01", "spark02", "a", 9000, large, small, "apply.path")


@pytest.mark.parametrize(("large", "small", "status", "code"), [
    (OK, OK, Status.PASS, Code.PATH_MTU_HOLE), (LOST, OK, Status.FAIL, Code.PATH_MTU_HOLE), (LOCAL, OK, Status.FAIL, Code.PATH_MTU_HOLE),
    (ROUTED, OK, Status.FAIL, Code.PATH_MTU_HOLE), (LOST, LOST, Status.UNKNOWN, Code.UNREADABLE),
    (NONE, NONE, Status.UNKNOWN, Code.TOOL_MISSING), (HANGS, OK, Status.UNKNOWN, Code.TOOL_TIMEOUT),
    (BUSYBOX, OK, Status.UNKNOWN, Code.UNREADABLE), (PARTLY, OK, Status.UNKNOWN, Code.UNREADABLE),
])
def test_judge_pair(large: Ping, small: Ping, status: Status, code: Code) -> None:
    f = judged(large, small)
    assert (f.status, f.code, f.steps) == (status, code, ())
    assert (f.subject.nodes, f.subject.peer, f.subject.rail) == (("spark01",), "spark02", "a")
    assert status is Status.PASS or (f.why and f.remedy)
