"""Bundles that `check` compares with and writes: what is wrong with one is said before any node is asked, and that one was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrictool.cli import progress, run
from fabrictool.exits import Exit
from fabrictool.prove import Case
from fabrictool.snapshot import Captured, Recording, Snapshot, bundle
from tests.specs import node_spec

SPEC = Path(__file__).resolve().parents[2] / "inventories" / "spark4.yaml"


def saved(path: Path, *recordings: Recording) -> Path:
    bundle.write(path, [Snapshot("spark01", {"ports.ip": Captured(0, "[]")})], bundle.Meta("0", "2026-01-01T00:00:00+00:00", "d"),
                 recordings)
    return path


def check(baseline: Path) -> int:
    """Judges a bundle in which no node of the spec could be read."""
    judged = baseline.parent / "judged.tar.gz"
    if not judged.exists():
        saved(judged)
    return run(["check", "allreduce", "-i", str(SPEC), "--from", str(judged), "--baseline", str(baseline)])


def test_a_baseline_that_is_no_bundle_or_holds_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path / "none.tar.gz") == Exit.USAGE
    (tmp_path / "text.tar.gz").write_text("no bundle")
    assert check(tmp_path / "text.tar.gz") == Exit.NO_VERDICT
    assert "--baseline" in capsys.readouterr().err
    assert check(saved(tmp_path / "plain.tar.gz")) == Exit.USAGE
    assert "holds no recorded run" in capsys.readouterr().err


def test_a_baseline_that_nothing_is_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bundle of pings, and a check that compares no bandwidth: --baseline was left undone without a word."""
    assert check(saved(tmp_path / "pings.tar.gz", Recording("path_mtu"))) == Exit.USAGE
    assert "holds no recorded run of allreduce" in capsys.readouterr().err
    whole, judged = saved(tmp_path / "whole.tar.gz", Recording("allreduce")), str(tmp_path / "judged.tar.gz")
    assert run(["check", "path_mtu", "-i", str(SPEC), "--from", judged, "--baseline", str(whole)]) == Exit.USAGE
    assert "--baseline belongs to the check allreduce" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["--control"], "--control is for a run"), (["--force"], "--force is for a run"), (["--save", "NEW"], "copy the bundle itself")])
def test_what_needs_nodes_does_not_go_with_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str],
                                                    said: str) -> None:
    """`--from OLD --save NEW` made a bundle of an old day that called itself of today and of this spec."""
    old, new = str(saved(tmp_path / "old.tar.gz")), tmp_path / "new.tar.gz"
    line = ["check", "allreduce", "-i", str(SPEC), "--from", old]
    assert run([*line, *(str(new) if w == "NEW" else w for w in words)]) == Exit.USAGE
    assert said in capsys.readouterr().err
    assert not new.exists()
    assert run(line) == Exit.NO_VERDICT


def test_a_whole_one_is_no_reason_to_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(saved(tmp_path / "good.tar.gz", Recording("allreduce"))) == Exit.NO_VERDICT
    assert "--baseline" not in capsys.readouterr().err


def test_without_one_there_is_nothing_to_compare_with() -> None:
    assert Case({"spark01": node_spec()}).baselines == {}


def test_what_was_saved_is_said_beside_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = saved(tmp_path / "kept it.tar.gz")
    progress.wrote(kept, "2 of 2 nodes")
    size = f"{kept.stat().st_size / 1000:.1f} kB" if kept.stat().st_size >= 1000 else f"{kept.stat().st_size} B"
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", f"bundle written: {kept} ({size}): 2 of 2 nodes\n")
