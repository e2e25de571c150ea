"""The look-up script and the cloud-init section, run for real under each shell."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from fabrictool import names
from fabrictool.model import Unreadable, Value
from fabrictool.names.sections import SECTIONS, Cloud, Resolved
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.snapshot.collector import resource

SHELLS = [s for s in ("dash", "bash", "busybox sh") if shutil.which(s.split()[0])]
CLOUD = next(s.shell for s in SECTIONS if s.name == "names.cloud")


def run(shell: str, text: str, *args: str, path: str = "") -> Captured:
    env = {"PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
    ran = subprocess.run([*shell.split(), "-c", text, "sh", *args], capture_output=True, timeout=60, env=env, check=False)
    return Captured(ran.returncode, ran.stdout.decode("utf-8", "surrogateescape"), ran.stderr.decode())


def resolved(got: Captured) -> Resolved | Unreadable:
    return names.read(Snapshot("n", {"names.resolved": got})).resolved


def getent(folder: Path, body: str) -> str:
    folder.mkdir()
    (folder / "getent").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "getent").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("shell", SHELLS)
def test_names_of_this_machine(shell: str) -> None:
    got = resolved(run(shell, resource("peers.sh"), "localhost", "no-such-name.invalid", "127.0.0.9"))
    assert isinstance(got, Resolved)
    assert got.own == socket.gethostname()
    answers = {n: a.value.addresses for n, a in got.answers.items() if isinstance(a, Value)}
    assert answers["127.0.0.9"] == ("127.0.0.9",)
    assert answers["no-such-name.invalid"] == ()
    assert answers["localhost"][0] in ("127.0.0.1", "::1")


@pytest.mark.parametrize("shell", SHELLS)
def test_many_side_by_side_stay_whole(shell: str, tmp_path: Path) -> None:
    """Answers of names that are asked at the same time must not mix."""
    path = getent(tmp_path / "bin", 'echo "10.0.0.${2#n}  STREAM $2.lan"; echo "10.0.0.${2#n}  DGRAM "; echo "10.1.0.${2#n} STREAM"')
    got = resolved(run(shell, resource("peers.sh"), *(f"n{i}" for i in range(1, 80)), path=path))
    assert isinstance(got, Resolved)
    for i in range(1, 80):
        answer = got.of(f"n{i}")
        assert isinstance(answer, Value)
        assert answer.value.addresses == (f"10.0.0.{i}", f"10.1.0.{i}")
        assert answer.value.canonical == (f"n{i}.lan",)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_look_up_that_hangs_and_one_that_breaks(shell: str, tmp_path: Path) -> None:
    path = getent(tmp_path / "bin", 'case $2 in slow) exec sleep 60 ;; odd) exit 3 ;; *) echo "10.0.0.1 STREAM $2" ;; esac')
    text = resource("peers.sh").replace("timeout 5", "timeout 1")
    got = resolved(run(shell, text, "slow", "odd", "good", path=path))
    assert isinstance(got, Resolved)
    slow, odd, good = got.of("slow"), got.of("odd"), got.of("good")
    assert isinstance(slow, Value)
    assert (slow.value.late, str(slow.value)) == (True, "no answer in 5 s")
    assert isinstance(odd, Unreadable)
    assert isinstance(good, Value)


@pytest.mark.parametrize("shell", SHELLS)
def test_hostile_arguments(shell: str, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    got = resolved(run(shell, resource("peers.sh"), f"$(touch {flag})", f"x;touch {flag}"))
    assert not flag.exists()
    assert got is not None


def cloud(shell: str, root: Path) -> Cloud | Unreadable:
    text = CLOUD.replace("/etc/cloud", f"{root}/etc/cloud").replace("/var/lib/cloud", f"{root}/var/lib/cloud")
    return names.read(Snapshot("n", {"names.cloud": run(shell, text)})).cloud


@pytest.mark.parametrize("shell", SHELLS)
def test_cloud_init(shell: str, tmp_path: Path) -> None:
    assert cloud(shell, tmp_path) == Cloud(False)
    etc = tmp_path / "etc/cloud"
    (etc / "cloud.cfg.d").mkdir(parents=True)
    (etc / "templates").mkdir()
    (etc / "templates/hosts.debian.tmpl").write_text("127.0.1.1 {{hostname}}\n")
    (etc / "cloud.cfg").write_text("users: []\nmanage_etc_hosts: true # c\n")
    (etc / "cloud.cfg.d/50-x.cfg").write_text("datasource: {MAAS: {token_key: hunter2}}\n  manage_etc_hosts: nested\n")
    (etc / "cloud.cfg.d/90-y.cfg").write_text("manage_etc_hosts : 'localhost'\r\nmanage_etc_hosts: \"False\"\r\n")
    got = cloud(shell, tmp_path)
    assert isinstance(got, Cloud)
    assert got.settings == ((f"{etc}/cloud.cfg", "true"), (f"{etc}/cloud.cfg.d/90-y.cfg", "false"))
    assert got.templates == (f"{etc}/templates/hosts.debian.tmpl",)
    assert not got.disabled
    assert "hunter2" not in run(shell, CLOUD.replace("/etc/cloud", f"{tmp_path}/etc/cloud")).out
    (etc / "cloud-init.disabled").touch()
    off = cloud(shell, tmp_path)
    assert isinstance(off, Cloud)
    assert off.disabled
