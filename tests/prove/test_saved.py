"""`check NAME --from BUNDLE`: recordings judged from a file as they were live, and what an admin reads of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictool.check import Check, Listed
from fabrictool.cli import run
from fabrictool.prove import allreduce
from fabrictool.verdict import judged
from tests.prove import bundles, faulty
from tests.prove.fleets import sparks
from tests.prove.paths import case, names, pings
from tests.prove.recordings import Fleet

SPEC = Path(__file__).resolve().parents[2] / "inventories" / "spark4.yaml"


def check(capsys: pytest.CaptureFixture[str], saved: Path, *words: str) -> tuple[int, str]:
    rc = run(["check", "allreduce", "-i", str(SPEC), "--from", str(saved), *words])
    return rc, capsys.readouterr().out


@pytest.mark.parametrize(("fault", "rc", "first"), [
    (bundles.FAULTS["none"], 0, None), (bundles.FAULTS["fallback"], 1, "TCP_FALLBACK"), (bundles.FAULTS["died"], 1, "RANK_DIED")])
def test_a_bundle_gives_the_same_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: Callable[[Fleet], Fleet], rc: int,
                                         first: str | None) -> None:
    fleet = fault(sparks(4))
    got, out = check(capsys, bundles.write(tmp_path / "b.tar.gz", fleet), "-o", "json", "-v")
    (result,) = json.loads(out)["results"]
    assert (got, result["code"]) == (rc, first)
    live = judged(Listed("allreduce", "", "", Check(judge=allreduce.judge)), fleet.case())
    assert [f["id"] for f in result["findings"]] == [f.id for f in live.findings]
    assert {k: v for k, v in result["evidence"].items() if k not in ("compared", "nodes")} == dict(live.evidence)


def test_what_an_admin_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The cause once, with its place and its fix, and the numbers; all within 80 columns."""
    _, text = check(capsys, bundles.write(tmp_path / "b.tar.gz", faulty.fallback(sparks(4))))
    assert text.index("TCP_FALLBACK") < text.index("COUNTERS_FLAT")
    assert text.count("TCP_FALLBACK") == text.count("COUNTERS_FLAT") == 1
    assert "spark[01-04]\n  ✗ fail    TCP_FALLBACK" in text
    assert "busbw 22.88 GB/s" in text
    assert "not proven: " in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(("next: ", "check: "))) <= 80
    _, text = check(capsys, bundles.write(tmp_path / "c.tar.gz", faulty.one_rail(sparks(4), "spark03")))
    assert "spark03  p0/enP2p1s0f0np0/rail b\n  ✗ fail    SINGLE_RAIL" in text
    assert "2 failed on spark[01-04] (exit 1)" in text


def test_a_saved_day_is_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    then = bundles.write(tmp_path / "then.tar.gz", sparks(4))
    now = bundles.write(tmp_path / "now.tar.gz", faulty.slow(sparks(4), 21.5))
    rc, out = check(capsys, now, "--baseline", str(then), "-o", "json")
    (result,) = json.loads(out)["results"]
    assert (rc, result["status"], result["code"]) == (0, "warn", "BASELINE_LOW")
    assert result["evidence"]["baseline_busbw_gbytes_per_s"] == 22.88


@pytest.mark.parametrize(("fault", "status"), [
    (lambda f: f, "pass"), (faulty.wrong, "unknown"), (lambda f: faulty.slow(f, 0.001), "unknown")], ids=["twin", "wrong", "zero"])
def test_a_day_on_which_the_fleet_was_not_well_is_no_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                              fault: Callable[[Fleet], Fleet], status: str) -> None:
    """At least 0.95 of nothing passed."""
    then = bundles.write(tmp_path / "then.tar.gz", fault(sparks(4)))
    _, out = check(capsys, bundles.write(tmp_path / "now.tar.gz", sparks(4)), "--baseline", str(then), "-o", "json", "-v")
    (result,) = json.loads(out)["results"]
    assert [f["status"] for f in result["findings"] if f["id"].endswith("allreduce.baseline")] == [status]


def test_pings_survive_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sections whose items hold a space: the rail and the peer."""
    from fabrictool.prove.cover import cover
    from fabrictool.snapshot import bundle

    made = case(pings({rail: dict.fromkeys(cover(names(4)), "ok") for rail in "ab"}), 4)
    bundle.write(tmp_path / "p.tar.gz", made.snaps.values(), bundle.Meta("0", "", ""), made.recordings.values())
    assert run(["check", "path_mtu", "-i", str(SPEC), "--from", str(tmp_path / "p.tar.gz"), "-o", "json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["evidence"]["pairs_with_a_verdict"] == 12
