"""The same with the real systemd, where it is this machine's PID 1: units with the run in their name, ended by it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.probes import stage
from fabrictool.snapshot.collector import resource
from tests.node.nodes import PATH, marked, new_run, until

pytestmark = pytest.mark.skipif(not (os.path.isdir("/run/systemd/system") and os.geteuid() == 0),
                                reason="systemd is not PID 1 here, or this is not root")
ENV = {"PATH": PATH, "LC_ALL": "C"}


def sent(text: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-s", *args], input=text, capture_output=True, text=True, timeout=60, check=False, env=ENV)


def units(run: str) -> list[str]:
    out = subprocess.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", f"ft-{run}-*"], capture_output=True, text=True,
                         timeout=20, check=True).stdout
    return [line.split()[0] for line in out.splitlines()]


@pytest.fixture
def run() -> Iterator[str]:
    """A run whose folder and guard are there."""
    ident = new_run()
    done = sent(stage.program(ident, 300, (), {"run1": ""}, ()))
    assert isinstance(stage.read(done.stdout), stage.Staged), done
    yield ident
    sent(resource("sweep.sh"), ident, "close")
    assert units(ident) == []
    assert not Path(stage.folder(ident)).exists()


def words(run: str, body: str, seconds: int) -> tuple[str, ...]:
    folder = stage.folder(run)
    return (run, folder, "run1", "0", str(seconds), "", "sh", f"{folder}/ranks.sh", "ranks", folder, "run1", str(seconds), "0", "1", "1",
            "10.0.0.1", "41000", "sh", "-c", body)


def test_a_rank_is_a_unit(run: str) -> None:
    assert units(run) == [f"ft-{run}-guard.service"]
    done = sent(resource("rank.sh"), *words(run, "cat /proc/self/cgroup; echo \"it's $RANK\"", 30))
    assert done.stdout.split()[:2] == ["0", "0"], done
    out = Path(stage.folder(run), "run1", "0.out").read_text()
    assert f"/ft-{run}-0.service" in out
    assert "it's 0" in out


def test_a_sweep_ends_the_unit_and_all_that_is_in_it(run: str) -> None:
    job = subprocess.Popen(["sh", "-s", *words(run, "setsid sleep 300 & sleep 300", 100)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True, env=ENV)
    with job:
        assert job.stdin is not None
        job.stdin.write(resource("rank.sh"))
        job.stdin.close()
        until(lambda: f"ft-{run}-0.service" in units(run))
        left = sent(resource("sweep.sh"), run, "over")
        assert [ln for ln in left.stdout.splitlines() if not ln.startswith("unasked ")] == ["end"]
        assert marked(run) == set()
        job.wait(30)


def test_the_guard_is_a_unit_that_ends_everything(run: str) -> None:
    job = subprocess.Popen(["sh", "-s", *words(run, "sleep 300", 100)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)
    with job:
        assert job.stdin is not None
        job.stdin.write(resource("rank.sh"))
        job.stdin.close()
        until(lambda: f"ft-{run}-0.service" in units(run))
        sent(resource("mark.sh"), stage.folder(run), "1", "")
        until(lambda: not Path(stage.folder(run)).exists())
        until(lambda: units(run) == [])
        assert marked(run) == set()
        job.wait(30)
