"""One writer per node, also where several find the lock of one that has gone."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from fabrictool.snapshot.collector import resource
from tests.node.nodes import PATH, every_shell, tools

STALE_S = 3700


def start(shell: str, lock: Path, run: str, verb: str = "take", path: str = PATH) -> subprocess.Popen[str]:
    body = resource("lock.sh").replace("/run/fabrictool.lock", str(lock))
    return subprocess.Popen([*shell.split(), "-c", body, "fabrictool-lock", verb, run, f"{run}@here"], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": path, "LC_ALL": "C"})


def take(shell: str, lock: Path, run: str, verb: str = "take", path: str = PATH) -> tuple[int, str]:
    with start(shell, lock, run, verb, path) as job:
        _, err = job.communicate(timeout=60)
        return job.returncode, err


def holder(lock: Path) -> str:
    return (lock / "run").read_text().strip()


def age(lock: Path) -> None:
    then = time.time() - STALE_S
    os.utime(lock, (then, then))


@every_shell
def test_one_holds_it_until_it_drops_it(shell: str, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert take(shell, lock, "a") == take(shell, lock, "a") == (0, "")
    rc, said = take(shell, lock, "b")
    assert (rc, said) == (75, f"locked by run a of a@here; remove {lock} on the node if that run is gone\n")
    take(shell, lock, "b", "drop")
    assert holder(lock) == "a"
    take(shell, lock, "a", "drop")
    assert take(shell, lock, "b") == (0, "")


@every_shell
def test_a_stale_one_is_taken_and_nothing_of_it_is_left(shell: str, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    take(shell, lock, "a")
    age(lock)
    assert take(shell, lock, "b") == (0, "")
    assert holder(lock) == "b"
    assert os.listdir(tmp_path) == ["lock"]
    age(lock)
    assert take(shell, lock, "b") == (0, "")  # its own becomes young again
    assert take(shell, lock, "c")[0] == 75


@every_shell
def test_a_lock_that_another_took_meanwhile_stays(shell: str, tmp_path: Path) -> None:
    """Both saw the stale one; the other ended it and took its own before this one goes on."""
    lock = tmp_path / "lock"
    take(shell, lock, "gone")
    age(lock)
    body = tmp_path / "take.sh"
    body.write_text(resource("lock.sh").replace("/run/fabrictool.lock", str(lock)))
    find = f"""seen=$(/usr/bin/find "$@")
[ -e {tmp_path}/raced ] || {{ : >{tmp_path}/raced; PATH={PATH} sh {body} take quick quick@here; }}
printf '%s\\n' "$seen" """
    rc, said = take(shell, lock, "slow", path=tools(tmp_path / "bin", find=find))
    assert (tmp_path / "raced").exists()
    assert (rc, said.split(";")[0]) == (75, "locked by run quick of quick@here")
    assert holder(lock) == "quick"


@every_shell
def test_of_many_one_takes_it(shell: str, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    take(shell, lock, "gone")
    age(lock)
    jobs = [start(shell, lock, f"r{n}") for n in range(8)]
    won = []
    for job in jobs:
        with job:
            job.communicate(timeout=60)
        won += [job.args[-2]] if job.returncode == 0 else []  # type: ignore[index]
    assert won == [holder(lock)]
    assert not list(tmp_path.glob("lock.over*"))
