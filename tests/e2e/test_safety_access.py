"""Nodes that cannot be reached, or that answer strangely, get their own code; the verdicts on others stay what they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
BROKEN = {"spark02": ("unreachable", "UNREACHABLE"), "spark03": ("login-hangs", "UNREACHABLE"),
          "spark04": ("hostkey-changed", "HOST_KEY_CHANGED")}
STRANGE = {"spark05": ("bashrc-noisy", "bashrc-slow"), "spark06": ("no-python",)}
WELL = ("spark01", *STRANGE)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with built("safe-way", 6) as lab:
        yield lab


def of(ended: fleet.Ended, node: str) -> frozenset[fleet.Said]:
    """The node's findings but those about names: peers that cannot be read have none that are known."""
    return frozenset(f for f in fleet.findings(ended) if f.node == node and "|names." not in f.id)


def test_each_has_its_code_and_the_others_their_verdicts(lab: Lab) -> None:
    healthy = fleet.tool("plan", "-i", fleet.spec(lab), "-o", "json", "-v")
    assert healthy.rc == 2, outside.short(healthy)
    for node, (fault, _) in BROKEN.items():
        outside.fault(lab, node, fault)
    for node, faults in STRANGE.items():
        outside.fault(lab, node, *faults)
    said = fleet.tool("plan", "-i", fleet.spec(lab), "-o", "json", "-v")
    assert said.rc == 3, outside.short(said)
    for node in WELL:
        assert len(of(healthy, node)) > 30
        assert of(said, node) == of(healthy, node), sorted(of(said, node) ^ of(healthy, node), key=str)
    for node, (_, code) in BROKEN.items():
        reach = [f for f in of(said, node) if "|reach." in f.id]
        assert [(f.code, f.status) for f in reach] == [(code, "unknown")]
        assert {f.status for f in of(said, node)} == {"unknown"}
    # A broken node alone: no verdict, whatever the command.
    for command in ("drift", "check"):
        alone = fleet.tool(command, "-i", fleet.spec(lab), "-l", "spark04", "-o", "json")
        assert alone.rc == 3, outside.short(alone)
        assert "HOST_KEY_CHANGED" in {f.code for f in fleet.findings(alone)}

    apply_among_the_broken(lab)


def apply_among_the_broken(lab: Lab) -> None:
    """Those that can be reached are set whole, also without Python and with a start file that prints; the others are reported."""
    lab.reset("spark05")
    outside.fault(lab, "spark05", "bashrc-noisy")  # not slow: every step would wait for it
    before = {n: outside.calm(lab, n) for n in BROKEN}
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 3, outside.short(done)
    for node in WELL:
        assert outside.fabric_set(lab, node)
        assert outside.calm_steps_done(lab, node)
        assert not [f for f in of(done, node) if f.status == "fail"], outside.short(done)
    for node, (_, code) in BROKEN.items():
        assert outside.calm(lab, node) == before[node]
        assert (code, "unknown") in {(f.code, f.status) for f in of(done, node)}
