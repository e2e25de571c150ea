"""Others that set QoS: what is found, and which writes they stop."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool.model import Code, Reason, Status, SubjectKind, Unreadable
from tests.qos.device import Device, configured
from tests.qos.nodes import A, B, at, judged, node, one, writer
from tests.specs import node_spec


@pytest.mark.parametrize("seen", [{"daemons": ("lldpad",)}, {"device": Device(lldpad=True)}])
def test_lldpad_stops_every_write_that_it_would_fight_over(seen: dict[str, Any]) -> None:
    findings = one(**{"device": Device(), "files": {}, "units": {}, **seen})
    lldpad = at(findings, "lldpad")
    assert (lldpad.code, lldpad.status, lldpad.subject.kind) == (Code.QOS_LLDPAD, Status.FAIL, SubjectKind.NODE)
    assert {f.aspect for f in findings if f.steps} == {"pause"}
    blocked = [f for f in findings if f.status is Status.FAIL and f.aspect in ("trust", "map", "pfc", "persist")]
    assert len(blocked) == 5
    assert all("lldpad" in f.remedy for f in blocked)
    assert at(one(), "lldpad").status is Status.PASS


def test_unseen_processes_or_files_stop_writes_too() -> None:
    why = Unreadable(Reason.NEEDS_ROOT, "hidepid")
    for fields in ({"daemons": why}, {"writers": why}):
        findings = one(device=Device(), **fields)
        assert {f.aspect for f in findings if f.steps} == {"pause"}
        assert any(f.status is Status.UNKNOWN and f.code is Code.NEEDS_ROOT for f in findings)


def test_another_owner_with_other_values_stops_only_what_it_writes() -> None:
    other = writer(f"ExecStart=mlnx_qos -i {A} -f 0,0,0,0,1,0,0,0", A, ("pfc", "0,0,0,0,1,0,0,0"))
    findings = one(device=Device(), writers=(other,), files={}, units={})
    owner = at(findings, "owner./etc/systemd/system/roce.service:7")
    assert (owner.code, owner.status) == (Code.QOS_OTHER_OWNER, Status.FAIL)
    assert "/etc/systemd/system/roce.service:7" in owner.got
    assert not at(findings, "pfc").steps
    assert not at(findings, "persist").steps
    assert at(findings, "trust").steps
    assert at(one(), "owner").status is Status.PASS


@pytest.mark.parametrize(("settings", "interface", "enabled", "status"), [
    ((("pfc", "0,0,0,1,0,0,0,0"),), A, True, Status.WARN),
    ((("pfc", "0,0,0,1,0,0,0,0"), ("trust", "dscp"), ("map", "set,26,3"), ("map", "set,40,5"), ("dcbx", "os"), ("pause", "off")), "", True,
     Status.WARN),
    ((("cm", "104"),), "", True, Status.WARN), ((("cm", "160"),), "", True, Status.WARN),
    ((("pfc", ""),), "", True, Status.FAIL), ((("trust", "pcp"),), "", True, Status.FAIL), ((("map", "set,26,5"),), "", True, Status.FAIL),
    ((("dcbx", "fw"),), "", True, Status.FAIL),
    ((("map", "flush"),), "", True, Status.FAIL), ((("tc", ""),), "", True, Status.FAIL), ((("pause", "on"),), "", True, Status.FAIL),
    ((("pfc", "0,0,0,0,1,0,0,0"),), A, False, Status.WARN),
])
def test_how_another_owner_is_weighed(settings: tuple[tuple[str, str], ...], interface: str, enabled: bool, status: Status) -> None:
    findings = one(device=Device(), writers=(writer("line", interface, *settings, enabled=enabled),))
    assert at(findings, "owner./etc/systemd/system/roce.service:7").status is status
    assert bool(at(findings, "trust").steps) is (status is Status.WARN or settings[0][0] != "trust")


def test_an_owner_of_another_interface_is_nobodys_business() -> None:
    findings = one(writers=(writer("line", "enP7s7", ("pfc", "1,1,1,1,1,1,1,1")),))
    assert at(findings, "owner").status is Status.PASS


def test_an_operators_daemon_stops_trust_and_pfc() -> None:
    findings = one(device=Device(), daemons=("nic-configurati",))
    assert at(findings, "owner.nic-configurati").code is Code.QOS_OTHER_OWNER
    assert not at(findings, "trust").steps
    assert not at(findings, "pfc").steps
    assert at(findings, "pause").steps


def test_who_sets_trust_has_the_map_too() -> None:
    """The first DSCP entry flips trust to dscp: setting the map would set trust behind the other owner's back."""
    other = writer(f"ExecStart=/usr/bin/mlnx_qos -i {A} --trust pcp", A, ("trust", "pcp"))
    findings = one(device=configured(app={}), writers=(other,))
    assert [bool(at(findings, p).steps) for p in ("trust", "map.26")] == [False, False]
    assert [bool(at(one(device=configured(app={})), p).steps) for p in ("trust", "map.26")] == [True, True]


def test_who_sets_one_function_of_a_cage_sets_its_twin() -> None:
    """They may share the registers. A function of another cage is free."""
    other = writer(f"ExecStart=/usr/bin/mlnx_qos -i {A} --trust pcp", A, ("trust", "pcp"))
    devices = {A: configured(app={}), B: configured(app={})}
    for same_port in (True, False):
        want = node_spec() if same_port else node_spec(ports={
            "p0": {"functions": [{"rail": "a", "interface": A}]}, "p1": {"functions": [{"rail": "b", "interface": B}]}})
        findings = judged(want, node(want, devices, writers=(other,)))
        steps = {f.subject.function: bool(f.steps) for f in findings if f.path == "qos.trust"}
        assert steps == {A: False, B: not same_port}
