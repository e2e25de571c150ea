"""Bundles that somebody edited: what they say must not reach a terminal as it is, end in a bug, or pass."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabrictool.cli import run
from fabrictool.exits import Exit
from fabrictool.prove.results import clock
from fabrictool.snapshot import Captured, Snapshot, untar
from tests.prove import bundles
from tests.prove.fleets import sparks

SPEC = Path(__file__).resolve().parents[2] / "inventories" / "spark4.yaml"


def packed(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def with_meta(tmp_path: Path, **changed: object) -> Path:
    files = untar.files(bundles.write(tmp_path / "whole.tar.gz", sparks(2)))
    files["meta.json"] = json.dumps({**json.loads(files["meta.json"]), **changed}).encode()
    return packed(tmp_path / "edited.tar.gz", files)


@pytest.mark.parametrize("changed", [{"format": 2, "tool_version": "\x1b[2J\x07\x9b31m"}, {"\x1b]0;mine\x07": 1}])
def test_what_a_bundle_says_reaches_no_terminal_as_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                                      changed: dict[str, object]) -> None:
    edited = with_meta(tmp_path, **changed)
    assert run(["check", "allreduce", "-i", str(SPEC), "--from", str(edited)]) == Exit.NO_VERDICT
    said = capsys.readouterr().err
    assert str(edited) in said
    assert "\\x1b" in said
    assert all(ch.isprintable() or ch == "\n" for ch in said)


def test_a_date_of_megabytes_is_told_in_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for taken, most in (("9" * 5_000_000, 20_000), ("2026-01-01T10:00:00+00:00", 20_000)):
        run(["check", "allreduce", "-i", str(SPEC), "-l", "spark[01-02]", "--from", str(with_meta(tmp_path, taken=taken)), "-o", "json"])
        out = capsys.readouterr().out
        assert len(out) < most
        assert f"taken {taken[:25]}" in out
        (tmp_path / "whole.tar.gz").unlink()


def test_the_twin_a_message_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--force", "nosuchcheck", "-i", str(SPEC)]) == Exit.USAGE
    from fabrictool.cli import complain

    complain("one\n\ttwo: \u00e4 \u2713")
    assert capsys.readouterr().err.endswith("one\n\ttwo: \u00e4 \u2713\n")


def with_facts(tmp_path: Path, **changed: object) -> Path:
    files = untar.files(bundles.write(tmp_path / "whole.tar.gz", sparks(2)))
    where = "recordings/allreduce/probe.json"
    probe = json.loads(files[where])
    probe["facts"]["run"] = json.dumps({**json.loads(probe["facts"]["run"]), **changed})
    files[where] = json.dumps(probe).encode()
    return packed(tmp_path / "edited.tar.gz", files)


def judged(capsys: pytest.CaptureFixture[str], saved: Path) -> tuple[int, str]:
    names = ("allreduce", "rdma_counters", "lossless_priority")
    rc = run(["check", *names, "-i", str(SPEC), "-l", "spark[01-02]", "--from", str(saved), "-o", "json"])
    return rc, capsys.readouterr().out


@pytest.mark.parametrize("changed", [
    {"size_bytes": 10**330}, {"iterations": 10**330}, {"limit_s": 10**330}, {"asked_bytes": 10**4000, "bound": "x"}, {"size_bytes": -1},
    {"warmup": -5}, {"runs": ["run1", "run1"]}, {"default_run": "run1"}, {"runs": ["run1", *(f"r{i}" for i in range(3000))]},
    {"rank_nodes": ["spark01", "spark02"] * 60_000},
], ids=lambda c: "-".join(c))
def test_a_run_that_nobody_can_have_made_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                       changed: dict[str, object]) -> None:
    """Numbers beyond a float ended in a bug, thousands of runs in megabytes of report, and one run three times was three runs."""
    rc, out = judged(capsys, with_facts(tmp_path, **changed))
    results = {r["check"]: r["status"] for r in json.loads(out)["results"]}
    assert (rc, set(results.values())) == (Exit.NO_VERDICT, {"unknown"})
    assert len(out) < 30_000


def test_the_twin_the_run_as_it_was_made_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rc, out = judged(capsys, with_facts(tmp_path))
    assert (rc, {r["status"] for r in json.loads(out)["results"]}) == (Exit.OK, {"pass"})


@pytest.mark.parametrize(("text", "seconds"), [("nan", None), ("inf", None), ("-inf", None), ("1e400", None), ("-5", None), ("", None),
                                               ("1796013628.081\n", 1796013628.081)])
def test_a_clock_shows_a_time(text: str, seconds: float | None) -> None:
    """Nothing compares with nan, and so no result was ever stale."""
    assert clock(Snapshot("spark01", {"clock.start": Captured(0, text)}), "clock.start") == seconds
