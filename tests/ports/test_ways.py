"""The ways to a node: default routes and the interface of the SSH session."""

from __future__ import annotations

import pytest

from fabrictool import ports
from fabrictool.model import Absent, Unreadable, Value
from fabrictool.ports.parse import parse_route_devices
from fabrictool.snapshot import Captured
from tests.ports.sample import HANGS, MGMT, A, Node


@pytest.mark.parametrize(("text", "want"), [
    ("[ ]", ()), ("[]", ()), ("[{}]", ()),
    ('[{"dst":"default","gateway":"1.1.1.1","dev":"eth0","flags":[]}]', ("eth0",)),
    ('[{"dst":"default","flags":[],"nexthops":[{"gateway":"1.1.1.1","dev":"a","weight":1},{"dev":"b"}]}]', ("a", "b")),
])
def test_routes(text: str, want: tuple[str, ...]) -> None:
    assert parse_route_devices(text) == want


def test_no_ipv6_in_the_kernel_is_no_ipv6_route() -> None:
    node = Node()
    node.sections["ports.route6"] = Captured(2, "", "RTNETLINK answers: Operation not supported")
    assert ports.read(node.snapshot()).default_routes == (MGMT,)
    node.sections["ports.route6"] = HANGS
    assert isinstance(ports.read(node.snapshot()).default_routes, Unreadable)


@pytest.mark.parametrize(("ssh", "want"), [
    ("10.0.0.1 5 10.10.1.1 22", Value(A)), ("::1 5 ::ffff:10.10.1.1 22", Value(A)), ("fe80::9 5 fe80::2%enp1s0f0np0 22", Value(A)),
])
def test_ssh_interface(ssh: str, want: Value[str]) -> None:
    node = Node()
    node.ssh = ssh
    assert ports.read(node.snapshot()).ssh_interface == want


@pytest.mark.parametrize("ssh", ["1.2.3.4 5 9.9.9.9 22", "nonsense", "a b c d", "1.2.3.4 5 10.10.1.1"])
def test_ssh_interface_not_known(ssh: str) -> None:
    node = Node()
    node.ssh = ssh
    assert isinstance(ports.read(node.snapshot()).ssh_interface, Unreadable)


def test_no_ssh_is_absent_and_a_doubled_address_unreadable() -> None:
    node = Node()
    node.ssh = ""
    assert isinstance(ports.read(node.snapshot()).ssh_interface, Absent)
    node = Node().add("dup0", "192.168.1.11/24")
    assert isinstance(ports.read(node.snapshot()).ssh_interface, Unreadable)
