"""FABRIC_IN_USE: no link flaps while RDMA queue pairs are up; not to know whether they are counts as in use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.lab.fleet import built

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("safe-use", 2) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.clear()
    return shared


def in_use(ended: fleet.Ended, node: str) -> set[str]:
    """The statuses of the node's FABRIC_IN_USE findings."""
    return {f.status for f in fleet.findings(ended) if f.code == "FABRIC_IN_USE" and f.node == node}


def test_queue_pairs_up_refuse_the_flap_and_nothing_else(lab: Lab) -> None:
    """The other node, without queue pairs, is the twin; so is the same node once they have gone."""
    outside.fault(lab, "spark01", "qps-up")
    before, qps = outside.calm(lab, "spark01"), lab.state("spark01").qps
    assert qps
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert (in_use(done, "spark01"), in_use(done, "spark02")) == ({"fail"}, set()), outside.short(done)
    assert outside.calm(lab, "spark01") == before
    assert lab.state("spark01").qps == qps  # a flap would have ended them
    assert outside.calm_steps_done(lab, "spark01")
    assert outside.fabric_set(lab, "spark02")

    with lab.edit_state("spark01") as state:
        state.qps.clear()
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert outside.fabric_set(lab, "spark01")
    assert all(n > before.flaps[name] for name, n in outside.flaps(lab, "spark01").items())


def test_queue_pairs_of_one_function_keep_its_twin_still_too(lab: Lab) -> None:
    with lab.edit_state("spark02") as state:
        state.qps["roceP2p1s0f0"] = 1
    plan = fleet.tool("plan", "-i", fleet.spec(lab), "-o", "json")
    assert plan.rc == 1, outside.short(plan)
    flapping = [f for r in fleet.report(plan)["results"] for f in r["findings"] if f["risk"] == "flap" and f["status"] == "fail"]
    for node, refused in (("spark01", False), ("spark02", True)):
        mine = ["[not set: FABRIC_IN_USE]" in f["why"] for f in flapping if f["subject"]["nodes"] == [node]]
        assert len(mine) >= 4, outside.short(plan)
        assert set(mine) == {refused}, outside.short(plan)


def misbehave(lab: Lab, node: str, how: str) -> None:
    with lab.edit_state(node) as state:
        state.tools["rdma"] = how


def test_what_cannot_be_read_counts_as_in_use(lab: Lab) -> None:
    """On one node the tool is not installed, on the other it hangs."""
    lab.hide_tool("spark01", "rdma")
    misbehave(lab, "spark02", "hangs")
    before = {n: outside.calm(lab, n) for n in lab.nodes}
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)  # the MTU and PFC of the spec are not set: that is known
    for node in lab.nodes:
        assert in_use(done, node) == {"unknown"}, outside.short(done)
        assert outside.calm(lab, node) == before[node]
        assert outside.calm_steps_done(lab, node)

    lab.show_tool("spark01", "rdma")
    misbehave(lab, "spark01", "empty")
    misbehave(lab, "spark02", "traceback")
    plan = fleet.tool("plan", "-i", fleet.spec(lab), "-o", "json")
    assert in_use(plan, "spark01") == in_use(plan, "spark02") == {"unknown"}, outside.short(plan)


def test_a_node_that_needs_no_flap_is_not_troubled(lab: Lab) -> None:
    """Queue pairs up are the normal state of a node at work: nothing to say where nothing would flap."""
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    outside.fault(lab, "spark01", "qps-up", "hosts-loopback")
    before = outside.calm(lab, "spark01")
    done = fleet.tool("apply", "-i", fleet.spec(lab), "-y", "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert outside.calm(lab, "spark01") == before
    assert outside.calm_steps_done(lab, "spark01")
