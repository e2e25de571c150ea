"""The read-back is the verdict, whatever exit status a write had; and nothing is ever half-written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.outside import MGMT, WANT_PFC, A, B
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
FILES = ("/etc/hosts", "/etc/nccl.conf", "/etc/fabrictool/nccl.env", "/etc/fabrictool/qos.sh")


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("safe-read", 2) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.clear()
    return shared


def failing(ended: fleet.Ended, node: str) -> set[str]:
    return {f.code for f in fleet.findings(ended) if f.node == node and f.status == "fail"}


def files(lab: Lab, node: str) -> dict[str, str | None]:
    return {path: lab.read_file(node, path) for path in FILES}


def test_a_liar_fails_and_a_traceback_that_applied_passes(lab: Lab) -> None:
    """spark01's tool sets all and ends in tracebacks; spark02's says success and sets nothing. The liar stops the flaps."""
    outside.fault(lab, "spark01", "tool-applied-traceback")
    outside.fault(lab, "spark02", "tool-lies")
    registers = lab.state("spark02").functions
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert outside.fabric_set(lab, "spark01")
    assert any(c["rc"] != 0 and c["changed"] for c in lab.commands("spark01"))
    assert failing(done, "spark01") == set(), outside.short(done)
    assert {"QOS_TRUST", "APPLY_FAILED"} <= failing(done, "spark02"), outside.short(done)
    said_yes = [c for c in lab.commands("spark02") if c["tool"] == "mlnx_qos" and "--trust" in str(c["argv"]) and c["rc"] == 0]
    assert said_yes
    assert not any(c["changed"] for c in said_yes)
    assert lab.state("spark02").functions[A].trust == registers[A].trust == "pcp"

    again = fleet.tool("drift", "-i", fleet.spec(lab), "-o", "json")
    assert failing(again, "spark01") == set(), outside.short(again)
    outside.fault(lab, "spark02", "tool-applied-traceback")
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert outside.fabric_set(lab, "spark02")


def test_half_a_setting_is_left_over(lab: Lab) -> None:
    outside.fault(lab, "spark01", "tool-half")
    outside.fault(lab, "spark02", "tool-refuses")
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert "APPLY_FAILED" in failing(done, "spark01"), outside.short(done)
    state = lab.state("spark01").functions
    wrong = {"QOS_PFC_MASK" if state[A].pfc != WANT_PFC else "", "QOS_TRUST" if state[A].trust != "dscp" else ""} - {""}
    assert wrong  # it is half
    assert wrong <= failing(done, "spark01"), outside.short(done)
    # The other node was to flap after it: not touched.
    assert [c for c in lab.commands("spark02") if c["changed"]] == []
    assert ("APPLY_STOPPED", "unknown") in {(f.code, f.status) for f in fleet.findings(done) if f.node == "spark02"}


def test_a_disk_that_takes_no_file(lab: Lab) -> None:
    """Full on spark01, /etc read-only on spark02: told as what it is, and every file holds its old content or all of its new one."""
    before = {n: (files(lab, n), lab.exec(n, ["find", "/etc"]).out) for n in lab.nodes}
    outside.fault(lab, "spark01", "disk-full")
    outside.fault(lab, "spark02", "etc-readonly")
    done = fleet.tool("apply", "-i", fleet.spec(lab), "-y", "-o", "json")
    assert done.rc == 1, outside.short(done)
    assert "No space left on device" in done.err
    assert "Read-only file system" in done.err
    for node in lab.nodes:
        old, listing = before[node]
        assert files(lab, node) == old
        assert "ENV_FILE_DRIFT" in failing(done, node), outside.short(done)
        assert "NAME_LOOPBACK" in failing(done, node)
        assert outside.left_over(lab, node) == ""
        now = lab.exec(node, ["find", "/etc"]).out
        assert [line for line in now.splitlines() if line not in listing.splitlines()] in ([], ["/etc/fabrictool"])
        assert now.count("\n") >= listing.count("\n")
    assert "Traceback" not in done.all

    lab.disk_full("spark01", False)
    assert lab.exec("spark02", ["umount", "/etc"]).ok
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)
    assert outside.calm_steps_done(lab, "spark01")
    assert outside.calm_steps_done(lab, "spark02")


def test_a_whole_apply_seen_from_outside(lab: Lab) -> None:
    """Backups, modes, and everything that must stay as it was."""
    node = "spark01"
    lab.write_file(node, "/etc/hosts", (lab.read_file(node, "/etc/hosts") or "") + "# kept by hand\n", 0o664)
    old_hosts, before = lab.read_file(node, "/etc/hosts"), {n: outside.wires(lab, n) for n in lab.nodes}
    listing = set(lab.exec(node, ["find", "/etc", "-type", "f"]).out.split())
    units = lab.exec(node, ["systemctl", "is-active", "ssh", "NetworkManager", "systemd-networkd"]).out
    done = fleet.apply(lab, "-o", "json")
    assert done.rc == 0, outside.short(done)

    keep = f"/var/lib/fabrictool/{fleet.report(done)['run_id']}"
    assert lab.read_file(node, f"{keep}/etc/hosts") == old_hosts
    assert "# kept by hand" in (lab.read_file(node, "/etc/hosts") or "")
    modes = {path: lab.exec(node, ["stat", "-c", "%a %U", path]).out.strip() for path in (f"{keep}/etc/hosts", "/etc/hosts", keep)}
    assert modes[f"{keep}/etc/hosts"] == "664 root"
    assert modes["/etc/hosts"] == "664 root"  # what it was
    assert modes[keep] == "700 root"
    new = set(lab.exec(node, ["find", "/etc", "-type", "f"]).out.split()) - listing
    assert {"/etc/nccl.conf", f"/etc/netplan/90-fabrictool-{A}.yaml"} <= new
    for path in new:  # each has a mark of its own that says that it was not there
        assert lab.read_file(node, f"{keep}{path}.absent") == "", path
        parent = str(PurePosixPath(path).parent)
        assert not [f for f in lab.exec(node, ["ls", "-A", parent]).out.split() if f.endswith(("~", ".bak", ".orig", ".absent"))]
    for path in new:
        if "/netplan/" in path:
            assert lab.exec(node, ["stat", "-c", "%a", path]).out == "600\n"

    for name in lab.nodes:
        after = outside.wires(lab, name)
        assert after[MGMT] == before[name][MGMT]
        assert {i: w.addresses for i, w in after.items()} == {i: w.addresses for i, w in before[name].items()}
        assert all(after[i].carrier_changes > before[name][i].carrier_changes for i in (A, B))  # the counter does count
        assert outside.forbidden(lab, name) == []
        assert not [c for c in lab.commands(name) if c["changed"] and MGMT in str(c["argv"])]
        assert outside.left_over(lab, name) == ""
    assert lab.exec(node, ["systemctl", "is-active", "ssh", "NetworkManager", "systemd-networkd"]).out == units
