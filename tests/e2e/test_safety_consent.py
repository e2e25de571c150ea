"""apply does what it was allowed to do, and only what it showed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.dump import dump, dumps
from tests.e2e.outside import A
from tests.e2e.talk import FLAP, STEPS, talk
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
LOCK = "/run/fabrictool.lock"


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("safe-consent", 2) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.clear()
    return shared


def failing(ended: fleet.Ended, node: str) -> set[str]:
    return {f.code for f in fleet.findings(ended) if f.node == node and f.status == "fail"}


def test_yes_alone_flaps_nothing_and_a_locked_node_is_not_written_to(lab: Lab) -> None:
    """spark01 is held by another admin's run, spark02 is free."""
    for name, text in (("run", "20260101T000000Z-00000000\n"), ("who", "eve@desk\n")):
        lab.write_file("spark01", f"{LOCK}/{name}", text)
    before, calm = dump(lab, "spark01"), outside.calm(lab, "spark02")
    done = fleet.tool("apply", "-i", fleet.spec(lab), "-y", "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert dump(lab, "spark01") == before
    assert [c for c in lab.commands("spark01") if c["changed"]] == []
    locked = [f for r in fleet.report(done)["results"] for f in r["findings"] if f["code"] == "LOCKED"]
    assert [f["subject"]["nodes"] for f in locked] == [["spark01"]], outside.short(done)
    assert "eve@desk" in locked[0]["why"]

    assert outside.calm(lab, "spark02") == calm
    assert outside.calm_steps_done(lab, "spark02")
    assert failing(done, "spark02") == {"LINK_MTU_RUNNING", "QOS_PFC_MASK"}, outside.short(done)
    assert "--allow flap" in done.err
    assert outside.left_over(lab, "spark02") == ""

    lab.remove_file("spark01", LOCK)
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert outside.fabric_set(lab, "spark01")
    assert outside.fabric_set(lab, "spark02")
    assert all(n > calm.flaps[name] for name, n in outside.flaps(lab, "spark02").items())


def test_no_changes_nothing(lab: Lab) -> None:
    """Said at the prompt, by Ctrl-C there, or by nobody being there to ask."""
    before = dumps(lab)
    with talk("apply", "-i", fleet.spec(lab)) as line:
        line.await_text(STEPS)
        line.type("n\n")
        done = line.end()
    assert done.rc == 2, done.all
    assert "nothing was changed" in done.out
    with talk("apply", "-i", fleet.spec(lab)) as line:
        line.await_text(STEPS)
        done = line.ctrl_c()
    assert done.rc == 130, done.all
    nobody = fleet.tool("apply", "-i", fleet.spec(lab))
    assert nobody.rc == 64, nobody.all
    assert "-y" in nobody.err
    assert dumps(lab) == before
    assert [fleet.writes(lab, n) for n in lab.nodes] == [[], []]


def test_no_to_the_flap_does_the_rest(lab: Lab) -> None:
    before = {n: outside.calm(lab, n) for n in lab.nodes}
    with talk("apply", "-i", fleet.spec(lab)) as line:
        line.await_text(STEPS)
        line.type("y\n")
        line.await_text(FLAP)
        line.type("n\n")
        done = line.end()
    assert done.rc == 1, done.all
    for node in lab.nodes:
        assert outside.calm(lab, node) == before[node]
        assert outside.calm_steps_done(lab, node)
    left = done.out.rpartition(FLAP)[2]
    assert "LINK_MTU_RUNNING" in left
    assert "QOS_PFC_MASK" in left


def test_only_what_was_shown_is_done(lab: Lab) -> None:
    """While the admin reads the plan, somebody edits a file, another setting goes wrong, and a job starts."""
    with talk("apply", "-i", fleet.spec(lab)) as line:
        line.await_text(STEPS)
        hosts = (lab.read_file("spark01", "/etc/hosts") or "") + "10.9.9.9 somebody\n"
        lab.write_file("spark01", "/etc/hosts", hosts)
        outside.fault(lab, "spark01", "shared-tc")  # a change of its own, not among the steps shown
        outside.fault(lab, "spark02", "qps-up")
        before = outside.calm(lab, "spark02")
        line.type("y\n")
        line.await_text(FLAP)
        line.type("y\n")
        done = line.end()
    assert done.rc == 1, done.all
    left = done.out.rpartition(FLAP)[2]
    assert lab.read_file("spark01", "/etc/hosts") == hosts
    assert "NAME_LOOPBACK" in left
    state = lab.state("spark01")
    assert state.functions[A].prio_tc == [0] * 8
    assert "QOS_SHARED_TC" in left
    assert outside.fabric_set(lab, "spark01")  # shown, and still the same: done
    assert state.functions[A].trust == "dscp"
    assert outside.calm(lab, "spark02") == before
    assert outside.calm_steps_done(lab, "spark02")
    assert "FABRIC_IN_USE" in left
    for node in lab.nodes:
        assert outside.left_over(lab, node) == ""


def test_a_file_changed_in_the_last_moment_is_not_overwritten(lab: Lab) -> None:
    """After the last reading and before the write: held by the write itself, which compares what it replaces."""
    watch = """f=/etc/hosts; while :; do
  if ls /etc/netplan/90-fabrictool-* >/dev/null 2>&1; then echo '10.9.9.9 somebody' >>$f; exit; fi
  sleep 0.05
done"""
    lab.exec("spark01", ["sh", "-c", f"({watch}) </dev/null >/dev/null 2>&1 &"])
    done = fleet.tool("apply", "-i", fleet.spec(lab), "-y", "-o", "json")
    assert done.rc == 1, outside.short(done)
    hosts = lab.read_file("spark01", "/etc/hosts") or ""
    assert hosts.endswith("10.9.9.9 somebody\n")
    assert "127.0.1.1 spark01" in hosts
    assert "NAME_LOOPBACK" in failing(done, "spark01"), outside.short(done)
    assert "NAME_LOOPBACK" not in failing(done, "spark02")
    assert outside.calm_steps_done(lab, "spark02")
