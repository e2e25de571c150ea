"""What a run leaves is sent whole, bounded, and without following a link."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabrictool.model import Unreadable
from fabrictool.probes.outcome import Piece, pieces
from tests.node.nodes import SHELLS, every_shell, text


def fetched(shell: str, folder: Path) -> dict[str, Piece]:
    done = subprocess.run([*shell.split(), "-c", text("fetch.sh"), "test", str(folder), "run1"], capture_output=True, timeout=60,
                          check=True)
    got = pieces(done.stdout.decode("utf-8", "surrogateescape"))
    assert not isinstance(got, Unreadable), done.stdout
    assert done.stderr == b""
    return dict(got)


@every_shell
def test_files_of_a_run(shell: str, tmp_path: Path) -> None:
    run = tmp_path / "run1"
    run.mkdir()
    (tmp_path / "run1.start").write_text("1700000000.5\n")
    (run / "0.out").write_bytes(b"\xff\x00binary\n@ 0.out 3 3\nend\n")
    (run / "0.err").write_text("")
    (run / "0.rc").write_text("0 12\n")
    (run / "node-a.4101.log").write_text("no newline at the end")
    (run / "result.json").write_text("{}\n")
    (run / "0.part").write_text("x")
    (run / "odd name.log").write_text("x")
    (run / "folder.log").mkdir()
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    (run / "link.log").symlink_to(secret)
    got = fetched(shell, tmp_path)
    assert set(got) == {"clock.start", "0.out", "0.err", "0.rc", "node-a.4101.log", "result.json"}
    assert got["0.out"] == Piece("\udcff\x00binary\n@ 0.out 3 3\nend\n", False)
    assert got["node-a.4101.log"].text == "no newline at the end"


@every_shell
def test_long_files_are_cut_and_say_so(shell: str, tmp_path: Path) -> None:
    run = tmp_path / "run1"
    run.mkdir()
    (run / "0.err").write_text("e" * 300_000)
    (run / "a.1.log").write_text("l" * 2_000_000)
    got = fetched(shell, tmp_path)
    assert got["0.err"] == Piece("e" * 262_144, True)
    assert (len(got["a.1.log"].text), got["a.1.log"].cut) == (1_048_576, True)


def test_all_files_together_have_a_bound(tmp_path: Path) -> None:
    run = tmp_path / "run1"
    run.mkdir()
    for n in range(30):
        (run / f"a.{n}.log").write_text("l" * 1_100_000)
    got = fetched("dash", tmp_path)
    assert sum(len(p.text) for p in got.values()) == 24 << 20
    assert all(p.cut for p in got.values())


@pytest.mark.parametrize("shell", SHELLS)
def test_a_run_that_left_nothing(shell: str, tmp_path: Path) -> None:
    assert fetched(shell, tmp_path) == {}
