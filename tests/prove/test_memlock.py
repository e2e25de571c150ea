"""`memlock`: what consumers may lock, where no limit applies, what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Code, Finding, Status
from fabrictool.prove import memlock
from fabrictool.snapshot import Captured
from fabrictool.system import sections
from fabrictool.system.processes import Locked, limit
from tests.env.sample import Box, consumers_text
from tests.system.nodes import fleet, host, process

CAPS, NONE = "k 00000000a80425fb\n", "k 0000000000000000\n"
DOCKER = "memlock.docker:vllm-a"
UNIT = ("u 4100 vllm.service", "p 4100 1 5160000 - vllm.service", "e NCCL_DEBUG=INFO", "n 30", "l /x/libnccl.so.2.27.3")


def judged(changed: Mapping[str, Captured | None], **spec: Any) -> list[Finding]:
    found = list(memlock.judge(fleet({"spark01": changed}, count=2, **spec)))
    assert all(f.status in (Status.PASS, Status.SKIP) for f in found if "spark02" in f.subject.nodes)
    return [f for f in found if "spark01" in f.subject.nodes]


def bad(found: list[Finding]) -> list[tuple[str, Code, Status]]:
    return [(f.path, f.code, f.status) for f in found if f.bad]


def test_a_healthy_node_passes_with_evidence() -> None:
    assert [(f.path, f.status, f.got) for f in judged({})] == [(DOCKER, Status.PASS, "unlimited (1 processes)"),
                                                              ("memlock.login", Status.PASS, "a login: unlimited")]


@pytest.mark.parametrize(("limits", "status", "said"), [
    (f"m 8388608 8388608\n{CAPS}", Status.FAIL, "8 MiB (process 4001)"),
    (f"m 65536 unlimited\n{NONE}", Status.FAIL, "can be raised to unlimited"),
    (f"m 17179869184 17179869184\n{CAPS}", Status.PASS, "16 GiB"), (f"m 17179869183 unlimited\n{CAPS}", Status.FAIL, "16 GiB"),
    ("m 65536 65536\nk 00000000a80465fb\n", Status.PASS, "CAP_IPC_LOCK"),
    ("m 65536 65536\nk 000001ffffffffff\n", Status.PASS, "CAP_IPC_LOCK"),
    (f"m unlimited unlimited\n{NONE}", Status.PASS, "unlimited"), ("m unlimited unlimited\nk ?\n", Status.PASS, "unlimited"),
    ("m 65536 65536\nk ?\n", Status.UNKNOWN, "unreadable"), (f"m ? ?\n{CAPS}", Status.UNKNOWN, "unreadable"),
    (f"m lots lots\n{CAPS}", Status.UNKNOWN, "unreadable"), (CAPS, Status.UNKNOWN, "unreadable"),
])
def test_the_limit_of_a_container(limits: str, status: Status, said: str) -> None:
    found = judged({sections.PROCESSES.name: process(limits)})
    one = next(f for f in found if f.path == DOCKER)
    assert one.status is status
    assert said in one.got
    if status is Status.FAIL:
        assert one.code is Code.MEMLOCK
        assert "--ulimit memlock=-1" in one.remedy


def test_the_spec_says_how_much() -> None:
    eight = {sections.PROCESSES.name: process(f"m 8388608 8388608\n{CAPS}")}
    assert not bad(judged(eight, memlock={"at_least": 8 << 20}))
    assert bad(judged(eight, memlock={"at_least": (8 << 20) + 1}))


def test_the_worst_process_speaks_for_its_container() -> None:
    more = ("p 4002 4001 5160000 " + "a" * 64 + " -", "e NCCL_DEBUG=INFO", "n 30", "l /x/libnccl.so.2.27.3")
    two = {"consumers": Captured(0, consumers_text(Box(), more=more)),
           sections.PROCESSES.name: Captured(0, f"p 4001\nm unlimited unlimited\n{CAPS}p 4002\nm 65536 65536\n{CAPS}end\n")}
    assert bad(judged(two)) == [(DOCKER, Code.MEMLOCK, Status.FAIL)]
    one = {**two, sections.PROCESSES.name: process()}
    assert bad(judged(one)) == [(DOCKER, Code.UNREADABLE, Status.UNKNOWN)]  # 4002 was not looked at


def test_services() -> None:
    env = {"write": [], "consumers": ["systemd:vllm"]}
    running = {"consumers": Captured(0, consumers_text(units=UNIT)), sections.PROCESSES.name: process(f"m 65536 65536\n{CAPS}", 4100)}
    (one,) = [f for f in memlock.judge(fleet({"spark01": running}, count=1, env=env)) if f.bad]
    assert (one.path, one.status) == ("memlock.systemd:vllm.service", Status.FAIL)
    assert "LimitMEMLOCK=infinity" in one.remedy
    idle = {"consumers": Captured(0, consumers_text())}
    assert not bad(judged(idle, env=env))
    small = {**idle, sections.UNITS.name: Captured(0, "Id=vllm.service\nLimitMEMLOCK=8388608\nend\n")}
    assert bad(judged(small, env=env)) == [("memlock.systemd:vllm", Code.MEMLOCK, Status.FAIL)]
    several = {"write": [], "consumers": ["systemd:vl*"]}
    assert bad(judged(small, env=several)) == [("memlock.systemd:vl*", Code.MEMLOCK, Status.FAIL)]
    assert not bad(judged(idle, env=several))
    unread = {**idle, sections.UNITS.name: Captured(1, "", "Failed to connect to bus")}
    assert bad(judged(unread, env=env)) == [("memlock.systemd:vllm", Code.UNREADABLE, Status.UNKNOWN)]
    other = {**idle, sections.UNITS.name: Captured(0, "Id=ssh.service\nLimitMEMLOCK=8388608\nend\n")}
    assert not bad(judged(other, env=env))


def test_a_login_with_a_small_limit_warns() -> None:
    assert bad(judged({sections.HOST_FACTS.name: host(locked="8192 8192")})) == [("memlock.login", Code.MEMLOCK, Status.WARN)]
    assert not bad(judged({sections.HOST_FACTS.name: host(locked="16777216 16777216")}))  # ulimit -l counts KiB
    assert bad(judged({sections.HOST_FACTS.name: host(locked="")})) == [("memlock.login", Code.UNREADABLE, Status.UNKNOWN)]


def test_what_runs_nowhere_and_what_is_not_named() -> None:
    idle = {"consumers": Captured(0, consumers_text()), sections.PROCESSES.name: Captured(0, "end\n")}
    assert not bad(judged(idle))
    found = judged({}, env={"write": [], "consumers": []})
    assert [(f.path, f.status) for f in found] == [("memlock.consumers", Status.SKIP), ("memlock.login", Status.PASS)]


def test_what_cannot_be_read_is_unknown() -> None:
    denied = Captured(1, "", denied=True)
    assert bad(judged({sections.PROCESSES.name: denied})) == [("memlock.read", Code.NEEDS_ROOT, Status.UNKNOWN)]
    assert bad(judged({sections.PROCESSES.name: None})) == [("memlock.read", Code.UNREADABLE, Status.UNKNOWN)]
    assert bad(judged({"consumers": denied})) == [("memlock.docker:vllm-*", Code.NEEDS_ROOT, Status.UNKNOWN)]
    cut = Captured(0, process().out.removesuffix("end\n"))
    assert bad(judged({sections.PROCESSES.name: cut})) == [("memlock.docker:vllm-*", Code.UNREADABLE, Status.UNKNOWN)]


def test_limits_in_words_and_numbers() -> None:
    assert limit("unlimited", "infinity", 1) == Locked(None, None)
    assert limit("8192", "unlimited", 1024) == Locked(8 << 20, None)
    assert limit("18446744073709551615", "18446744073709551615", 1) == Locked(None, None)
    assert limit("-1", "5", 1) is None
    assert limit("", "", 1) is None


@given(st.integers(0, 200), st.integers(0, 255))
def test_damage_is_never_a_pass_of_a_small_limit(at: int, byte: int) -> None:
    """Cut anywhere, or with a byte changed outside of the numbers themselves."""
    small = process(f"m 65536 65536\n{NONE}").out
    for text in (small[:at], small[:at] + chr(byte) + small[at + 1:] if not chr(byte).isdigit() else small[:at]):
        for f in memlock.judge(fleet({"spark01": {sections.PROCESSES.name: Captured(0, text)}}, count=1)):
            if f.path == DOCKER and f.status is Status.PASS:
                assert "CAP_IPC_LOCK" in f.got
                assert chr(byte).lower() in "4567cdef"  # the changed byte is a capability that holds the bit
