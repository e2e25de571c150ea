"""The run's folder, and the guard that ends everything when the workstation is gone."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabrictool.probes import stage
from fabrictool.probes.launch import File
from fabrictool.snapshot.collector import resource
from tests.node.folders import folder, staged
from tests.node.nodes import NO_SYSTEMD, alive, as_root, every_shell, marked, new_run, script, sleeper, tools, until


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


@every_shell
def test_the_folder_holds_what_a_run_needs(shell: str) -> None:
    with folder(shell, added={"run1": "export A='it'\\''s'\n", "default": ""}, files=[File("hostfile", "a slots=1\n")]) as made:
        assert {p.name for p in made.path.iterdir()} == {
            "ranks.sh", "agent.sh", "allreduce.py", "guard.sh", "sweep.sh", "rankenv.sh", "hostfile", "run1", "run1.added", "default",
            "default.added", "env", "names", "until"}
        assert (made.path / "run1.added").read_text() == "export A='it'\\''s'\n"
        assert (made.path / "hostfile").read_text() == "a slots=1\n"
        assert (mode(made.path), mode(made.path / "run1"), mode(made.path / "env")) == ("711", "700", "600")
        assert made.source == ""
        assert marked(made.run, "FABRICTOOL_GUARD")  # it, and the sleep between its looks
        assert marked(made.run) == set()
    assert marked(made.run, "FABRICTOOL_GUARD") == set()


@as_root
@every_shell
def test_folders_of_runs_belong_to_the_login_user(shell: str) -> None:
    with folder(shell, SUDO_UID="65534") as made:
        assert "uid 65534" in made.out
        assert (made.path.stat().st_uid, (made.path / "run1").stat().st_uid, (made.path / "env").stat().st_uid) == (0, 65534, 65534)
        assert made.path.parent == Path("/run/fabrictool")


@as_root
def test_a_user_without_root_gets_a_folder_of_its_own() -> None:
    run = new_run()
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "dash", "-s"], capture_output=True, text=True,
                          input=stage.program(run, 60, (), {"run1": ""}, ()), timeout=60, check=False, env={"PATH": "/usr/bin:/bin"})
    made = Path(f"/tmp/fabrictool-{run}")
    try:
        assert stage.read(done.stdout) == stage.Staged(str(made), ""), done
        assert (mode(made), made.stat().st_uid) == ("711", 65534)
    finally:
        script("dash", "sweep.sh", run, "close")
    assert not made.exists()


TAKEN_AWAY = r"""mkdir() {
  command mkdir "$@" || return
  case "$*" in "-p /run/fabrictool") [ -n "${gone:-}" ] || { gone=1; rmdir /run/fabrictool || exit 9; } ;; esac
}
"""


@as_root
@every_shell
def test_another_runs_end_may_take_the_folder_of_runs_away_meanwhile(shell: str, tmp_path: Path) -> None:
    """`rmdir` of the one between the two `mkdir` of the other."""
    run, runs = new_run(), tmp_path / "runs"
    program = stage.program(run, 60, (), {}, ()).replace("begin() {", f"{TAKEN_AWAY}begin() {{", 1).replace("/run/fabrictool", str(runs))
    try:
        done = subprocess.run([*shell.split(), "-s"], capture_output=True, text=True, input=program, timeout=60, check=False,
                              env={"PATH": "/usr/bin:/bin"})
        assert f"folder {runs}/{run}" in done.stdout, done
        assert (runs / run / "until").exists()
    finally:
        shutil.rmtree(runs)
        script("dash", "sweep.sh", run, "close")


@as_root
def test_a_folder_that_is_there_already_is_nobodys() -> None:
    run = new_run()
    Path(f"/run/fabrictool/{run}").mkdir(parents=True)
    try:
        done = staged("dash", run)
        assert done.returncode != 0
        assert stage.read(done.stdout) == "the run's folder could not be made"
        assert marked(run, "FABRICTOOL_GUARD") == set()
    finally:
        script("dash", "sweep.sh", run, "close")


@every_shell
def test_a_text_that_is_cut_short_does_nothing(shell: str) -> None:
    run = new_run()
    text = stage.program(run, 60, (), {"run1": ""}, ())
    for cut in (len(text) - 3, len(text) - 40, len(text) // 2):
        subprocess.run([*shell.split(), "-s"], input=text[:cut], capture_output=True, text=True, timeout=60, check=False)
        assert not Path(f"/run/fabrictool/{run}").exists()
        assert not Path(f"/tmp/fabrictool-{run}").exists()


@every_shell
def test_the_guard_ends_everything_when_no_sign_of_life_comes(shell: str) -> None:
    with folder(shell, alive_s=2) as made, sleeper(FABRICTOOL_RUN=made.run) as rank, sleeper(FABRICTOOL_RUN=new_run()) as foreign:
        until(lambda: not made.path.exists())
        until(lambda: marked(made.run, "FABRICTOOL_GUARD") == set())
        assert not alive(rank.pid)
        assert alive(foreign.pid)


@every_shell
def test_a_sign_of_life_puts_it_off(shell: str) -> None:
    with folder(shell, alive_s=3600) as made:
        before = int((made.path / "until").read_text())
        done = script(shell, "mark.sh", str(made.path), "7200", "run1")
        assert done.returncode == 0
        assert 3590 <= int((made.path / "until").read_text()) - before <= 3700
        assert float((made.path / "run1.start").read_text()) > 1e9
        assert script(shell, "mark.sh", "/nonesuch", "60", "").returncode == 1


@every_shell
def test_a_sign_of_life_keeps_the_lock_young(shell: str, tmp_path: Path) -> None:
    """To others a lock of 60 minutes is stale, and four slow runs take longer. Somebody else's is left alone."""
    lock, folder, old = tmp_path / "lock", tmp_path / new_run(), time.time() - 4000
    for made in (lock, folder):
        made.mkdir()
    body = resource("mark.sh").replace("/run/fabrictool.lock", str(lock))
    for holder, young in ((folder.name, True), ("another-run", False)):
        (lock / "run").write_text(f"{holder}\n")
        os.utime(lock, (old, old))
        subprocess.run([*shell.split(), "-c", body, "mark", str(folder), "60", ""], check=True, timeout=60)
        assert (lock.stat().st_mtime > old + 3000) is young


@every_shell
def test_the_guard_keeps_the_lock_young(shell: str, tmp_path: Path) -> None:
    """No sign of life comes within one run, whose start alone may take an hour. Somebody else's lock ages."""
    folder, old = tmp_path / new_run(), time.time() - 4000
    folder.mkdir()
    (folder / "sweep.sh").write_text(":")
    (folder / "until").write_text("99999999999\n")
    for holder, young in ((folder.name, True), ("another-run", False)):
        lock = tmp_path / holder / "lock"
        lock.mkdir(parents=True)
        (lock / "run").write_text(f"{holder}\n")
        os.utime(lock, (old, old))
        looked = tmp_path / f"{holder}.looked"
        path = tools(tmp_path / "bin", sleep=f": >{looked}; exec /bin/sleep 0.1")
        body = resource("guard.sh").replace("/run/fabrictool.lock", str(lock))
        with sleeper(*shell.split(), "-c", body, "guard", folder.name, str(folder), "", "", PATH=path):
            until(looked.exists)
        assert (lock.stat().st_mtime > old + 3000) is young


@every_shell
def test_the_guard_is_there_first_and_also_when_nobody_listens(shell: str) -> None:
    """The workstation is gone while the folder is being made: its pipe is closed."""
    run = new_run()
    text = stage.program(run, 4, (), {"run1": ""}, ()).replace("/run/systemd/system", NO_SYSTEMD)
    job = subprocess.Popen([*shell.split(), "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with job:
        assert job.stdin is not None
        assert job.stdout is not None
        job.stdout.close()
        job.stdin.write(text)
        job.stdin.close()
        until(lambda: marked(run, "FABRICTOOL_GUARD"))
    until(lambda: not Path(f"/run/fabrictool/{run}").exists() and not Path(f"/tmp/fabrictool-{run}").exists())
    until(lambda: marked(run, "FABRICTOOL_GUARD") == set())


FAKE_SSHD = """import subprocess, sys, time
open('/proc/self/comm', 'w').write('sshd')
print(subprocess.run(['sh', '-s'], input=sys.stdin.read(), text=True, capture_output=True).stdout, flush=True)
time.sleep(300)
"""


@as_root
def test_the_guard_sees_the_connection_end(tmp_path: Path) -> None:
    """A process called sshd that has started the shell, as on a node; when it is gone, so is everything else."""
    run, other = new_run(), new_run()
    text = stage.program(run, 3600, (), {"run1": ""}, ()).replace("/run/systemd/system", NO_SYSTEMD)
    lock = Path("/run/fabrictool.lock")
    sshd = subprocess.Popen([sys.executable, "-S", "-c", FAKE_SSHD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert sshd.stdin is not None
        assert sshd.stdout is not None
        sshd.stdin.write(text)
        sshd.stdin.close()
        line = ""
        while line != "staged":
            line = sshd.stdout.readline().strip()
        with sleeper(FABRICTOOL_RUN=run) as rank, sleeper(FABRICTOOL_RUN=other) as foreign:
            lock.mkdir()
            (lock / "run").write_text(run + "\n")
            assert marked(run, "FABRICTOOL_GUARD")
            assert alive(rank.pid)
            sshd.kill()
            sshd.wait()
            until(lambda: not Path(f"/run/fabrictool/{run}").exists() and not lock.exists())
            assert not alive(rank.pid)
            assert alive(foreign.pid)
    finally:
        sshd.kill()
        sshd.wait()
        sshd.stdout.close()  # type: ignore[union-attr]
        script("dash", "sweep.sh", run, "close")
        if lock.exists() and (lock / "run").read_text().strip() == run:
            subprocess.run(["rm", "-r", str(lock)], check=True)


def test_names_that_cannot_stand_in_a_path_are_refused() -> None:
    for run, name in (("../x", "run1"), (new_run(), "../run"), ("", "run1"), (new_run(), "Run 1")):
        with pytest.raises(ValueError, match="no run id"):
            stage.program(run, 60, (), {name: ""}, ())


@pytest.mark.parametrize("out", ["", "staged\n", "folder /x\nend\n", "folder x\nsource -\nend\nstaged\n", "\0\udcff"])
def test_an_answer_that_is_not_whole_is_none(out: str) -> None:
    assert isinstance(stage.read(out), str)
    assert stage.read("folder /run/x\nsource docker:a\nend\nstaged\n") == stage.Staged("/run/x", "docker:a")


def test_it_is_small_enough_for_any_shell() -> None:
    assert len(stage.program(new_run(), 60, (), {"run1": ""}, ())) < 100_000


@as_root
@pytest.mark.parametrize("closes", [True, False])
def test_the_lock_goes_with_the_folder_and_only_the_runs_own(closes: bool) -> None:
    """A second Ctrl-C between the end of a run and the command that freed its lock left every later run LOCKED."""
    lock = Path("/run/fabrictool.lock")
    for holder, stays in (("", False), (new_run(), True)):
        with folder("dash", alive_s=3600) as made:
            lock.mkdir()
            try:
                (lock / "run").write_text(f"{holder or made.run}\n")
                if closes:
                    script("dash", "sweep.sh", made.run, "close")
                else:
                    shutil.rmtree(made.path)
                    until(lambda: marked(made.run, "FABRICTOOL_GUARD") == set())
                assert lock.exists() == stays
            finally:
                shutil.rmtree(lock, ignore_errors=True)
