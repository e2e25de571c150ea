"""What a run has started is ended by its id, and nothing else is."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.node.nodes import alive, every_shell, marked, new_run, script, sleeper, tools, until


def left_of(shell: str, run: str, *ports: str, **words: str) -> list[str]:
    """What is left, without the managers that this machine may have and that do not answer here."""
    lines = script(shell, "sweep.sh", run, "left", *ports, **words).stdout.splitlines()
    return [ln for ln in lines if not ln.startswith("unasked ")]


@every_shell
def test_only_processes_with_the_id_in_their_environment_are_ended(shell: str) -> None:
    run, other = new_run(), new_run()
    with (sleeper(FABRICTOOL_RUN=run) as mine, sleeper("sh", "-c", "sleep 300 & wait", FABRICTOOL_RUN=run) as parent,
          sleeper("sh", "-c", "sleep 300; :", f"ft-{run}", f"FABRICTOOL_RUN={run}") as named, sleeper(FABRICTOOL_RUN=other) as foreign,
          sleeper(FABRICTOOL_RUN=f"{run}0") as longer, sleeper(FABRICTOOL_RUNS=run) as similar,
          sleeper(NOTE=f"x\nFABRICTOOL_RUN={run}\ny") as inside, sleeper(FABRICTOOL_GUARD=run) as guard):
        until(lambda: len(marked(run)) == 3)
        *left, last = left_of(shell, run)
        assert last == "end"
        assert sorted(int(line.split()[1]) for line in left) == sorted(marked(run))
        assert f"process {mine.pid} sleep 300 " in left
        done = script(shell, "sweep.sh", run, "end")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert marked(run) == set()
        assert not alive(mine.pid)
        assert not alive(parent.pid)
        for survivor in (named, foreign, longer, similar, inside, guard):
            assert alive(survivor.pid), survivor.args
        assert left_of(shell, run) == ["end"]


@every_shell
def test_one_that_ignores_term_is_killed(shell: str) -> None:
    run = new_run()
    with sleeper("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", FABRICTOOL_RUN=run) as stubborn:
        until(lambda: "sh" in Path(f"/proc/{stubborn.pid}/comm").read_text())
        script(shell, "sweep.sh", run, "end")
        assert not alive(stubborn.pid)


LISTEN = "import socket,time; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1],flush=True); time.sleep(300)"


@every_shell
def test_ports_that_are_still_open(shell: str) -> None:
    run = new_run()
    proc = subprocess.Popen([sys.executable, "-S", "-c", LISTEN], env={"FABRICTOOL_RUN": run}, stdout=subprocess.PIPE, text=True)
    with proc, socket.create_server(("127.0.0.1", 0)) as foreign:
        assert proc.stdout is not None
        port, other = int(proc.stdout.readline()), foreign.getsockname()[1]
        assert left_of(shell, run)[1:] == [f"port {port}", "end"]
        assert left_of(shell, run, str(other), "1", "x")[1:] == [f"port {port}", f"port {other}", "end"]
        script(shell, "sweep.sh", run, "end")
        assert left_of(shell, run, str(port)) == ["end"]


DOCKER = """case "$1" in
  ps) cat "${0%/*}/boxes" ;;
  rm) echo "$@" >>"$LOG"; grep -v "$3" "${0%/*}/boxes" >"${0%/*}/b"; mv "${0%/*}/b" "${0%/*}/boxes" ;;
esac"""
SYSTEMCTL = """case "$1" in
  list-units) cat "${0%/*}/units" ;;
  stop) echo "$@" >>"$LOG"; grep -v "$2" "${0%/*}/units" >"${0%/*}/u"; mv "${0%/*}/u" "${0%/*}/units" ;;
esac"""
SQUEUE = 'cat "${0%/*}/jobs"'
SCANCEL = 'echo "$@" >>"$LOG"; : >"${0%/*}/jobs"'


@every_shell
def test_units_containers_and_jobs_of_the_run(shell: str, tmp_path: Path) -> None:
    run = new_run()
    path = tools(tmp_path / "bin", docker=DOCKER, systemctl=SYSTEMCTL, squeue=SQUEUE, scancel=SCANCEL)
    (tmp_path / "bin" / "boxes").write_text(f"{'a' * 64} ft-{run}-0\n{'b' * 64} vllm-ft-{run}-1\n{'c' * 64} ft-{run}0-1\n")
    (tmp_path / "bin" / "units").write_text(f"ft-{run}-launcher.service loaded active running x\n● ft-{run}-8.service loaded failed x\n"
                                            f"ft-{run}-guard.service loaded active running x\n")
    (tmp_path / "bin" / "jobs").write_text(f"77 ft-{run} R\n78 ft-{run}0 R\n79 ft-{run} CG\n")
    left = left_of(shell, run, systemd=str(tmp_path), path=path)
    assert left == [f"unit ft-{run}-launcher.service", f"unit ft-{run}-8.service", f"container ft-{run}-0", "job 77", "end"]
    script(shell, "sweep.sh", run, "end", systemd=str(tmp_path), path=path)
    log = (tmp_path / "bin" / "log").read_text().splitlines()
    assert log == [f"stop ft-{run}-launcher.service", f"stop ft-{run}-8.service", f"rm -f {'a' * 64}", "77"]
    assert left_of(shell, run, systemd=str(tmp_path), path=path) == ["end"]


@every_shell
def test_a_manager_that_does_not_answer_is_named(shell: str, tmp_path: Path) -> None:
    run = new_run()
    broken = {"docker": "exit 7", "systemctl": "exit 1", "squeue": f"echo '78 ft-{run} R'; exit 3"}
    path = tools(tmp_path / "bin", **broken)
    left = script(shell, "sweep.sh", run, "left", systemd=str(tmp_path), path=path).stdout.splitlines()
    assert left == ["unasked systemd 1", "unasked docker 7", "unasked slurm 3", "end"]
    path = tools(tmp_path / "well", docker="exit 0", systemctl="exit 0", squeue="exit 0")
    assert script(shell, "sweep.sh", run, "left", systemd=str(tmp_path), path=path).stdout == "end\n"


@every_shell
def test_managers_that_hang_are_waited_for_once(shell: str, tmp_path: Path) -> None:
    """Three of them, asked three times for 10 s each, took all the time that a node has for this: nothing was told of it then. Those that
    answer are asked each time."""
    run = new_run()
    called = 'echo "${0##*/}" >>"$LOG"'
    hung = dict.fromkeys(("docker", "systemctl", "squeue"), f"{called}; exit 124")  # as timeout(1) ends
    path = tools(tmp_path / "bin", **hung)
    rows = script(shell, "sweep.sh", run, "close", systemd=str(tmp_path), path=path).stdout.splitlines()
    assert rows == ["unasked systemd 124", "unasked docker 124", "unasked slurm 124", "end"]
    assert (tmp_path / "bin" / "log").read_text().split() == ["systemctl", "docker", "squeue"]
    path = tools(tmp_path / "well", docker=called, systemctl=called, squeue=called)
    assert script(shell, "sweep.sh", run, "close", systemd=str(tmp_path), path=path).stdout == "end\n"
    assert (tmp_path / "well" / "log").read_text().split().count("docker") == 3


@every_shell
def test_one_that_hangs_hides_nothing_of_the_others(shell: str, tmp_path: Path) -> None:
    run = new_run()
    path = tools(tmp_path / "bin", docker=DOCKER, systemctl="exit 124", squeue=SQUEUE, scancel=SCANCEL)
    (tmp_path / "bin" / "boxes").write_text(f"{'a' * 64} ft-{run}-0\n")
    (tmp_path / "bin" / "jobs").write_text(f"77 ft-{run} R\n")
    rows = script(shell, "sweep.sh", run, "left", systemd=str(tmp_path), path=path).stdout.splitlines()
    assert rows == ["unasked systemd 124", f"container ft-{run}-0", "job 77", "end"]
    script(shell, "sweep.sh", run, "end", systemd=str(tmp_path), path=path)
    assert (tmp_path / "bin" / "log").read_text().splitlines() == [f"rm -f {'a' * 64}", "77"]


@every_shell
def test_a_run_id_that_is_none(shell: str) -> None:
    for run in ("", "*", "../x", "a b"):
        assert script(shell, "sweep.sh", run, "end").returncode == 64
    assert script(shell, "sweep.sh", new_run(), "everything").returncode == 64
