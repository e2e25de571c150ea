"""Plain `pyinfra INVENTORY deploys/site.py` and `fabrictool apply` reach the same state, compared from outside of both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet
from tests.e2e.dump import ctimes, dumps, only_in
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
SITE = fleet.DEPLOYS / "site.py"
A, B = "enp1s0f0np0", "enP2p1s0f0np0"
# What each deploy file may change, beside the backups under /var/lib and what systemctl (asked by any reading) holds in /run.
MAY_TOUCH = {
    "names": r"file /etc/hosts ",
    "env": r"file /etc/nccl\.conf |folder /etc/fabrictool |file /etc/fabrictool/nccl\.env ",
    "qos": r"register |file /etc/fabrictool/qos\.sh |\w+ /etc/systemd/system/|file /etc/udev/rules\.d/",
    "link": r"interface |file /etc/netplan/|file /run/NetworkManager/",
}
BESIDE = r"\w+ /var/lib/fabrictool|\w+ /run/lab-systemd"


@pytest.fixture(scope="module")
def labs() -> Iterator[tuple[Lab, Lab]]:
    """One for plain pyinfra, one for apply."""
    with built("pyinfra", 2) as one, built("apply", 2) as two:
        yield one, two


@pytest.fixture
def fresh(labs: tuple[Lab, Lab]) -> tuple[Lab, Lab]:
    for lab in labs:
        lab.clear()
    return labs


def both(one: Lab, two: Lab) -> tuple[fleet.Ended, fleet.Ended]:
    """Plain pyinfra on the one, apply on the other, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        plain, ours = pool.submit(fleet.pyinfra, one, SITE, "-y"), pool.submit(fleet.apply, two)
        return plain.result(), ours.result()


def test_both_ways_reach_the_same_state_and_stay_there(fresh: tuple[Lab, Lab]) -> None:
    one, two = fresh
    factory = dumps(one)
    assert factory == dumps(two)

    dry = fleet.pyinfra(one, SITE, "--dry")
    assert dry.rc == 0, dry.all
    assert dumps(one) == factory
    assert [fleet.writes(one, n) for n in one.nodes] == [[], []]
    assert not one.exec("spark01", ["test", "-e", "/run/fabrictool.lock"]).ok

    plain, ours = both(one, two)
    assert plain.rc == 0, plain.all
    assert ours.rc == 0, ours.all
    reached = dumps(one)
    for node in one.nodes:
        assert only_in(reached[node], dumps(two)[node]) == only_in(dumps(two)[node], reached[node]) == ()
        assert reached[node] != factory[node]
        for line in (f"register {A}.pfc = [0, 0, 0, 1, 0, 0, 0, 0]", f"register {B}.trust = \"dscp\"", f"register {A}.flaps = 1"):
            assert line in reached[node]
        # The order differs (calm nodes side by side), not what was written.
        assert sorted(map(str, fleet.writes(one, node))) == sorted(map(str, fleet.writes(two, node)))
    assert fleet.tool("drift", "-i", fleet.spec(one)).rc == 0

    before = [ctimes(one, n) for n in one.nodes]
    written = [fleet.writes(one, n) for n in one.nodes]
    assert all(written)
    again = fleet.pyinfra(one, SITE, "-y")
    assert again.rc == 0, again.all
    assert "Success" not in again.all.partition("Beginning operation run")[2].partition("Results:")[0]
    assert dumps(one) == reached
    assert [ctimes(one, n) for n in one.nodes] == before
    assert [fleet.writes(one, n) for n in one.nodes] == written


@pytest.mark.parametrize("fault", ["tool-hangs", "tool-missing"])
def test_a_node_whose_qos_cannot_be_read(fresh: tuple[Lab, Lab], healthy: dict[str, tuple[str, ...]], fault: str) -> None:
    """No QoS is written there, all else is; the other node is set whole; the exit status tells."""
    one, two = fresh
    for lab in fresh:
        assert fleet.tool("lab", "fault", "spark01", fault, "--name", lab.layout.name).rc == 0
    plain, ours = both(one, two)
    assert plain.rc == 1, plain.all
    assert ours.rc == 1, ours.all
    for said in (plain, ours):
        assert "QOS_TRUST" in said.all
        assert ("TOOL_TIMEOUT" if fault == "tool-hangs" else "TOOL_MISSING") in said.all
    assert "APPLY_" not in ours.out  # no write went wrong, and nobody was left out
    left, right = dumps(one), dumps(two)
    assert only_in(left["spark01"], right["spark01"]) == only_in(right["spark01"], left["spark01"]) == ()
    assert left["spark02"] == right["spark02"] == healthy["spark02"]
    assert f"register {A}.pfc = [0, 0, 0, 0, 0, 0, 0, 0]" in left["spark01"]
    assert [w for w in fleet.writes(one, "spark01") if w[0] == "mlnx_qos"] == []


def test_each_deploy_file_works_by_itself_and_in_any_order(fresh: tuple[Lab, Lab], healthy: dict[str, tuple[str, ...]]) -> None:
    lab = fresh[0]
    for name, pattern in MAY_TOUCH.items():  # the other way round than site.py
        before = dumps(lab)
        done = fleet.pyinfra(lab, fleet.DEPLOYS / f"{name}.py", "-y")
        assert done.rc == 0, done.all
        after = dumps(lab)
        for node in lab.nodes:
            changed = [*only_in(after[node], before[node]), *only_in(before[node], after[node])]
            mine = [line for line in changed if re.match(pattern, line)]
            assert mine
            assert [line for line in changed if line not in mine and not re.match(BESIDE, line)] == []
    assert {n: set(lines) for n, lines in dumps(lab).items()} == {n: set(lines) for n, lines in healthy.items()}


@pytest.fixture(scope="module")
def healthy(labs: tuple[Lab, Lab]) -> dict[str, tuple[str, ...]]:
    """The state of two nodes of which none misbehaves."""
    labs[1].clear()
    done = fleet.apply(labs[1])
    assert done.rc == 0, done.all
    return dumps(labs[1])


def test_a_node_whose_tool_lies(fresh: tuple[Lab, Lab], healthy: dict[str, tuple[str, ...]]) -> None:
    """It fails by the read-back; nothing else is tried on it, and no further link is flapped anywhere."""
    one, two = fresh
    for lab in fresh:
        assert fleet.tool("lab", "fault", "spark02", "tool-lies", "--name", lab.layout.name).rc == 0
    plain, ours = both(one, two)
    assert plain.rc == 1, plain.all
    assert ours.rc == 1, ours.all
    assert "QOS_TRUST" in plain.all
    assert "reads back" in plain.all
    left, right = dumps(one), dumps(two)
    assert only_in(left["spark02"], right["spark02"]) == only_in(right["spark02"], left["spark02"]) == ()
    assert f"register {A}.trust = \"pcp\"" in left["spark02"]
    assert right["spark01"] == healthy["spark01"]  # apply had finished with it before
    # Plain pyinfra goes operation by operation: when PFC's turn came, something was wrong somewhere.
    lacking = {line.partition(" = ")[0].partition(".")[2] for line in only_in(healthy["spark01"], left["spark01"])}
    assert lacking == {"pfc", "flaps", "buffer_size", "prio_buffer"}
    assert "PFC" in plain.all
