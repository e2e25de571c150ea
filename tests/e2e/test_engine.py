"""The engine on a fleet where something is wrong somewhere: locks, passwords, nodes out of reach. Each with its twin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet
from tests.e2e.dump import ctimes, dump
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
LOCK = "/run/fabrictool.lock"
A = "enp1s0f0np0"
PROMPT = "sudo password"


@pytest.fixture(scope="module")
def factory() -> Iterator[Lab]:
    """Four nodes as delivered; no test changes them, and each puts right what it breaks."""
    with built("broken", 4) as lab:
        yield lab


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Four configured nodes; each test leaves them configured."""
    with built("ready", 4) as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        yield lab


def fault(lab: Lab, node: str, name: str) -> None:
    done = fleet.tool("lab", "fault", node, name, "--name", lab.layout.name)
    assert done.rc == 0, done.all


def hold_lock(lab: Lab, node: str, age: str) -> None:
    """As another admin's run would."""
    text = f"mkdir {LOCK} && cd {LOCK} && echo 20260101T000000Z-0badcafe >run && echo eve@elsewhere >who && touch -d '{age}' ."
    assert lab.exec(node, ["sh", "-c", text]).ok


def free_lock(lab: Lab, node: str) -> None:
    assert lab.exec(node, ["rm", "-r", LOCK]).ok


def locked(lab: Lab, node: str) -> bool:
    return lab.exec(node, ["test", "-e", LOCK]).ok


def test_nodes_that_cannot_be_reached_or_are_slow_hide_nothing(factory: Lab) -> None:
    before = fleet.tool("plan", "-i", fleet.spec(factory), "-o", "json", "-v")
    assert before.rc == 2, before.all
    assert not {f for f in fleet.findings(before) if f.check == "reach"}
    for node, name in (("spark01", "port-closed"), ("spark02", "login-hangs"), ("spark03", "bashrc-slow")):
        fault(factory, node, name)
    done = fleet.tool("plan", "-i", fleet.spec(factory), "-o", "json", "-v")
    assert done.rc == 3, done.all
    found = fleet.findings(done)
    assert {(f.node, f.code, f.status) for f in found if f.check == "reach"} == {
        ("spark01", "UNREACHABLE", "unknown"), ("spark02", "UNREACHABLE", "unknown")}
    assert fleet.report(done)["nodes"] == list(factory.nodes)
    for node in ("spark03", "spark04"):
        # names compares with the peers' own addresses, which are not known now: it must say so, and only it
        mine, then = ({f for f in every if f.node == node and f.check != "names"} for every in (found, fleet.findings(before)))
        assert mine == then
        assert {f.status for f in mine} >= {"pass", "fail"}
        assert any(f.check == "names" and f.node == node and f.status == "unknown" for f in found)
    for node in ("spark01", "spark02"):
        assert {f.status for f in found if f.node == node} == {"unknown"}


def test_a_second_apply_is_one_exec_per_node_and_no_operation(ready: Lab) -> None:
    execs = {n: ready.exec_count(n) for n in ready.nodes}
    state = {n: (dump(ready, n), ctimes(ready, n), fleet.writes(ready, n)) for n in ready.nodes}
    done = fleet.apply(ready)
    assert done.rc == 0, done.all
    assert {n: ready.exec_count(n) - execs[n] for n in ready.nodes} == dict.fromkeys(ready.nodes, 1)
    assert {n: (dump(ready, n), ctimes(ready, n), fleet.writes(ready, n)) for n in ready.nodes} == state
    assert [line.partition(":")[0] for line in done.err.splitlines() if " ok" in line] == ["connect", "read"]


def test_what_y_alone_leaves_out_is_left_and_is_no_failed_write(ready: Lab) -> None:
    for name in ("env-edited", "qos-wiped"):
        fault(ready, "spark02", name)
    done = fleet.tool("apply", "-i", fleet.spec(ready), "-y", "-o", "json")
    assert done.rc == 1, done.all
    assert fleet.bad(done) == {("spark02", "QOS_PFC_MASK")}
    fn = ready.state("spark02").functions[A]
    assert (fn.trust, fn.pfc[3]) == ("dscp", 0)
    assert "NCCL_IB_TC=104" in (ready.read_file("spark02", "/etc/nccl.conf") or "")
    done = fleet.apply(ready, "-o", "json")
    assert done.rc == 0, done.all
    assert ready.state("spark02").functions[A].pfc[3] == 1


def test_a_node_locked_by_another_run_is_left_alone_and_the_others_are_set(ready: Lab) -> None:
    for node in ("spark01", "spark02"):
        fault(ready, node, "env-edited")  # calm: both at the same time
    for node in ("spark03", "spark04"):
        fault(ready, node, "qos-wiped")  # flaps: one after the other
    for node in ("spark01", "spark03"):
        hold_lock(ready, node, "59 minutes ago")
    before = {n: (ctimes(ready, n), dump(ready, n)) for n in ("spark01", "spark03")}
    done = fleet.apply(ready, "-o", "json")
    assert done.rc == 1, done.all
    assert {n for n, code in fleet.bad(done) if code == "LOCKED"} == {"spark01", "spark03"}
    assert {n for n, _ in fleet.bad(done)} == {"spark01", "spark03"}
    assert "eve@elsewhere" in done.out
    assert {n: (ctimes(ready, n), dump(ready, n)) for n in before} == before
    assert [locked(ready, n) for n in ready.nodes] == [True, False, True, False]
    assert "NCCL_IB_TC=104" in (ready.read_file("spark02", "/etc/nccl.conf") or "")
    assert ready.state("spark04").functions[A].pfc[3] == 1

    # The twin: the lock is gone on one, and so old on the other that no run can still hold it.
    free_lock(ready, "spark01")
    free_lock(ready, "spark03")
    hold_lock(ready, "spark03", "2 hours ago")
    done = fleet.apply(ready, "-o", "json")
    assert done.rc == 0, done.all
    assert fleet.bad(done) == set()
    assert not any(locked(ready, n) for n in ready.nodes)
    assert ready.state("spark03").functions[A].pfc[3] == 1


def test_sudo_with_a_password(ready: Lab) -> None:
    """What needs root is unknown without it; -K gives it, to the nodes that ask and to those that do not."""
    password = (ready.layout.keys / "password").read_text().strip()
    words = (*fleet.CLI, "plan", "-i", fleet.spec(ready), "-K")
    free = fleet.at_terminal(words, password, PROMPT)
    assert free.rc == 0, free.all
    fault(ready, "spark02", "sudo-password")
    without = fleet.tool("plan", "-i", fleet.spec(ready), "-o", "json")
    assert without.rc == 3, without.all
    assert {f.status for f in fleet.findings(without)} == {"unknown"}
    assert {n for n, code in fleet.bad(without)} == {"spark02"}
    assert ("spark02", "NEEDS_ROOT") in fleet.bad(without)
    wrong = fleet.at_terminal(words, "not the password", PROMPT)
    assert wrong.rc == 3, wrong.all
    assert "Traceback" not in wrong.out
    fault(ready, "spark02", "env-edited")
    right = fleet.at_terminal((*fleet.CLI, "apply", "-i", fleet.spec(ready), "-K", "-y"), password, PROMPT)
    assert right.rc == 0, right.all
    assert "NCCL_IB_TC=104" in (ready.read_file("spark02", "/etc/nccl.conf") or "")
    for ended in (free, wrong, right):
        assert password not in ended.out
    search = "find /tmp /var/tmp /home /root /run -type f -exec grep -lF -e \"$1\" {} + || :"
    assert ready.exec("spark02", ["sh", "-c", search, "sh", password]).out == ""
    ready.write_file("spark02", "/etc/sudoers.d/90-admin", "admin ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440)
