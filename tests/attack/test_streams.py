"""Standard streams that are closed or full: no "this is a bug", and no success for a report that nobody got."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fabrictool.exits import Exit

MAIN = "import sys; from fabrictool.cli import main; sys.exit(main())"
SPEC = """\
version: 1
site: two
ssh: {user: admin, sudo: nopasswd}
fabric: {mtu: 9000, rails: {a: {subnet: 10.10.1.0/24}}}
groups:
  spark:
    nodes: spark[01-02]
    ports: {p0: {functions: [{rail: a, interface: enp1s0f0np0}]}}
"""


def ran(tail: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = ["sh", "-c", f'exec "$@" {tail}', "sh", sys.executable, "-c", MAIN, *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "two.yaml"
    file.write_text(SPEC)
    return str(file)


@pytest.mark.parametrize("tail", ["", ">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_leave_the_exit_status(spec: str, tail: str) -> None:
    assert ran(tail, "lint", "-i", spec).returncode == Exit.OK
    assert ran(tail, "lint", "-i", f"{spec}.none").returncode == Exit.SPEC
    done = ran(tail, "plan", "-i", spec, "--from", spec)  # imports pyinfra, which asks stdout whether it is a terminal
    assert done.returncode == Exit.NO_VERDICT
    assert "bug" not in done.stderr


def test_a_full_disk_under_stdout_is_no_success_and_no_bug(spec: str) -> None:
    done = ran(">/dev/full", "inventory", "-i", spec)
    assert done.returncode == Exit.NO_VERDICT
    assert "No space left" in done.stderr
    assert "bug" not in done.stderr
    assert ran("", "inventory", "-i", spec).returncode == Exit.OK
