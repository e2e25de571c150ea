"""The guard: what is refused, through which relations, and what passes."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool import ports
from fabrictool.model import Code, Finding, Risk, Run, Status, Step, Subject, SubjectKind
from fabrictool.ports import related
from fabrictool.snapshot import Captured
from tests.ports.sample import A1, B1, DENIED, HANGS, MGMT, MISSING, A, B, Node, queue_pair
from tests.specs import node_spec


def flap(interface: str = A, port: str = "p0", risk: Risk = Risk.FLAP, steps: tuple[Step, ...] | None = None) -> Finding:
    subject = Subject(SubjectKind.FUNCTION, ("spark01",), port, interface, "a")
    run = Run(("ip", "link", "set", "dev", interface, "mtu", "9000"), undo=("ip", "link", "set", "dev", interface, "mtu", "1500"))
    steps = (run,) if steps is None else steps
    return Finding(Code.LINK_MTU_RUNNING, subject, "link.mtu", "running", "1500", "9000", risk=risk, steps=steps)


def guarded(node: Node, *findings: Finding, **spec: Any) -> tuple[Finding, ...]:
    return ports.guard(node_spec(**spec), ports.read(node.snapshot()), findings)


def refused(found: tuple[Finding, ...]) -> list[tuple[Code, Status]]:
    return [(f.code, f.status) for f in found if f.path.startswith("ports.")]


def test_healthy_spark_lets_the_step_pass() -> None:
    f = flap()
    assert guarded(Node(), f) == (f,)


def test_findings_without_steps_are_untouched() -> None:
    f = flap(steps=())
    node = Node()
    node.default = [A]
    assert guarded(node, f) == (f,)


@pytest.mark.parametrize("ssh", ["9.9.9.9 5 10.10.1.1 22", "9.9.9.9 5 10.10.2.1 22"])
def test_ssh_session_on_the_function_or_its_twin(ssh: str) -> None:
    node = Node()
    node.ssh = ssh
    first, *rest = guarded(node, flap())
    assert (first.steps, first.status) == ((), Status.FAIL)
    assert "MGMT_PATH" in first.why
    assert refused(tuple(rest)) == [(Code.MGMT_PATH, Status.FAIL)]
    assert "SSH session" in rest[0].got
    assert rest[0].remedy


def test_default_route_on_the_twin() -> None:
    node = Node()
    node.default = [MGMT, B]
    assert refused(guarded(node, flap())) == [(Code.MGMT_PATH, Status.FAIL)]


def test_answers_to_the_client_leave_by_the_port() -> None:
    node = Node()
    node.sections["ports.ssh_route"] = Captured(0, f'[{{"dst":"192.168.1.100","dev":"{A}","prefsrc":"10.10.1.1","flags":[],"uid":0}}]')
    assert refused(guarded(node, flap())) == [(Code.MGMT_PATH, Status.FAIL)]


def test_one_refusal_per_port() -> None:
    node = Node()
    node.default = [A]
    found = guarded(node, flap(A), flap(B))
    assert refused(found) == [(Code.MGMT_PATH, Status.FAIL)]
    assert [f.steps for f in found[:2]] == [(), ()]


def test_default_route_through_bond_vlan_and_bridge() -> None:
    through_bond = Node().bond("bond0", A, B)
    through_bond.default = ["bond0"]
    through_vlan = Node().vlan(f"{A}.5", A)
    through_vlan.default = [f"{A}.5"]
    through_bridge = Node().add("br0", linkinfo={"info_kind": "bridge"})
    through_bridge.netdevs[B]["master"] = "br0"
    through_bridge.default = ["br0"]
    stacked = Node().bond("bond0", A, B).vlan("bond0.7", "bond0")
    stacked.default = ["bond0.7"]
    for node in (through_bond, through_vlan, through_bridge, stacked):
        assert refused(guarded(node, flap(A))) == [(Code.MGMT_PATH, Status.FAIL)]


def test_default_route_on_a_virtual_function_of_the_port() -> None:
    node = Node().add("ens1v0", pci="0000:01:00.2")
    node.physfn["ens1v0"] = "0000:01:00.0"
    node.default = ["ens1v0"]
    assert refused(guarded(node, flap(A))) == [(Code.MGMT_PATH, Status.FAIL)]


def test_twin_that_only_the_spec_knows() -> None:
    node = Node()
    node.port_names = {}
    node.default = [B]
    assert refused(guarded(node, flap(A))) == [(Code.MGMT_PATH, Status.FAIL)]
    alone = {"p0": {"functions": [{"rail": "a", "interface": A}]}}
    f = flap(A)
    assert guarded(node, f, ports=alone) == (f,)


def test_the_other_cage_is_another_port() -> None:
    node = Node().add(A1, "10.9.9.9/24", pci="0000:01:00.1", port="p1", rdma="rocep1s0f1")
    node.default = [A1]
    f = flap(A)
    assert guarded(node, f) == (f,)
    assert related(A, ports.read(node.snapshot()), ports.bind(node_spec(), ports.read(node.snapshot()))) == {A, B}


def test_twin_by_sysfs_counts_even_against_the_spec() -> None:
    two = {"p0": {"functions": [{"rail": "a", "interface": A}]}, "p1": {"functions": [{"rail": "b", "interface": B}]}}
    node = Node()
    node.default = [B]
    assert refused(guarded(node, flap(A), ports=two)) == [(Code.MGMT_PATH, Status.FAIL)]


@pytest.mark.parametrize("ssh", ["", "9.9.9.9 5 203.0.113.5 22"])
def test_unknown_ssh_interface_refuses_as_unknown(ssh: str) -> None:
    node = Node()
    node.ssh = ssh
    found = guarded(node, flap())
    assert refused(found) == [(Code.MGMT_PATH, Status.UNKNOWN)]
    assert found[0].steps == ()


def test_unknown_routes_refuse_as_unknown() -> None:
    node = Node()
    node.sections["ports.route4"] = HANGS
    assert refused(guarded(node, flap())) == [(Code.MGMT_PATH, Status.UNKNOWN)]


def test_steps_without_flap_pass_on_the_management_interface() -> None:
    node = Node()
    node.default = [A]
    node.ssh = ""
    f = flap(risk=Risk.NONE)
    assert guarded(node, f) == (f,)


def test_protected_gets_no_step_at_all() -> None:
    f = flap(MGMT, port="", risk=Risk.NONE)
    found = guarded(Node(), f)
    assert (found[0].steps, refused(found)) == ((), [(Code.MGMT_PATH, Status.FAIL)])
    allowed = flap(A, risk=Risk.NONE)
    assert guarded(Node(), allowed) == (allowed,)


def test_protected_by_altname_and_by_argv() -> None:
    node = Node()
    node.netdevs[MGMT]["altnames"] = ["wan0"]
    sneaky = flap(A, risk=Risk.NONE, steps=(Run(("ip", "link", "set", "dev", "wan0", "mtu", "9000")),))
    assert refused(guarded(node, sneaky, protected=["wan0"])) == [(Code.MGMT_PATH, Status.FAIL)]


def test_protected_twin_refuses_a_flap() -> None:
    assert refused(guarded(Node(), flap(A), protected=[B])) == [(Code.MGMT_PATH, Status.FAIL)]


def test_queue_pairs_up() -> None:
    node = Node()
    node.qps = [queue_pair()]
    found = guarded(node, flap())
    assert refused(found) == [(Code.FABRIC_IN_USE, Status.FAIL)]
    assert "python3 (pid 4711)" in found[1].got
    assert found[0].steps == ()


def test_queue_pairs_up_on_the_twin() -> None:
    node = Node()
    node.qps = [queue_pair("roceP2p1s0f0")]
    assert refused(guarded(node, flap(A))) == [(Code.FABRIC_IN_USE, Status.FAIL)]


def test_queue_pairs_of_another_port_do_not_count() -> None:
    node = Node().add(B1, pci="0002:01:00.1", port="p1", rdma="roceP2p1s0f1")
    node.qps = [queue_pair("roceP2p1s0f1")]
    f = flap(A)
    assert guarded(node, f) == (f,)


def test_management_queue_pairs_do_not_count_but_kernel_users_do() -> None:
    node = Node()
    node.qps = [{**queue_pair(number=7, pid=0, comm="mlx5_ib"), "type": "UD"},
                {**queue_pair(number=1, pid=0, comm="[rdma-mad]"), "type": "GSI"}]
    f = flap()
    assert guarded(node, f) == (f,)
    node.qps = [queue_pair(pid=0, comm="nvme_rdma")]
    assert refused(guarded(node, f)) == [(Code.FABRIC_IN_USE, Status.FAIL)]


@pytest.mark.parametrize("seen", [MISSING, DENIED, HANGS, Captured(1, "", "error"), Captured(0, ""), Captured(0, '[{"lqpn":3}]'),
                                  Captured(0, "[", cut=True)])
def test_unreadable_queue_pairs_count_as_in_use(seen: Captured) -> None:
    node = Node()
    node.sections["ports.qps"] = seen
    found = guarded(node, flap())
    assert refused(found) == [(Code.FABRIC_IN_USE, Status.UNKNOWN)]
    assert found[0].steps == ()


def test_no_rdma_device_means_nothing_in_use() -> None:
    node = Node()
    node.rdma = {}
    node.sections["ports.qps"] = MISSING
    f = flap()
    assert guarded(node, f) == (f,)
    node.sections["ports.rdma"] = HANGS
    assert refused(guarded(node, f)) == [(Code.FABRIC_IN_USE, Status.UNKNOWN)]


def test_a_finding_about_the_port_counts_for_all_its_functions() -> None:
    subject = Subject(SubjectKind.PORT, ("spark01",), "p0")
    f = Finding(Code.QOS_PFC_MASK, subject, "qos.pfc", "pfc", "none", "3", risk=Risk.FLAP, steps=(Run(("mlnx_qos", "-i", A)),))
    node = Node()
    node.default = [B]
    assert refused(guarded(node, f)) == [(Code.MGMT_PATH, Status.FAIL)]
    assert guarded(Node(), f) == (f,)


def test_a_flap_without_any_interface_counts_for_all() -> None:
    f = Finding(Code.QOS_PFC_MASK, Subject(SubjectKind.NODE, ("spark01",)), "qos.x", "x", "", "", risk=Risk.FLAP, steps=(Run(("tool",)),))
    node = Node()
    node.default = [B]
    assert refused(guarded(node, f)) == [(Code.MGMT_PATH, Status.FAIL)]


def test_order_is_kept_and_refusals_come_last() -> None:
    node = Node()
    node.default = [A]
    quiet = flap(risk=Risk.NONE)
    found = guarded(node, flap(), quiet, flap(B))
    assert [f.path for f in found] == ["link.mtu", "link.mtu", "link.mtu", "ports.mgmt_path"]
    assert found[1] == quiet
