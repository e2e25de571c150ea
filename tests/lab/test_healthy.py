"""The reverse of the fault table: a healthy fleet of every kind raises no code at all, and every room has evidence for that."""

from __future__ import annotations

import pytest

from fabrictool.catalog import checks
from fabrictool.lab.handle import Lab
from fabrictool.rooms import ROOMS
from tests.e2e import fleet
from tests.lab.fleet import built

pytestmark = pytest.mark.lab


# Nobody owns the interfaces of a plain node, so nothing would set them up after a reboot: told as a warning, whatever apply does.
WARNED = {"plain": {("warn", "LINK_NO_OWNER"), ("warn", "LINK_MTU_PERSISTED")}}


def raises_nothing(lab: Lab, but: set[tuple[str, str]]) -> None:
    """plan, drift and check of the whole fleet, each read anew. `but`: what this kind of node cannot be without."""
    for command in ("plan", "drift", "check"):
        said = fleet.tool(command, "-i", fleet.spec(lab), "-v", "-o", "json")
        assert said.rc == 0, said.all
        found = [f for result in fleet.report(said)["results"] for f in result["findings"]]
        assert {(f["status"], f["code"]) for f in found if f["status"] not in ("pass", "skip")} == but
        for node in lab.nodes:
            passed = {f["id"].rpartition("|")[2].partition(".")[0] for f in found
                      if f["status"] == "pass" and node in f["subject"]["nodes"]}
            judged = {c.name for c in checks() if c.check.judge and not c.check.probes} if command == "check" else set()
            assert passed == {room.name for room in ROOMS} | judged, (command, node, passed)


@pytest.mark.parametrize(("profile", "nodes"), [("spark", 2), ("spark", 4), ("h20", 2), ("plain", 2)])
def test_a_configured_fleet_raises_no_code(profile: str, nodes: int) -> None:
    with built(f"well-{profile}", nodes, profile) as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        raises_nothing(lab, WARNED.get(profile, set()))
