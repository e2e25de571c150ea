"""The ports room: each code in one state, and not in the healthy twin of that state."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool import ports
from fabrictool.model import Code, Finding, Status
from fabrictool.room import Fleet
from tests.ports.sample import A1, HANGS, A, B, Node
from tests.specs import node_spec


def judged(node: Node, **spec: Any) -> list[Finding]:
    return list(ports.ROOM.findings(node_spec(**spec), node.snapshot(), Fleet()))


def bad(findings: list[Finding]) -> set[tuple[Code, Status]]:
    return {(f.code, f.status) for f in findings if f.bad}


def test_healthy_spark_passes_with_evidence() -> None:
    found = judged(Node())
    assert bad(found) == set()
    assert {f.path for f in found if f.status is Status.PASS} == {
        "ports.interface", "ports.binding", "ports.pcie", "ports.same_port", "ports.bootstrap"}
    assert all(not f.steps for f in found)


def test_absent_interface() -> None:
    found = judged(Node().remove(B))
    assert bad(found) == {(Code.LINK_ABSENT, Status.FAIL)}
    (f,) = [f for f in found if f.bad]
    assert "hot-plug" in f.why
    assert f.subject.function == B


def test_cable_in_the_other_cage() -> None:
    node = Node().remove(A).remove(B).add(A1, pci="0000:01:00.1", port="p1", rdma="rocep1s0f1")
    found = [f for f in judged(node, bootstrap=None) if f.bad]
    assert {f.code for f in found} == {Code.LINK_ABSENT}
    assert all(A1 in f.why and "other cage" in f.why for f in found)


def test_uncabled_other_cage_is_not_named() -> None:
    node = Node().remove(B).add(A1, pci="0000:01:00.1", port="p1", rdma="rocep1s0f1", carrier=False)
    assert all(A1 not in f.why for f in judged(node))


def test_selectors_disagree() -> None:
    wrong = {"p0": {"rate_gbit": 200, "functions": [{"rail": "a", "rdma": "roceP2p1s0f0", "interface": A}]}}
    found = judged(Node(), ports=wrong)
    assert (Code.LINK_BINDING, Status.FAIL) in bad(found)
    right = {"p0": {"rate_gbit": 200, "functions": [{"rail": "a", "rdma": "rocep1s0f0", "interface": A}]}}
    assert bad(judged(Node(), ports=right)) == set()


def test_spec_says_one_port_and_sysfs_two() -> None:
    node = Node()
    node.port_names[B] = "p1"
    assert bad(judged(node)) == {(Code.LINK_BINDING, Status.WARN)}


def test_spec_says_two_ports_and_sysfs_one() -> None:
    two = {"p0": {"functions": [{"rail": "a", "interface": A}]}, "p1": {"functions": [{"rail": "b", "interface": B}]}}
    assert bad(judged(Node(), ports=two)) == {(Code.LINK_BINDING, Status.WARN)}
    node = Node()
    node.port_names[B] = "p1"
    assert bad(judged(node, ports=two)) == set()


def test_ports_that_are_not_told_are_skipped() -> None:
    node = Node()
    node.port_names = {}
    found = judged(node)
    assert bad(found) == set()
    assert [f.status for f in found if f.path == "ports.same_port"] == [Status.SKIP]


@pytest.mark.parametrize(("widths", "status"), [
    ({A: (2, 4), B: (4, 4)}, Status.FAIL),  # 63 + 126 Gb/s for a port of 200
    ({A: (4, 8), B: (4, 8)}, Status.WARN),  # 252 Gb/s is enough
])
def test_pcie_width(widths: dict[str, tuple[int, int]], status: Status) -> None:
    node = Node()
    node.width = widths
    assert bad(judged(node)) == {(Code.PCIE_WIDTH, status)}


def test_pcie_of_lag_members() -> None:
    node = Node().bond("bond0", A, B, ip="10.10.1.1/24")
    lag = {"p0": {"rate_gbit": 400, "functions": [{"rail": "a", "interface": "bond0", "members": [A, B]}]}}
    assert not [f for f in judged(node, ports=lag, bootstrap="bond0") if f.code is Code.PCIE_WIDTH and f.bad]
    node.width[B] = (2, 4)
    assert [f.got for f in judged(node, ports=lag, bootstrap="bond0") if f.code is Code.PCIE_WIDTH and f.bad] == [f"{B}: x2"]


def test_bootstrap_absent() -> None:
    assert bad(judged(Node(), bootstrap="eth77")) == {(Code.LINK_ABSENT, Status.FAIL)}
    assert bad(judged(Node(), bootstrap=B)) == set()


def test_rdma_device_absent_blocks_only_the_binding() -> None:
    node = Node()
    node.rdma.pop("rocep1s0f0")
    assert bad(judged(node)) == {(Code.BLOCKED, Status.UNKNOWN)}


@pytest.mark.parametrize("section", ["ports.ip", "ports.rdma", "ports.net"])
def test_unreadable_is_unknown_never_pass(section: str) -> None:
    node = Node()
    node.sections[section] = HANGS
    found = judged(node)
    assert {s for _, s in bad(found)} == {Status.UNKNOWN}
    assert not [f for f in found if f.steps]
