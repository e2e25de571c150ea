"""What lies where a file should be: devices, FIFOs, folders, half a backup. Nothing there is absent, and nothing is replaced by a file."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Captured, Snapshot, files
from fabrictool.snapshot.collector import resource
from fabrictool.snapshot.model import FileText

KEEP = "/var/lib/fabrictool"
NEW = b"new\n"


def seen(path: Path, glob: str = "") -> Observed[FileText]:
    section = files("f", glob or str(path))
    ran = subprocess.run(["sh", "-c", section.shell], capture_output=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    snap = Snapshot("n", {"f": Captured(ran.returncode, ran.stdout.decode(), ran.stderr.decode())})
    return snap.file("f", str(path))


def write(folder: Path, path: Path, before: str, run: str = "r1", tools: str = "") -> subprocess.CompletedProcess[str]:
    text = resource("write.sh").replace(KEEP, str(folder / "keep"))
    argv = ["sh", "-c", text, "fabrictool-write", str(path), "644", before, run, base64.b64encode(NEW).decode()]
    env = {"PATH": f"{tools}:{os.environ['PATH']}" if tools else os.environ["PATH"], "LC_ALL": "C"}
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, env=env, stdin=subprocess.DEVNULL, check=False)


def restore(folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    text = resource("restore.sh").replace(KEEP, str(folder / "keep"))
    argv = ["sh", "-c", text, "fabrictool-restore", str(path), "r1"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


def lock(folder: Path, run: str) -> subprocess.CompletedProcess[str]:
    text = resource("lock.sh").replace("/run/fabrictool.lock", str(folder / "lock"))
    argv = ["sh", "-c", text, "fabrictool-lock", "take", run, "me@here"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("kind", ["null", "fifo", "folder"])
def test_what_is_no_plain_file_is_not_absent(tmp_path: Path, kind: str) -> None:
    """/etc/nccl.conf -> /dev/null and the like were judged as "no such file", and then could never be written."""
    path = tmp_path / "nccl.conf"
    if kind == "null":
        path.symlink_to("/dev/null")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    got = seen(path)
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.FAILED
    assert "no plain file" in got.why


def test_the_twins_a_file_is_read_and_nothing_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "nccl.conf"
    assert seen(path) == Absent(str(path))
    path.write_text("A=1\n")
    got = seen(path)
    assert isinstance(got, Value)
    assert got.value.text == "A=1\n"


def test_a_folder_that_a_glob_finds_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.conf").mkdir()
    assert isinstance(seen(tmp_path / "x.conf", f"{tmp_path}/*.conf"), Absent)
    os.mkfifo(tmp_path / "y.conf")
    assert isinstance(seen(tmp_path / "y.conf", f"{tmp_path}/*.conf"), Unreadable)


@pytest.mark.parametrize("kind", ["null", "fifo", "folder"])
@pytest.mark.parametrize("before", ["", sha(b"")])
def test_only_a_plain_file_is_replaced(tmp_path: Path, kind: str, before: str) -> None:
    """An empty digest matches /dev/null's: the rename would have put a file in its place."""
    path, target = tmp_path / "hosts", tmp_path / "target"
    if kind == "null":
        path.symlink_to("/dev/null")
    elif kind == "fifo":
        os.mkfifo(target)
        path.symlink_to(target)
    else:
        path.mkdir()
    done = write(tmp_path, path, before)
    assert done.returncode == 1
    assert f"{path} is no plain file" in done.stderr
    assert not (tmp_path / "keep").exists()
    assert Path("/dev/null").is_char_device()
    assert path.is_dir() if kind == "folder" else path.is_symlink()


def test_half_a_backup_is_no_backup(tmp_path: Path) -> None:
    """`cp` ended early (a full disk): the next write of the same run must keep the whole file, and restore must bring it back."""
    path, tools = tmp_path / "hosts", tmp_path / "bin"
    old = b"127.0.0.1 localhost\n" * 50
    path.write_bytes(old)
    tools.mkdir()
    (tools / "cp").write_text('#!/bin/sh\nfor to in "$@"; do :; done\necho half >"$to"\nexit 1\n')
    (tools / "cp").chmod(0o755)
    assert write(tmp_path, path, sha(old), tools=str(tools)).returncode == 1
    assert path.read_bytes() == old
    assert write(tmp_path, path, sha(old)).returncode == 0
    assert path.read_bytes() == NEW
    assert restore(tmp_path, path).returncode == 0
    assert path.read_bytes() == old


def test_a_write_goes_through_a_link_to_a_file_and_comes_back(tmp_path: Path) -> None:
    path, target = tmp_path / "hosts", tmp_path / "real"
    target.write_text("old\n")
    target.chmod(0o600)
    path.symlink_to(target)
    assert write(tmp_path, path, sha(b"old\n")).returncode == 0
    assert (path.is_symlink(), target.read_bytes()) == (True, NEW)
    assert restore(tmp_path, path).returncode == 0
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("old\n", 0o600)


def test_a_lock_that_cannot_be_made_is_not_another_runs(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    done = lock(tmp_path, "r1")
    assert (done.returncode, done.stderr.startswith("cannot make the folder ")) == (1, True)
    (tmp_path / "lock").unlink()
    assert lock(tmp_path, "r1").returncode == 0
    other = lock(tmp_path, "r2")
    assert (other.returncode, other.stderr.startswith("locked by run r1 of me@here")) == (75, True)
