"""Two readers, one, none; interfaces that have no DCB of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fabrictool.model import Code, Run, Status, Unreadable
from fabrictool.ports import Netdev
from fabrictool.snapshot import Captured
from tests.qos.device import DEFAULT_MAP, Device, configured
from tests.qos.nodes import A, B, at, bad, judged, node, one, one_port, ports_of
from tests.specs import node_spec


@pytest.mark.parametrize(("change", "path"), [
    ({"pfc": [0] * 8}, "pfc"), ({"app": {}}, "trust"), ({"app": {**DEFAULT_MAP, 26: 5}}, "map"), ({"prio_tc": [0] * 8}, "tc.shared"),
    ({"os_controlled": False}, "dcbx"), ({"sizes": [1] * 8}, "tc.buffer"),
])
def test_readers_that_disagree_stop_the_write(change: dict[str, Any], path: str) -> None:
    f = at(one(changed={f"qos.dcb[{A}]": Captured(0, configured(**change).dcb(A))}), path)
    assert (f.code, f.status, f.steps) == (Code.QOS_READERS_DISAGREE, Status.UNKNOWN, ())
    assert "mlnx_qos says" in f.why
    assert "dcb says" in f.why
    alone = {f"qos.dcb[{A}]": Captured(127, "", "dcb: not found")}
    assert at(one(changed=alone), path if path != "map" else "map.26").status is Status.PASS


def test_one_reader_is_enough_and_is_named() -> None:
    gone = {f"qos.mlnx_qos[{A}]": Captured(127, "", "sh: mlnx_qos: not found")}
    findings = one(changed=gone)
    assert at(findings, "pfc").status is Status.PASS
    assert "dcb alone" in at(findings, "pfc").got
    assert (at(findings, "writer").code, at(findings, "writer").status) == (Code.TOOL_MISSING, Status.UNKNOWN)
    assert at(one(), "writer").status is Status.PASS
    wrong = at(one(device=Device(), changed=gone), "pfc")
    assert (wrong.status, wrong.steps) == (Status.FAIL, ())
    assert "mlnx_qos" in wrong.remedy


@pytest.mark.parametrize(("got", "code"), [
    (Captured(127, "", "not found"), Code.TOOL_MISSING), (Captured(124, ""), Code.TOOL_TIMEOUT), (Captured(0, ""), Code.UNREADABLE),
    (Captured(1, "", "Netlink error: Operation not permitted (1)"), Code.NEEDS_ROOT),
    (Captured(0, "DCBX mode: OS", cut=True), Code.UNREADABLE),
])
def test_without_any_reader_nothing_is_known_and_nothing_written(got: Captured, code: Code) -> None:
    findings = one(changed={f"qos.mlnx_qos[{A}]": got, f"qos.dcb[{A}]": Captured(127, "", "dcb: not found")})
    for path in ("dcbx", "trust", "map", "pfc", "tc.shared", "tc.buffer"):
        f = at(findings, path)
        assert (f.status, f.code, f.steps) == (Status.UNKNOWN, code, ()), path
    assert at(findings, "pause").status is Status.PASS


def test_2017_tool_is_not_told_what_it_cannot_set() -> None:
    """What dcb reads differs, but this release of the writer has no option for it: no step, and the remedy says so."""
    device = configured(app={}, os_controlled=False, pfc=[0] * 8)
    findings = one(device=device, changed={f"qos.mlnx_qos[{A}]": Captured(0, device.mlnx_qos("2017"))})
    for path in ("dcbx", "trust", "map.26"):
        found = at(findings, path)
        assert (found.status, found.steps) == (Status.FAIL, ())
        assert "newer mlnx_qos" in found.remedy
    assert at(findings, "pfc").steps
    assert all(at(one(device=device), path).steps for path in ("dcbx", "trust", "map.26", "pfc"))


def test_2017_tool_without_dcb_knows_pfc_and_not_trust() -> None:
    alone = {f"qos.dcb[{A}]": Captured(127, "", "dcb: not found"), f"qos.mlnx_qos[{A}]": Captured(0, configured().mlnx_qos("2017"))}
    findings = one(changed=alone)
    assert at(findings, "pfc").status is Status.PASS
    assert at(findings, "trust").status is Status.UNKNOWN
    with_dcb = one(changed={f"qos.mlnx_qos[{A}]": Captured(0, configured().mlnx_qos("2017"))})
    assert at(with_dcb, "trust").status is Status.PASS


@pytest.mark.parametrize(("got", "status"), [
    (Captured(0, configured().ethtool(A)), Status.PASS),
    (Captured(79, configured().ethtool(A), "Cannot ...: Operation not supported"), Status.PASS),  # the values are there all the same
    (Captured(1, "", "netlink error: Operation not supported"), Status.UNKNOWN),
    (Captured(127, "", "ethtool: not found"), Status.UNKNOWN),
    (Captured(0, "Pause parameters for x:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\tof"), Status.UNKNOWN),
    (Captured(0, "RX negotiated: on\nTX negotiated: on\n" + configured().ethtool(A)), Status.PASS),
])
def test_global_pause(got: Captured, status: Status) -> None:
    assert at(one(changed={f"qos.pause[{A}]": got}), "pause").status is status


def test_every_prefix_of_ethtool() -> None:
    text = Device(pause=(True, False)).ethtool(A)
    want = one_port()
    for end in range(len(text)):
        f = at(one(want, changed={f"qos.pause[{A}]": Captured(0, text[:end])}), "pause")
        assert f.status is Status.UNKNOWN or f.got == "rx on, tx off"


def test_no_dcb_bond_vlan_and_vf() -> None:
    four = "Priority trust state is not supported on your system\nETS features are not supported on your system\n"
    none = {f"qos.mlnx_qos[{A}]": Captured(1, four), f"qos.dcb[{A}]": Captured(127, "", "dcb: not found")}
    assert bad(one(changed=none)) == [(Code.QOS_UNSUPPORTED, Status.FAIL)]
    for netdev in (Netdev(A, virtual_function=True, device=True), Netdev(A, kind="vlan", parent="ens0"), Netdev(A, kind="bond")):
        findings = one(ports=ports_of(**{A: netdev}))
        assert bad(findings) == [(Code.QOS_UNSUPPORTED, Status.FAIL)]
        assert all(f.remedy and not f.steps for f in findings if f.bad)
    assert at(one(), "interface").status is Status.PASS


def test_members_of_a_bond_are_judged_one_by_one() -> None:
    want = one_port("bond0")
    members = {n: Netdev(n, device=True, master="bond0") for n in ("m0", "m1")}
    ports = ports_of(bond0=Netdev("bond0", kind="bond"), **members)
    got = node(want, {"m0": configured(), "m1": Device()}, ports=ports)
    findings = judged(want, got)
    by_member = {f.subject.function: f.status for f in findings if f.path == "qos.pfc"}
    assert by_member == {"m0": Status.PASS, "m1": Status.FAIL}
    assert [f.status for f in findings if f.path == "qos.persist"] == [Status.PASS, Status.PASS]


def test_an_absent_interface_is_blocked_and_stops_no_other() -> None:
    ports = ports_of()
    assert not isinstance(ports.netdevs, Unreadable)
    del ports.netdevs[B]  # type: ignore[attr-defined]
    findings = judged(node_spec(), node(node_spec(), {A: Device()}, ports=ports))
    blocked = [f for f in findings if f.status is Status.UNKNOWN]
    assert [(f.code, f.path, f.aspect, f.subject.function) for f in blocked] == [(Code.BLOCKED, "qos.interface", "", B)]
    assert at(findings, "pfc").steps


def test_an_interface_that_looks_like_an_option_is_never_put_on_a_command_line() -> None:
    want = one_port()
    odd = "--trust"
    ports = ports_of(**{odd: Netdev(odd, device=True, rdma=("rocep1s0f0",), altnames=(A,))})
    assert not isinstance(ports.netdevs, Unreadable)
    del ports.netdevs[A]  # type: ignore[attr-defined]
    assert not isinstance(ports.rdma, Unreadable)
    ports = replace(ports, rdma={"rocep1s0f0": replace(ports.rdma["rocep1s0f0"], netdevs=(odd,))})
    got = node(want, {}, ports=ports)
    findings = judged(want, replace(got, interfaces={}))
    assert not any(odd in step.argv for f in findings for step in f.steps if isinstance(step, Run))
    assert at(findings, "interface").status is Status.UNKNOWN
