"""A report or bundle written by rename would replace a device: `-o json:/dev/null` made /dev/null a file for the whole machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.cli import run
from fabrictool.exits import Exit, Stop
from fabrictool.report import Output, parse_outputs
from fabrictool.snapshot import Captured, Snapshot, bundle
from fabrictool.snapshot.untar import BundleError

META = bundle.Meta("0.1.0", "2026-01-01T00:00:00+00:00", "0" * 64)
SNAPS = [Snapshot("n1", {"x": Captured(0, "y\n")})]


@pytest.fixture(params=["fifo", "link to a device"])
def special(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Something that is no plain file, in a folder of the test's own: never a real device's own name."""
    path = tmp_path / "special"
    if request.param == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()
    yield path
    after = path.lstat()
    assert (stat.S_IFMT(after.st_mode), after.st_ino) == (stat.S_IFMT(before.st_mode), before.st_ino)


def test_a_report_does_not_replace_it(special: Path) -> None:
    with pytest.raises(Stop) as stop:
        parse_outputs((f"json:{special}",))
    assert stop.value.exit is Exit.USAGE
    assert "no plain file" in stop.value.message


def test_a_bundle_does_not_replace_it(special: Path) -> None:
    with pytest.raises(BundleError, match="name a plain file"):
        bundle.write(special, SNAPS, META, force=True)


def test_snapshot_refuses_before_it_reads_anything(special: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snapshot", "-i", str(tmp_path / "none.yaml"), "-o", str(special), "--force"]) == Exit.USAGE
    assert "name a plain file" in capsys.readouterr().err
    assert run(["snapshot", "-i", str(tmp_path / "none.yaml"), "-o", str(tmp_path / "no" / "b.tar.gz")]) == Exit.USAGE
    assert "make the folder first" in capsys.readouterr().err


def test_the_twin_plain_files_are_written_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    assert parse_outputs((f"json:{file}",))[0] == Output("json", file)
    file.write_text("old")
    assert parse_outputs((f"json:{file}",))[0] == Output("json", file)
    bundle.write(file, SNAPS, META, force=True)
    assert bundle.read(file).snapshots["n1"].sections["x"].out == "y\n"
