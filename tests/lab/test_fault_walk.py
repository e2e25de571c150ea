"""The fault table walked through the real command line, over real SSH, on a configured fleet: each fault x plan, drift, check, apply.

One fleet per worker is configured once and kept; each round restores it, breaks every node in another way (random nodes, printed
seed), and listens to each command about each node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.lab.faults import FAULTS, Outcome
from fabrictool.lab.handle import Lab
from tests.e2e import fleet
from tests.lab.fleet import built
from tests.lab.pairs import WRITING, chosen, without_rule
from tests.lab.walk import SEED, Case, cases, rounds, walk

pytestmark = pytest.mark.lab
PROFILE = "spark"
NODES = ("spark01", "spark02", "spark03", "spark04")
EVERY = tuple(cases(PROFILE))
PAIRS = tuple(chosen(PROFILE, SEED, many=16, hidden=4))
# Faults that show only when something else is to be written to the node's disk or links.
WRITTEN = (
    Case("disk-full", ("hosts-loopback", "disk-full"), {
        "plan": Outcome(2, ("NAME_LOOPBACK",)), "apply": Outcome(1, ("NAME_LOOPBACK", "APPLY_FAILED"))}),
    Case("etc-readonly", ("env-edited", "etc-readonly"), {
        "plan": Outcome(2, ("ENV_FILE_DRIFT",)), "apply": Outcome(1, ("ENV_FILE_DRIFT", "APPLY_FAILED"))}),
    Case("no-python", ("env-edited", "mtu-1500", "no-python"), {
        "plan": Outcome(2, ("ENV_FILE_DRIFT", "LINK_MTU_RUNNING")), "apply": Outcome(0)}),
    Case("bashrc-noisy", ("unit-removed", "qos-wiped", "bashrc-noisy"), {
        "plan": Outcome(2, ("QOS_NOT_PERSISTED", "QOS_TRUST")), "apply": Outcome(0)}),
    # Without root nobody knows of queue pairs, which counts as in use: the MTU is not set, and a difference without steps is 1.
    Case("sudo-password", ("mtu-1500", "sudo-password"), {
        c: Outcome(1, ("NEEDS_ROOT", "LINK_MTU_RUNNING", "FABRIC_IN_USE")) for c in ("plan", "drift", "check", "apply")}),
)
Dealt = list[tuple[Case, str]]


def dealt(every: tuple[Case, ...]) -> pytest.MarkDecorator:
    made = rounds(every, NODES, SEED)
    return pytest.mark.parametrize("case", made, ids=["_".join(c.name for c, _ in one) for one in made])


@pytest.fixture(scope="module")
def kept() -> Iterator[Lab]:
    """Four nodes, configured by apply, kept like that."""
    with built("walk", len(NODES), PROFILE) as lab:
        assert lab.nodes == NODES
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        lab.keep()
        yield lab


def heard(kept: Lab, case: Dealt, folder: Path) -> None:
    print(f"seed {SEED}: {', '.join(f'{c.name} on {n}' for c, n in case)}")
    wrong = walk(kept, case, folder)
    assert not wrong, "\n\n".join(wrong)


@dealt(EVERY)
def test_every_command_says_what_the_row_says(kept: Lab, case: Dealt, tmp_path: Path) -> None:
    heard(kept, case, tmp_path)


@dealt(PAIRS)
def test_two_faults_at_once_end_with_the_worse_and_tell_both(kept: Lab, case: Dealt, tmp_path: Path) -> None:
    heard(kept, case, tmp_path)


@dealt(WRITTEN)
def test_faults_that_only_a_write_shows(kept: Lab, case: Dealt, tmp_path: Path) -> None:
    heard(kept, case, tmp_path)


def test_the_kept_fleet_is_what_the_walk_says_it_is(kept: Lab, tmp_path: Path) -> None:
    """The twin of every row: the same walk, with nothing broken."""
    calm = Case("nothing", (), {c: Outcome(0) for c in ("plan", "drift", "check", "apply")})
    assert walk(kept, [(calm, "spark02")], tmp_path) == []


def test_no_row_is_left_out() -> None:
    dealt_out = [c for one in rounds(EVERY, NODES, SEED) for c, _ in one]
    assert {c.name for c in dealt_out} >= {f.name for f in FAULTS}
    assert sorted(c.name for c in dealt_out) == sorted(c.name for c in EVERY)
    assert {c.name.partition("+")[0] for c in EVERY if "+" in c.name} == {f.name for f in FAULTS if f.wiped}
    assert without_rule() == set()
    assert {c.name for c in WRITTEN} | {f.name for f in FAULTS if f.wiped} >= WRITING - {"needs-root"}
