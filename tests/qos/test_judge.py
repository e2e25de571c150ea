"""Every code in a failing and in a healthy state; steps, undo, blocks."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool.model import Code, Finding, Reason, Risk, Run, Status, Unreadable
from fabrictool.qos import ROOM
from fabrictool.qos.judge import ASPECTS
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot
from tests.qos.device import DEFAULT_MAP, Device, configured
from tests.qos.nodes import A, B, at, bad, judged, node, one, one_port
from tests.specs import node_spec


def argv(f: Finding) -> list[tuple[str, ...]]:
    return [s.argv for s in f.steps if isinstance(s, Run)]


def undo(f: Finding) -> list[tuple[str, ...]]:
    return [s.undo for s in f.steps if isinstance(s, Run)]


def tool(*words: str) -> tuple[str, ...]:
    return ("mlnx_qos", "-i", A, *words)


def test_a_configured_node_passes_with_evidence_for_every_aspect() -> None:
    findings = judged(node_spec(), node(node_spec(), {A: configured(), B: configured()}))
    assert not bad(findings)
    passed = {f.aspect for f in findings if f.status is Status.PASS}
    assert passed >= set(ASPECTS) - {"ecn"}
    assert all(f.got for f in findings if f.status is Status.PASS)
    assert {f.subject.function for f in findings if f.aspect == "pfc"} == {A, B}


def test_factory_state_gets_one_setting_a_call_in_order() -> None:
    findings = one(device=Device())
    steps = [(f.aspect, argv(f)) for f in findings if f.steps]
    assert steps == [
        ("trust", [tool("--trust", "dscp")]),
        ("map", [tool("--dscp2prio", "set,26,3")]),
        ("pause", [("ethtool", "-A", A, "rx", "off", "tx", "off")]),
        ("pfc", [tool("-f", "0,0,0,1,0,0,0,0")]),
    ]
    assert [undo(f) for f in findings if f.steps] == [
        [tool("--trust", "pcp")], [tool("--dscp2prio", "del,26,3")], [("ethtool", "-A", A, "rx", "on", "tx", "on")],
        [tool("-f", "0,0,0,0,0,0,0,0")]]
    assert [f.risk for f in findings if f.steps] == [Risk.NONE, Risk.NONE, Risk.NONE, Risk.FLAP]


@pytest.mark.parametrize(("changes", "path", "code", "steps", "back"), [
    ({"app": {}}, "trust", Code.QOS_TRUST, [tool("--trust", "dscp")], [tool("--trust", "pcp")]),
    ({"app": {**DEFAULT_MAP, 26: 5}}, "map.26", Code.QOS_DSCP_MAP, [tool("--dscp2prio", "set,26,3")], [tool("--dscp2prio", "set,26,5")]),
    ({"app": {0: 0}}, "map.26", Code.QOS_DSCP_MAP, [tool("--dscp2prio", "set,26,3")], [tool("--dscp2prio", "del,26,3")]),
    ({"pfc": [0] * 8}, "pfc", Code.QOS_PFC_MASK, [tool("-f", "0,0,0,1,0,0,0,0")], [tool("-f", "0,0,0,0,0,0,0,0")]),
    ({"pfc": [0, 0, 0, 1, 1, 0, 0, 0]}, "pfc", Code.QOS_PFC_MASK, [tool("-f", "0,0,0,1,0,0,0,0")], [tool("-f", "0,0,0,1,1,0,0,0")]),
    ({"pfc": [0, 0, 0, 0, 0, 1, 0, 0]}, "pfc", Code.QOS_PFC_WRONG_PRIORITY, [tool("-f", "0,0,0,1,0,0,0,0")],
     [tool("-f", "0,0,0,0,0,1,0,0")]),
    ({"pause": (True, False)}, "pause", Code.QOS_GLOBAL_PAUSE, [("ethtool", "-A", A, "rx", "off", "tx", "off")],
     [("ethtool", "-A", A, "rx", "on", "tx", "off")]),
    ({"os_controlled": False}, "dcbx", Code.QOS_FW_DCBX, [tool("-d", "os")], [tool("-d", "fw")]),
    ({"prio_tc": [0] * 8}, "tc.shared", Code.QOS_SHARED_TC, [tool("-p", "0,0,0,3,0,0,0,0")], [tool("-p", "0,0,0,0,0,0,0,0")]),
    ({"prio_tc": [0, 1, 2, 5, 4, 5, 6, 7]}, "tc.shared", Code.QOS_SHARED_TC, [tool("-p", "0,1,2,3,4,5,6,7")],
     [tool("-p", "0,1,2,5,4,5,6,7")]),
    ({"prio_tc": [3, 1, 2, 3, 4, 5, 6, 7]}, "tc.shared", Code.QOS_SHARED_TC, [tool("-p", "3,1,2,0,4,5,6,7")],
     [tool("-p", "3,1,2,3,4,5,6,7")]),
])
def test_one_wrong_setting_is_one_finding_with_its_step(
        changes: dict[str, Any], path: str, code: Code, steps: list[tuple[str, ...]], back: list[tuple[str, ...]]) -> None:
    f = at(one(device=configured(**changes)), path)
    assert (f.code, f.status) == (code, Status.FAIL)
    assert argv(f) == steps
    assert undo(f) == back
    assert f.why
    healthy = at(one(), path)
    assert (healthy.status, healthy.steps) == (Status.PASS, ())


def test_got_is_what_was_read_and_want_is_the_specs() -> None:
    device = Device(app={**DEFAULT_MAP, 26: 5}, pfc=[0, 0, 0, 0, 1, 0, 0, 0], pause=(True, False), os_controlled=False)
    findings = one(device=device)
    assert {path: (at(findings, path).got, at(findings, path).want) for path in ("dcbx", "map.26", "pause", "pfc")} == {
        "dcbx": ("firmware controlled", "OS controlled"), "map.26": ("DSCP 26 -> priority 5", "DSCP 26 -> priority 3"),
        "pause": ("rx on, tx off", "rx off, tx off"), "pfc": ("4", "3")}
    trust = at(one(device=Device()), "trust")
    assert (trust.got, trust.want) == ("pcp", "dscp")


def test_only_a_pfc_change_flaps() -> None:
    everything = Device(os_controlled=False, prio_tc=[0] * 8)
    assert {f.aspect for f in one(device=everything) if f.risk is Risk.FLAP} == {"pfc"}


def test_trust_is_not_enough() -> None:
    """The map counts also where trust already says dscp."""
    findings = one(device=configured(app={**DEFAULT_MAP, 26: 0}))
    assert at(findings, "trust").status is Status.PASS
    assert at(findings, "map.26").status is Status.FAIL


def test_a_map_that_is_not_the_default_is_planned_beside_trust() -> None:
    want = one_port(dscp_to_priority={26: 5}, pfc=[5])
    findings = one(want, Device())
    assert argv(at(findings, "trust")) == [tool("--trust", "dscp")]
    assert argv(at(findings, "map.26")) == [tool("--dscp2prio", "set,26,5")]


def test_two_entries_for_one_dscp_are_reduced_to_the_wanted_one() -> None:
    text = configured().mlnx_qos().replace("\tprio:4 dscp:", "\tprio:4 dscp:26,", 1)
    findings = one(changed={f"qos.mlnx_qos[{A}]": Captured(0, text), f"qos.dcb[{A}]": Captured(127, "", "dcb: not found")})
    assert argv(at(findings, "map.26")) == [tool("--dscp2prio", "del,26,4")]
    assert undo(at(findings, "map.26")) == [tool("--dscp2prio", "set,26,4")]


def test_other_traffic_on_the_lossless_priority_is_a_warning() -> None:
    assert at(one(device=configured(app={**DEFAULT_MAP, 0: 3})), "map.others").status is Status.WARN
    assert at(one(), "map.others").status is Status.PASS


def test_trust_pcp_wanted() -> None:
    want = one_port(trust="pcp", dscp_to_priority={})
    custom = at(one(want, configured(app={26: 3, 0: 1})), "trust")
    assert argv(custom) == [tool("--trust", "pcp")]
    assert undo(custom) == [tool("--dscp2prio", "set,0,1", "--dscp2prio", "set,26,3")]
    assert undo(at(one(want, configured()), "trust")) == [tool("--trust", "dscp")]
    findings = one(want, configured(app={}))
    assert at(findings, "trust").status is Status.PASS
    assert at(findings, "map").status is Status.SKIP


def test_weighted_classes_are_not_rearranged() -> None:
    device = configured(prio_tc=[0] * 8, tsa=["ets"] * 8)
    f = at(one(device=device), "tc.shared")
    assert (f.status, f.steps) == (Status.FAIL, ())
    assert "-p 0,0,0,3,0,0,0,0" in f.remedy


def test_an_unused_lossy_priority_may_share() -> None:
    """No DSCP goes to priority 7, and the map is whole."""
    app = {d: 6 if p == 7 else p for d, p in DEFAULT_MAP.items()}
    shared = [1, 0, 2, 3, 4, 5, 6, 3]
    assert at(one(device=configured(app=app, prio_tc=shared)), "tc.shared").status is Status.PASS
    assert at(one(device=configured(prio_tc=shared)), "tc.shared").status is Status.FAIL


def test_a_lossless_priority_without_buffer() -> None:
    empty = configured(prio_buffer=[0, 0, 0, 1, 0, 0, 0, 0])
    f = at(one(device=empty), "tc.buffer")
    assert (f.code, f.status, f.steps) == (Code.QOS_BUFFER, Status.FAIL, ())
    assert f.remedy
    enough = configured(prio_buffer=[0, 0, 0, 1, 0, 0, 0, 0], sizes=[20016, 156096, 0, 0, 0, 0, 0, 0])
    assert at(one(device=enough), "tc.buffer").status is Status.PASS


def ecn(np: str, rp: str) -> dict[str, Captured]:
    base = f"/sys/class/net/{A}/ecn"
    return {f"qos.ecn[{A}]": Captured(0, f"{base}/roce_np/enable/3:{np}\n{base}/roce_rp/enable/3:{rp}\n{base}/roce_np/cnp_dscp:48\n")}


def test_ecn_only_where_the_spec_asks() -> None:
    assert at(one(changed=ecn("0", "0")), "ecn").status is Status.SKIP
    want = one_port(ecn=True)
    findings = one(want, changed=ecn("0", "1"))
    f = at(findings, "ecn.roce_np.3")
    assert (f.code, f.status) == (Code.QOS_ECN, Status.FAIL)
    path = f"/sys/class/net/{A}/ecn/roce_np/enable/3"
    assert argv(f) == [("sh", "-c", 'printf "%s\\n" "$1" >"$2"', "sh", "1", path)]
    assert undo(f)[0][-2:] == ("0", path)
    assert at(findings, "ecn.roce_rp.3").status is Status.PASS
    assert at(one(want), "ecn").status is Status.UNKNOWN  # the kernel's own driver has no such files
    assert at(one(want, changed=ecn("maybe", "1")), "ecn").status is Status.UNKNOWN


def test_a_spec_without_qos_or_ports_skips_every_aspect() -> None:
    from tests.specs import SPARK
    for want in (node_spec(fabric={**SPARK["fabric"], "qos": None}), node_spec(ports={})):
        findings = judged(want, node(node_spec(), {}))
        assert {f.status for f in findings} == {Status.SKIP}
        assert {f.aspect for f in findings} == set(ASPECTS)


def test_an_unreachable_node_gets_no_verdict_and_no_steps() -> None:
    snap = Snapshot("spark01", error=Unreadable(Reason.UNREACHABLE, "connection refused"))
    findings = ROOM.findings(node_spec(), snap, Fleet())
    assert findings
    assert all(f.status is Status.UNKNOWN and not f.steps for f in findings)


def test_finding_ids_are_unique_and_paths_start_with_the_room() -> None:
    findings = judged(node_spec(), node(node_spec(), {A: Device(), B: Device()}, files={}, units={}))
    assert len({f.id for f in findings}) == len(findings)
    assert {f.room for f in findings} == {"qos"}
    assert {f.aspect for f in findings} <= {"", *ASPECTS}
