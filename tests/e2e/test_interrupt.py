"""Ctrl-C at any time: exit 130, a report of what is known, and nothing of ours left on a node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.talk import interrupt, started
from tests.lab.fleet import built

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("safe-int", 2) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Iterator[Lab]:
    shared.clear()
    yield shared
    for node in shared.nodes:
        shared.forward(node, "ok")


def logins(lab: Lab, node: str) -> int:
    return lab.node_layout(node).sshd_log.read_bytes().count(b"Accepted publickey")


def of(ended: fleet.Ended, node: str) -> set[tuple[str, str]]:
    return {(f.code, f.status) for f in fleet.findings(ended) if f.node == node}


def nothing_runs(lab: Lab) -> None:
    """Every process that the run has started ends by itself, at its own limit on the node."""
    for node in lab.nodes:
        outside.until(lambda node=node: outside.processes(lab, node) == "", 180)  # type: ignore[misc]
        assert outside.left_over(lab, node) == ""


def read_and_idle(lab: Lab, node: str, execs: int) -> bool:
    """Whether the node's one remote exec has been started and has ended."""
    mine = [line for line in outside.processes(lab, node).splitlines() if "sshd" not in line]
    return lab.exec_count(node) > execs and not mine


def test_while_connecting(lab: Lab, tmp_path: Path) -> None:
    lab.forward("spark02", "hang-in-login")
    before = logins(lab, "spark01")
    with started(tmp_path, "plan", "-i", fleet.spec(lab), "-o", "json") as job:
        outside.until(lambda: logins(lab, "spark01") > before)
        done = interrupt(job, tmp_path)
    assert done.rc == 130, done.all
    assert ("INTERRUPTED", "unknown") in of(done, "spark02"), outside.short(done)
    for node in lab.nodes:
        assert {status for _, status in of(done, node)} == {"unknown"}
    assert "Traceback" not in done.err
    assert "KeyboardInterrupt" not in done.err
    nothing_runs(lab)


def test_while_reading(lab: Lab, tmp_path: Path) -> None:
    """spark01 has answered: its verdict stands. spark02 has a tool that hangs."""
    outside.fault(lab, "spark02", "tool-hangs")
    execs = lab.exec_count("spark01")
    with started(tmp_path, "plan", "-i", fleet.spec(lab), "-o", "json") as job:
        outside.until(lambda: "mlnx_qos" in outside.processes(lab, "spark02"))
        outside.until(lambda: read_and_idle(lab, "spark01", execs))
        time.sleep(1)  # from the node's last byte to our having read it
        done = interrupt(job, tmp_path)
    assert done.rc == 130, done.all
    assert ("LINK_MTU_RUNNING", "fail") in of(done, "spark01"), outside.short(done)
    assert ("QOS_TRUST", "fail") in of(done, "spark01")
    assert ("INTERRUPTED", "unknown") in of(done, "spark02"), outside.short(done)
    assert not [f for f in of(done, "spark02") if f[1] in ("pass", "fail", "warn")]
    assert "Traceback" not in done.err
    assert "KeyboardInterrupt" not in done.err
    nothing_runs(lab)


def test_while_applying(lab: Lab, tmp_path: Path) -> None:
    """A step hangs on spark01; spark02 is to be next. The lock is free again, and the next run sets all that is left."""
    for node in lab.nodes:
        with lab.edit_state(node) as state:
            state.tools["netplan"] = "hangs"
    before = outside.calm(lab, "spark02")
    with started(tmp_path, "apply", "-i", fleet.spec(lab), "-y", "--allow", "flap", "-o", "json") as job:
        outside.until(lambda: "netplan generate" in outside.processes(lab, "spark01"))
        assert lab.read_file("spark01", "/run/fabrictool.lock/run") is not None
        done = interrupt(job, tmp_path)
    assert done.rc == 130, done.all
    assert ("INTERRUPTED", "unknown") in of(done, "spark01"), outside.short(done)
    assert {status for _, status in of(done, "spark01")} == {"unknown"}  # what is true there now is not known
    assert ("LINK_MTU_RUNNING", "fail") in of(done, "spark02"), outside.short(done)
    assert outside.calm(lab, "spark02") == before
    assert [c for c in lab.commands("spark02") if c["changed"]] == []
    assert "Traceback" not in done.err
    assert "KeyboardInterrupt" not in done.err
    nothing_runs(lab)

    for node in lab.nodes:
        with lab.edit_state(node) as state:
            state.tools.clear()
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert outside.fabric_set(lab, "spark01")
    assert outside.fabric_set(lab, "spark02")


def test_a_killed_workstation_leaves_nothing_running(lab: Lab, tmp_path: Path) -> None:
    """kill -9 of the run: the time limits are on the node, so what hangs there ends all the same."""
    outside.fault(lab, "spark01", "tool-hangs")
    with started(tmp_path, "plan", "-i", fleet.spec(lab)) as job:
        outside.until(lambda: "mlnx_qos" in outside.processes(lab, "spark01"))
        job.kill()
        assert job.wait() == -9
    nothing_runs(lab)
