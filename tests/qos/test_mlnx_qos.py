"""mlnx_qos: every capture, every prefix, every era, every failure."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.qos.mlnx_qos import parse
from fabrictool.qos.model import View
from fabrictool.snapshot import Captured
from fabrictool.values import Priorities
from tests.qos.blocks import blocks
from tests.qos.device import Device

FILES = ("mlnx_qos/26.04.txt", "mlnx_qos/26.07.txt", "mlnx_qos/5.9.1.txt")
OBSERVED = [f.name for f in fields(View) if f.name != "lldpad"]


def state(path: str, command: str, nth: int = 0) -> View:
    return parse([b.got for b in blocks(path) if b.command == command][nth])


def never_another_value(cut: View, full: View) -> None:
    for name in OBSERVED:
        seen, whole = getattr(cut, name), getattr(full, name)
        assert isinstance(seen, Unreadable) or seen == whole, (name, seen, whole)


@pytest.mark.parametrize("path", FILES)
def test_the_states_of_a_session(path: str) -> None:
    fresh = state(path, "mlnx_qos -i eth1")
    assert (fresh.trust, fresh.dscp_map, fresh.pfc) == (Value("pcp"), Absent("DSCP entries"), Value(Priorities.of([])))
    assert (fresh.os_controlled, fresh.prio_tc, fresh.ets) == (Value(True), Value(tuple(range(8))), Value(False))
    assert fresh.buffer_bytes == Value((262016, 0, 0, 0, 0, 0, 0, 0))
    assert fresh.prio_buffer == Value((0,) * 8)
    trusting = state(path, "mlnx_qos -i eth1 --trust dscp")
    assert trusting.trust == Value("dscp")
    assert isinstance(trusting.dscp_map, Value)
    assert trusting.dscp_map.value.entries == tuple((d, d // 8) for d in range(64))
    assert state(path, "mlnx_qos -i eth1 -f 0,0,0,1,0,0,0,0").pfc == Value(Priorities.of([3]))
    moved = state(path, "mlnx_qos -i eth1 -p 0,0,0,1,0,0,0,0")
    assert (moved.prio_tc, moved.pfc) == (Value((0, 0, 0, 1, 0, 0, 0, 0)), Value(Priorities.of([3])))
    altered = state(path, "mlnx_qos -i eth1 --dscp2prio set,26,5")
    assert isinstance(altered.dscp_map, Value)
    assert (altered.dscp_map.value.priorities(26), altered.dscp_map.value.priorities(40)) == ((3, 5), (5,))  # not mlx5's driver
    not_repaired = state(path, "mlnx_qos -i eth1 --trust dscp", 1)
    assert isinstance(not_repaired.dscp_map, Value)
    assert not_repaired.dscp_map == altered.dscp_map
    assert state(path, "mlnx_qos -i eth1 -d fw").os_controlled == Value(False)
    assert state(path, "mlnx_qos -i eth1 --dscp2prio flush").trust == Value("pcp")


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_prefix_hides_values_and_never_changes_one(path: str, ending: str) -> None:
    for block in blocks(path):
        whole = block.got.out.replace("\n", ending)
        full = parse(Captured(block.got.rc, whole, block.got.err))
        assert full == parse(block.got)
        for end in range(len(whole)):
            never_another_value(parse(Captured(block.got.rc, whole[:end], block.got.err)), full)


@pytest.mark.parametrize("path", FILES)
def test_no_dcb_is_told_from_unreadable(path: str) -> None:
    assert state(path, "mlnx_qos -i lo").dcb == Value(False)
    assert state(path, "mlnx_qos -i eth1").dcb == Value(True)
    assert isinstance(state(path, "mlnx_qos -i lo --trust dscp").dcb, Unreadable)


def test_the_true_cause_of_a_traceback() -> None:
    got = state("mlnx_qos/26.04.txt", "mlnx_qos -i lo -f 0,0,0,1,0,0,0,0").pfc
    assert isinstance(got, Unreadable)
    assert got.why == "mlnx_qos: OSError: Netlink error: Operation not supported (95)"


NO_PS = ("Traceback (most recent call last):\n  File \"/usr/bin/mlnx_qos\", line 10, in <module>\n"
         "FileNotFoundError: [Errno 2] No such file or directory: 'ps'\n")
NO_MODULE = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'netlink'\n"
NO_BUFFER = "Traceback (most recent call last):\nAttributeError: 'KeyError' object has no attribute 'errno'\n"


@pytest.mark.parametrize(("rc", "err", "reason", "word"), [
    (1, NO_PS, Reason.TOOL_MISSING, "procps"),
    (1, NO_MODULE, Reason.TOOL_MISSING, "netlink"),
    (1, "Netlink error: Operation not permitted (1)\n", Reason.NEEDS_ROOT, "not permitted"),
    (1, "Netlink error: Bad value. see dmesg.\n", Reason.FAILED, "Bad value"),
    (2, "Usage: mlnx_qos -i\n\nmlnx_qos: error: no such option: -i\n", Reason.FAILED, "no such option"),
    (0, "", Reason.EMPTY, "no output"),
])
def test_failures_keep_their_reason(rc: int, err: str, reason: Reason, word: str) -> None:
    for got in (Captured(rc, "", err), Captured(rc, err)) if err else (Captured(rc, ""),):
        seen = parse(got).pfc
        assert isinstance(seen, Unreadable)
        assert seen.reason is reason
        assert word in seen.why


def test_a_traceback_after_the_whole_state_hides_nothing() -> None:
    text = Device(app={26: 3}, pfc=[0, 0, 0, 1, 0, 0, 0, 0]).mlnx_qos()
    assert parse(Captured(1, text, NO_BUFFER)) == parse(Captured(0, text))


def test_a_driver_without_buffers_dies_after_the_map() -> None:
    head = Device(app={d: d // 8 for d in range(64)}).mlnx_qos().partition("Receive buffer")[0]
    seen = parse(Captured(1, head, NO_BUFFER))
    assert isinstance(seen.dscp_map, Value)
    assert seen.dscp_map.value.priorities(26) == (3,)
    assert isinstance(seen.pfc, Unreadable)
    assert "AttributeError" in seen.pfc.why
    partly = parse(Captured(1, Device(app={26: 3}).mlnx_qos().partition("Receive buffer")[0], NO_BUFFER))
    assert isinstance(partly.dscp_map, Unreadable)


def test_what_2017_does_not_print_is_unreadable_and_not_off() -> None:
    seen = parse(Captured(0, Device(pfc=[0, 0, 0, 1, 0, 0, 0, 0]).mlnx_qos("2017")))
    assert seen.pfc == Value(Priorities.of([3]))
    assert seen.prio_tc == Value((1, 0, 2, 3, 4, 5, 6, 7))
    for name in ("trust", "dscp_map", "os_controlled", "buffer_bytes"):
        got = getattr(seen, name)
        assert isinstance(got, Unreadable)
        assert got.reason is Reason.EMPTY


def test_early_wording_and_trust_none() -> None:
    text = Device().mlnx_qos().replace("trust state: pcp", "trust mode: none")
    assert parse(Captured(0, text)).trust == Value("none")


def test_lldpad_warning() -> None:
    assert parse(Captured(0, Device(lldpad=True).mlnx_qos())).lldpad
    assert not parse(Captured(0, Device().mlnx_qos())).lldpad


def test_default_priority_rows_are_skipped() -> None:
    text = Device(app={26: 3}).mlnx_qos("5.9.1").replace("default priority:\n", "default priority:\n\tprio:0\n")
    assert parse(Captured(0, text)) == parse(Captured(0, Device(app={26: 3}).mlnx_qos("5.9.1")))


@pytest.mark.parametrize(("old", "new", "field"), [
    ("\tenabled     0   0   0   1   0   0   0   0   ", "\tenabled     0   0   0   1   0   0   0   ", "pfc"),
    ("\tenabled     0   0   0   1   0   0   0   0   ", "\tenabled     0   0   0   2   0   0   0   0   ", "pfc"),
    ("\tpriority    0   1   2   3", "\tpriority    0   1   3   2", "pfc"),
    ("prio:3 dscp:26,", "prio:3 dscp:64,", "dscp_map"),
    ("prio:3 dscp:26,", "prio:9 dscp:26,", "dscp_map"),
    ("priority:  7", "priority:  6", "prio_tc"),
    ("Priority trust state: dscp", "Priority trust state: both", "trust"),
    ("Priority trust state: dscp", "Priority trust state: dscp\nPriority trust state: pcp", "trust"),
    ("DCBX mode: OS", "DCBX mode: Some", "os_controlled"),
    ("262016,0,0,0,0,0,0,0", "262016,0,0,0,0,0,0", "buffer_bytes"),
    ("\tbuffer      0", "\tbuffer      9", "prio_buffer"),
])
def test_garbled_parts_are_unreadable(old: str, new: str, field: str) -> None:
    text = Device(app={26: 3}, pfc=[0, 0, 0, 1, 0, 0, 0, 0]).mlnx_qos()
    assert old in text
    assert isinstance(getattr(parse(Captured(0, text)), field), Value)
    assert isinstance(getattr(parse(Captured(0, text.replace(old, new))), field), Unreadable)


def test_hostile_text() -> None:
    text = Device(app={26: 3}).mlnx_qos()
    noise = ("x" * 10_000_000, "\udcff\udc80" * 1000, "prio:3 dscp:" + "26," * 1_000_000, "\x00\x1b[2J", "\u2028enabled 1 1 1 1 1 1 1 1")
    for line in noise:
        assert parse(Captured(0, line + "\n" + text)) == parse(Captured(0, text))
        assert isinstance(parse(Captured(0, line)).pfc, Unreadable)


devices = st.builds(
    Device,
    app=st.dictionaries(st.integers(0, 63), st.integers(0, 7)),
    pfc=st.lists(st.integers(0, 1), min_size=8, max_size=8),
    prio_tc=st.lists(st.integers(0, 7), min_size=8, max_size=8),
    tsa=st.lists(st.sampled_from(["strict", "vendor", "ets"]), min_size=8, max_size=8),
    prio_buffer=st.lists(st.integers(0, 7), min_size=8, max_size=8),
    sizes=st.lists(st.integers(0, 2**30), min_size=8, max_size=8),
    os_controlled=st.booleans(),
    lldpad=st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(devices, st.sampled_from(["5.0", "5.9.1", "23.04", "2017"]), st.integers(0, 3000), st.booleans())
def test_round_trip(device: Device, era: str, cut: int, crlf: bool) -> None:
    text = device.mlnx_qos(era)
    text = text.replace("\n", "\r\n") if crlf else text
    seen = parse(Captured(0, text))
    assert seen.pfc == Value(Priorities.from_flags(device.pfc))
    assert seen.prio_tc == Value(tuple(device.prio_tc))
    assert seen.ets == Value(any(device.tsa[c] == "ets" for c in device.prio_tc))
    assert seen.lldpad == device.lldpad
    if era != "2017":
        assert seen.trust == Value(device.trust)
        assert seen.os_controlled == Value(device.os_controlled)
        assert seen.buffer_bytes == Value(tuple(device.sizes))
        assert seen.prio_buffer == Value(tuple(device.prio_buffer))
        if device.app:
            assert isinstance(seen.dscp_map, Value)
            assert dict(seen.dscp_map.value.entries) == device.app
        else:
            assert isinstance(seen.dscp_map, Absent)
    never_another_value(parse(Captured(0, text[:cut])), seen)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.integers(0, 255), st.text())
def test_any_text_is_answered(out: str, rc: int, err: str) -> None:
    assert isinstance(parse(Captured(rc, out, err)), View)
