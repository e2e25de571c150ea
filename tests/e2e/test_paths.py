"""The probes `path_mtu` and `bootstrap_tcp` on a lab: full frames and TCP between nodes; who is to blame, and that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
NAMES = ("path_mtu", "bootstrap_tcp")


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Three configured nodes; each test leaves them configured and the switch as delivered."""
    with built("paths", 3) as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        yield lab


def check(lab: Lab, *words: str) -> fleet.Ended:
    return fleet.tool("check", *(words or NAMES), "-i", fleet.spec(lab), "-o", "json", "-v")


def results(ended: fleet.Ended) -> dict[str, Any]:
    return {r["check"]: r for r in fleet.report(ended)["results"]}


def worse(ended: fleet.Ended) -> list[tuple[str, str, dict[str, Any]]]:
    return [(f["code"], f["status"], f["subject"]) for r in fleet.report(ended)["results"] for f in r["findings"]
            if f["status"] in ("fail", "unknown", "warn")]


def test_healthy_paths_pass_and_a_bundle_says_the_same(ready: Lab, tmp_path: Path) -> None:
    saved = tmp_path / "paths.tar.gz"
    live = check(ready, *NAMES, "--save", str(saved))
    assert live.rc == 0, live.all
    assert f"bundle written: {saved} (" in live.err
    got = results(live)
    assert {n: r["status"] for n, r in got.items()} == dict.fromkeys(NAMES, "pass")
    assert got["path_mtu"]["evidence"]["pairs_with_a_verdict"] == got["path_mtu"]["evidence"]["pairs_possible"] == 6
    assert got["path_mtu"]["evidence"]["mtu_bytes"] == 9000
    assert got["bootstrap_tcp"]["evidence"]["pairs_connected_both_ways"] == 3
    again = check(ready, *NAMES, "--from", str(saved))
    assert again.rc == 0, again.all
    assert {n: r["findings"] for n, r in results(again).items()} == {n: r["findings"] for n, r in got.items()}
    for node in ready.nodes:
        seen = ready.exec(node, ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).out
        assert fleet.report(live)["run_id"] not in seen


@contextmanager
def fault(lab: Lab, node: str, name: str) -> Iterator[None]:
    """A fault of the switch alone: nodes stay as they are."""
    done = fleet.tool("lab", "fault", node, name, "--name", lab.layout.name)
    assert done.rc == 0, done.all
    try:
        yield
    finally:
        outside.fabric_right(lab)


def test_a_hole_names_the_node_or_the_pair_and_others_are_not_touched(ready: Lab) -> None:
    with fault(ready, "spark02", "mtu-hole"):
        done = check(ready, "path_mtu")
        assert done.rc == 1, done.all
        ((code, status, subject),) = worse(done)
        assert (code, status, subject["nodes"], subject["rail"]) == ("PATH_MTU_HOLE", "fail", ["spark02"], "a")
        done = check(ready, "path_mtu", "-l", "spark[01-02]")
        assert done.rc == 1, done.all
        ((code, status, subject),) = worse(done)
        assert (subject["kind"], subject["nodes"], subject["peer"], subject["rail"]) == ("pair", ["spark01"], "spark02", "a")
        done = check(ready, "path_mtu", "-l", "spark01,spark03")
        assert done.rc == 0, done.all
    with fault(ready, "spark02", "mtu-hole-pair"):
        ((code, status, subject),) = worse(check(ready, "path_mtu"))
        assert (code, status, subject["kind"], subject["nodes"], subject["peer"], subject["rail"]) == (
            "PATH_MTU_HOLE", "fail", "pair", ["spark02"], "spark03", "a")


def test_a_firewall_on_ephemeral_ports_names_the_node_and_the_direction(ready: Lab) -> None:
    with fault(ready, "spark03", "firewall"):
        done = check(ready, "bootstrap_tcp")
        assert done.rc == 1, done.all
        ((code, status, subject),) = worse(done)
        assert (code, status, subject["kind"], subject["nodes"]) == ("BOOTSTRAP_BLOCKED", "fail", "node", ["spark03"])
        assert "to spark03 from spark01, spark02" in done.out


def test_a_blocked_direction_is_named(ready: Lab) -> None:
    """A route that says no, in place of a firewall: what spark02 sends to spark01 has no way."""
    address = ready.exec("spark01", ["sh", "-c", "ip -4 -o addr show enp1s0f0np0"]).out.split()[3].partition("/")[0]
    assert ready.exec("spark02", ["ip", "route", "add", "unreachable", f"{address}/32"]).ok
    try:
        done = check(ready, "bootstrap_tcp")
        assert done.rc == 1, done.all
        ((code, status, subject),) = worse(done)
        assert (code, status, subject["kind"]) == ("BOOTSTRAP_BLOCKED", "fail", "pair")
        assert {subject["nodes"][0], subject["peer"]} == {"spark01", "spark02"}
    finally:
        assert ready.exec("spark02", ["ip", "route", "del", "unreachable", f"{address}/32"]).ok
    assert check(ready, "bootstrap_tcp").rc == 0
