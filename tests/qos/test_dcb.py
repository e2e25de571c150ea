"""dcb -j: captures, prefixes, versions, failures."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.qos.dcb import parse
from fabrictool.qos.model import DscpMap, View
from fabrictool.snapshot import Captured
from fabrictool.values import Priorities
from tests.qos.blocks import blocks
from tests.qos.device import DEFAULT_MAP, Device
from tests.qos.test_mlnx_qos import devices, never_another_value

OBSERVED = [f.name for f in fields(View) if f.name != "lldpad"]


def session(device: str, nth: int = 0) -> str:
    """The transcript of section qos.dcb, put together from the capture's blocks: the nth answer of each object."""
    out = ""
    for name in ("dcbx", "app", "pfc", "ets", "buffer"):
        found = [b for b in blocks("dcb/dcb-6.1.txt") if b.command == f"dcb -j {name} show dev {device}"]
        if found:
            b = found[min(nth, len(found) - 1)]
            out += f"$ {b.command}\n{b.got.out}{b.got.err}[rc={b.got.rc}]\n"
    return out


def test_the_states_of_a_session() -> None:
    fresh = parse(Captured(0, session("eth1")))
    assert (fresh.dcb, fresh.trust, fresh.dscp_map) == (Value(True), Value("pcp"), Absent("DSCP entries"))
    assert (fresh.pfc, fresh.os_controlled) == (Value(Priorities.of([])), Value(True))
    assert (fresh.prio_tc, fresh.ets) == (Value(tuple(range(8))), Value(False))
    assert fresh.buffer_bytes == Value((262016, 0, 0, 0, 0, 0, 0, 0))
    trusting = parse(Captured(0, session("eth1", 1)))
    assert (trusting.trust, trusting.pfc) == (Value("dscp"), Value(Priorities.of([3])))
    assert trusting.dscp_map == Value(DscpMap.of(DEFAULT_MAP.items()))
    moved = parse(Captured(0, session("eth1", 2)))
    assert isinstance(moved.dscp_map, Value)
    assert moved.dscp_map.value.priorities(26) == (4,)
    assert moved.pfc == Value(Priorities.of([4]))


@pytest.mark.parametrize("nth", [0, 1, 2])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_prefix_hides_values_and_never_changes_one(nth: int, ending: str) -> None:
    text = session("eth1", nth).replace("\n", ending)
    full = parse(Captured(0, text))
    assert isinstance(full.dcb, Value)
    for end in range(len(text)):
        never_another_value(parse(Captured(0, text[:end])), full)


def refused(text: str, rc: int = 1) -> str:
    return "".join(f"$ dcb -j {o} show dev eth1\n{text}\n\n[rc={rc}]\n" for o in ("dcbx", "app", "pfc", "ets", "buffer"))


def test_the_driver_has_no_dcb() -> None:
    assert parse(Captured(0, refused("Attribute read: Operation not supported"))).dcb == Value(False)
    assert parse(Captured(0, session("eth1"))).dcb == Value(True)


@pytest.mark.parametrize(("text", "rc", "reason", "word"), [
    ("Attribute read: No such device", 1, Reason.FAILED, "No such device"),
    ("Object \"pfc\" is unknown, try \"dcb help\".", 1, Reason.FAILED, "unknown"),
    ("Usage: dcb [ OPTIONS ] OBJECT", 255, Reason.FAILED, "Usage"),
    ("Attribute read: Operation not permitted", 1, Reason.NEEDS_ROOT, "not permitted"),
    ("sh: dcb: not found", 127, Reason.TOOL_MISSING, "not found"),
    ("", 0, Reason.EMPTY, "no output"),
    ("prio-pfc 0:off", 0, Reason.GARBLED, "not JSON"),
    ("[" * 100_000, 0, Reason.EMPTY, ""),
    ("[" * 60_000, 0, Reason.GARBLED, "not JSON"),
    ("[]", 0, Reason.GARBLED, "not a JSON object"),
    ("1" * 5000, 0, Reason.GARBLED, "not JSON"),
])
def test_failures_keep_their_reason(text: str, rc: int, reason: Reason, word: str) -> None:
    seen = parse(Captured(0, refused(text, rc))).pfc
    assert isinstance(seen, Unreadable)
    assert seen.reason is reason
    assert word in seen.why


def test_a_hang_ends_the_asking_and_is_told() -> None:
    text = session("eth1", 1).partition("$ dcb -j pfc")[0] + "$ dcb -j pfc show dev eth1\n[rc=124]\n"
    seen = parse(Captured(0, text))
    assert seen.trust == Value("dscp")
    for got in (seen.pfc, seen.prio_tc):
        assert isinstance(got, Unreadable)
        assert got.reason is Reason.TIMEOUT


def test_a_missing_section_and_a_missing_tool() -> None:
    missing = Unreadable(Reason.TOOL_MISSING, "qos.dcb[eth1]: dcb: not found")
    assert parse(missing).pfc == missing
    assert isinstance(parse(Captured(1, "", "oops")).pfc, Unreadable)


def test_an_object_that_the_driver_lacks_hides_only_itself() -> None:
    text = session("eth1", 1)
    head, _, tail = text.partition("$ dcb -j buffer")
    assert tail
    seen = parse(Captured(0, head + "$ dcb -j buffer show dev eth1\nAttribute not found: Success\n\n[rc=1]\n"))
    assert isinstance(seen.buffer_bytes, Absent)
    assert seen.pfc == Value(Priorities.of([3]))
    unshown = text.replace('{"host":true}\n[rc=0]', "Attribute not found: Success\n\n[rc=1]")
    assert isinstance(parse(Captured(0, unshown)).os_controlled, Unreadable)


@pytest.mark.parametrize(("old", "new", "field"), [
    ('"prio_pfc":[false,', '"prio_pfc":[', "pfc"),
    ('"prio_pfc":[false,', '"prio_pfc":[0,', "pfc"),
    ('[[0,0],', '[[0,0,0,0],', "dscp_map"),
    ('[[0,0],', '[[64,0],', "dscp_map"),
    ('[[0,0],', '[[0,"0"],', "trust"),
    ('[[0,0],', '[[true,0],', "dscp_map"),
    ('"prio_tc":[0,', '"prio_tc":[8,', "prio_tc"),
    ('"tc_tsa":["strict",', '"tc_tsa":[', "ets"),
    ('{"host":true}', '{"host":1}', "os_controlled"),
])
def test_garbled_parts_are_unreadable(old: str, new: str, field: str) -> None:
    text = session("eth1", 1)
    assert old in text
    assert isinstance(getattr(parse(Captured(0, text)), field), Value)
    assert isinstance(getattr(parse(Captured(0, text.replace(old, new))), field), Unreadable)


def test_firmware_controlled_has_no_host_flag() -> None:
    text = session("eth1").replace('{"host":true}', '{"cee":true,"ieee":true}')
    assert parse(Captured(0, text)).os_controlled == Value(False)


@settings(max_examples=200, deadline=None)
@given(devices, st.booleans(), st.integers(0, 3000))
def test_round_trip(device: Device, newer: bool, cut: int) -> None:
    text = device.dcb(newer=newer)
    seen = parse(Captured(0, text))
    assert seen.pfc == Value(Priorities.from_flags(device.pfc))
    assert seen.prio_tc == Value(tuple(device.prio_tc))
    assert seen.trust == Value(device.trust)
    assert seen.os_controlled == Value(device.os_controlled)
    assert seen.buffer_bytes == Value(tuple(device.sizes))
    if device.app:
        assert seen.dscp_map == Value(DscpMap.of(device.app.items()))
    never_another_value(parse(Captured(0, text[:cut])), seen)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.sampled_from(["pfc", "app", "ets", "buffer", "dcbx"]), st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=10))
def test_any_answer_is_answered(noise: str, name: str, doc: object) -> None:
    import json

    text = f"$ dcb -j {name} show dev eth1\n{json.dumps(doc)}\n[rc=0]\n{noise}"
    assert isinstance(parse(Captured(0, text)), View)
    assert isinstance(parse(Captured(0, noise)), View)
