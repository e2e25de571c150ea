"""Recordings in bundles: what a probe gave comes back whole, beside the snapshots; a hostile one is refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictool.model import Reason, Unreadable
from fabrictool.prove.facts import AllReduce, all_reduce
from fabrictool.snapshot import Captured, Recording, Snapshot, bundle
from fabrictool.snapshot.bundle import BundleError, Meta

META = Meta("0.1.0", "2026-01-01T00:00:00+00:00", "abc123")
NODE = Snapshot("n1", {"rank[0]": Captured(3, "caf\udce9\n", "warn\n", 10), "launcher": Captured(0, "x\n")}, taken="T")
FACTS = AllReduce("direct", "torch", 268435456, 5, 20, 1, ("n1", "n2", "n1"), ("run1", "run2"), added={"NCCL_DEBUG": "INFO"})
MADE = Recording("allreduce", "20260101T000000Z-00000000", "S", "E", FACTS.to_facts(),
                 {"run1.before": {"n1": NODE}, "run1": {"n2": Snapshot("n2", error=Unreadable(Reason.TIMEOUT, "gone")), "n1": NODE}})


def saved(path: Path, *recordings: Recording) -> Path:
    bundle.write(path, [Snapshot("n1")], META, recordings)
    return path


def test_round_trip(tmp_path: Path) -> None:
    lost = Recording("path_mtu", error=Unreadable(Reason.BLOCKED, "no pair"))
    got = bundle.read(saved(tmp_path / "b.tar.gz", MADE, lost))
    assert got.recordings == {"allreduce": MADE, "path_mtu": lost}
    assert list(got.recordings["allreduce"].takes) == ["run1.before", "run1"]
    assert all_reduce(got.recordings["allreduce"]) == FACTS
    assert bundle.read(saved(tmp_path / "none.tar.gz")).recordings == {}


def test_secrets_go(tmp_path: Path) -> None:
    made = replace(MADE, facts={"command": "HF_TOKEN=hunter2hunter2 mpirun"},
                   takes={"run1": {"n1": Snapshot("n1", {"json": Captured(0, '"API_TOKEN": "hunter2hunter2"')})}})
    path = saved(tmp_path / "b.tar.gz", made)
    got = bundle.read(path).recordings["allreduce"]
    assert "hunter2" not in str(got.facts) + got.takes["run1"]["n1"].sections["json"].out


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a b"])
def test_names_that_would_be_paths_are_refused(tmp_path: Path, name: str) -> None:
    for made in (replace(MADE, probe=name), Recording("p", takes={name: {"n1": NODE}}), Recording("p", takes={"m": {name: NODE}})):
        with pytest.raises(BundleError, match="no name for a recording"):
            saved(tmp_path / "b.tar.gz", made)


def test_nothing_is_taken_for_granted() -> None:
    assert Recording("p").at("run1", "n1").error == Unreadable(Reason.NOT_COLLECTED, "p: nothing of n1 at run1")
    assert MADE.at("run1", "n1") is NODE
    for facts in ({}, {"run": "{"}, {"run": '{"launcher": "x"}'}):
        assert isinstance(all_reduce(replace(MADE, facts=facts)), Unreadable)


def test_calls_of_one_run() -> None:
    """nccl.md 1.6: `-w 5 -n 20 -c 1` is 49 calls in nccl-tests; ours has one placement."""
    assert replace(FACTS, program="nccl-tests").calls == 49
    assert FACTS.calls == 5 + 1 + 20 + 1
    assert FACTS.ranks == 3
    assert FACTS.nodes == ("n1", "n2")
