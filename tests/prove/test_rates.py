"""What the ports of a node carry, from whole snapshots."""

from __future__ import annotations

from dataclasses import replace

from fabrictool.collective.bands import Capacity
from fabrictool.model import Reason, Unreadable
from fabrictool.prove.rates import capacity
from fabrictool.snapshot import Captured, Snapshot
from tests.ports.sample import A, B, Node
from tests.prove.fleets import h20s, sparks
from tests.specs import node_spec


def carried(node: Node, **sections: Captured) -> float | None:
    snap = node.snapshot()
    seen = capacity(node_spec(), replace(snap, sections={**snap.sections, **sections}))
    return seen.gbytes_per_s if isinstance(seen, Capacity) else None


def test_healthy_fleets() -> None:
    for fleet, want in ((sparks(4), 25.0), (h20s(), 400.0)):
        for name, spec in fleet.wants.items():
            seen = capacity(spec, fleet.snaps[name])
            assert isinstance(seen, Capacity)
            assert (seen.node, seen.gbytes_per_s) == (name, want)
            assert seen.rails == len(fleet.rails)


def test_one_function_that_is_down_leaves_the_port_its_rate() -> None:
    node = Node()
    node.speed[A] = "-1"
    assert carried(node) == 25
    node.speed[B] = "-1"
    assert carried(node) is None


def test_the_rate_of_the_rdma_device_stands_in_while_there_is_a_carrier() -> None:
    node = Node()
    node.speed = {}
    rate = Captured(0, "/sys/class/infiniband/rocep1s0f0/ports/1/rate:200 Gb/sec (4X HDR)\n/proc/sys/kernel/ostype:Linux\n")
    assert carried(node, **{"rdma.port[rocep1s0f0]": rate}) == 25
    for interface in (A, B):
        node.netdevs[interface]["flags"] = ["BROADCAST", "MULTICAST", "UP", "NO-CARRIER"]
    assert carried(node, **{"rdma.port[rocep1s0f0]": rate}) is None  # down: the device then names a rate that it has not


def test_a_narrow_pcie_link_and_a_bond() -> None:
    node = Node()
    node.width[B] = (1, 4)
    assert 19 < (carried(node) or 0) < 20
    bonded = Node().bond("bond0", A, B, ip="10.10.1.1/24")
    bonded.speed["bond0"] = "400000"
    port = {"p0": {"functions": [{"rail": "a", "interface": "bond0", "members": [A, B]}]}}
    seen = capacity(node_spec(ports=port), bonded.snapshot())
    assert isinstance(seen, Capacity)
    assert 31 < seen.gbytes_per_s < 32  # two links of x4 at 32 GT/s: 252 of 400 Gb/s


def test_what_cannot_be_read_has_no_capacity() -> None:
    lost = Snapshot("spark01", error=Unreadable(Reason.UNREACHABLE, "no route"))
    assert capacity(node_spec(), lost) == lost.error
    assert isinstance(capacity(node_spec(), Snapshot("spark01", {"other": Captured(0, "")})), Unreadable)
    assert isinstance(capacity(node_spec(ports={}), Node().snapshot()), Unreadable)
