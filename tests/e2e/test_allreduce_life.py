"""A run over two nodes whose workstation dies: at the launch, while ranks start, in the middle and at the end. Within the run's own limit
nothing of it is left on any node: no unit, container, process, port or file. And Ctrl-C ends everything before it returns."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.talk import interrupt, started
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
PROGRAM = "/usr/local/bin/standby"
# Instead of all_reduce_perf, or of Python with our own program: what each phase needs to last. Both are first asked what they are.
ASKED = '#!/bin/sh\ncase "$*" in *--help*) echo "[-b,x]"; exit 0 ;; *version_info*) echo 3.12.1; exit 0 ;; esac\n'
HANGS = ASKED + "(setsid sleep 7001 &)\nexec sleep 7002\n"
RUNS = ASKED + ("echo '# Collective test starting: standby'\n"
                "exec python3 -S -c 'import socket, time; s = socket.create_server((\"0.0.0.0\", 0)); time.sleep(7003)'\n")
ENDS = ASKED + "setsid sh -c 'trap \"\" TERM; while :; do sleep 7; done' >/dev/null 2>&1 </dev/null &\necho done\n"
LIMIT_S = 200 + 195  # what the node itself allows a run of this size (probes/limits.py): guard and start together


@dataclass(frozen=True)
class Phase:
    """`program`: what ranks are; `reached`: a pattern in a node's process list that shows it."""

    program: str
    reached: str


PHASES = {
    "prepare": Phase(ENDS, ""),  # as soon as there is a folder
    "launch": Phase(ENDS, r"ranks\.sh"),
    "init": Phase(HANGS, r"sleep 7002"),
    "middle": Phase(RUNS, r"sleep\(7003\)"),
    "teardown": Phase(ENDS, r"fabrictool-sweep|run=\$1 verb=\$2"),
}
LAUNCHERS = {"mpirun": f"{{launcher: mpirun, program: {PROGRAM}, size: 64MiB, runs: 1}}",
             "direct": f"{{launcher: direct, python: {PROGRAM}, size: 64MiB, runs: 1}}"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("life", 2) as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        lab.keep()
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.restore()
    return shared


def spec(lab: Lab, launcher: str, program: str) -> str:
    """The lab's spec with another launcher, whose program is on every node."""
    for node in lab.nodes:
        lab.write_file(node, PROGRAM, program, 0o755)
    text = re.sub(r"^collective: .*$", f"collective: {LAUNCHERS[launcher]}", (lab.layout.root / "lab.yaml").read_text(), flags=re.M)
    path = lab.layout.root / f"{launcher}.yaml"
    path.write_text(text)
    return str(path)


def run_id(lab: Lab) -> str:
    """Of the run under way, by its folder."""
    names = lab.exec(lab.nodes[0], ["ls", "/run/fabrictool"]).out.split()
    return names[0] if names else ""


def left(lab: Lab, node: str, run: str) -> str:
    """Everything on the node that has to do with the run: by its id in /proc, by its folder and lock, and every port but SSH's."""
    look = ("for p in /proc/[0-9]*; do { tr '\\0' '\\n' <$p/environ; tr '\\0' ' ' <$p/cmdline; } 2>/dev/null | grep -q \"$1\" && "
            "[ \"${p#/proc/}\" != \"$$\" ] && echo \"process ${p#/proc/} $(tr '\\0' ' ' <$p/cmdline | cut -c1-100)\"; done; "
            "ls -d /run/fabrictool/* /tmp/fabrictool-* /run/fabrictool.lock 2>/dev/null; ss -Hltn | grep -v ':22 '; "
            "docker ps -a --format '{{.Names}}' | grep -- \"$1\"; true")
    mine = lab.exec(node, ["sh", "-c", look, "sh", run]).out
    return "\n".join(line for line in mine.splitlines() if f"sh {run}" not in line)


def ports(lab: Lab) -> dict[str, str]:
    return {node: lab.exec(node, ["ss", "-Hltn"]).out for node in lab.nodes}


def seen(lab: Lab, pattern: str) -> bool:
    return any(re.search(pattern, outside.processes(lab, node)) for node in lab.nodes)


def begun(lab: Lab, folder: Path, launcher: str, phase: Phase, act: Callable[[subprocess.Popen[bytes]], None]) -> str:
    """Start a check, wait for the phase, act; the run's id."""
    file = spec(lab, launcher, phase.program)
    with started(folder, "check", "allreduce", "-i", file, "-o", "json") as job:
        outside.until(lambda: (job.poll() is not None) or (seen(lab, phase.reached) and run_id(lab)))
        assert job.poll() is None, (folder / "err").read_text()
        run = run_id(lab)
        act(job)
    return run


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("phase", PHASES)
def test_the_workstation_dies(phase: str, launcher: str, lab: Lab, tmp_path: Path) -> None:
    before = {node: left(lab, node, "no-such-run") for node in lab.nodes}

    def die(job: subprocess.Popen[bytes]) -> None:
        job.kill()
        assert job.wait() == -signal.SIGKILL

    run = begun(lab, tmp_path, launcher, PHASES[phase], die)
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", run)
    begin = time.monotonic()
    for node in lab.nodes:
        outside.until(lambda node=node: left(lab, node, run) == before[node], LIMIT_S)  # type: ignore[misc]
    assert time.monotonic() - begin < LIMIT_S
    for node in lab.nodes:
        assert not re.search("700[123]|standby", outside.processes(lab, node))


@pytest.mark.parametrize(("phase", "launcher"), [("prepare", "mpirun"), ("launch", "direct"), ("init", "mpirun"), ("middle", "direct"),
                                                 ("teardown", "mpirun")])
def test_ctrl_c_ends_everything_before_it_returns(phase: str, launcher: str, lab: Lab, tmp_path: Path) -> None:
    ended: list[fleet.Ended] = []
    run = begun(lab, tmp_path, launcher, PHASES[phase], lambda job: ended.append(interrupt(job, tmp_path)))
    assert [left(lab, node, run) for node in lab.nodes] == ["", ""]
    (done,) = ended
    assert done.rc == 130, done.all
    (result,) = fleet.report(done)["results"]
    assert result["status"] == "unknown"
    assert "interrupted" in result["findings"][0]["why"]
    assert "Traceback" not in done.err


def test_what_is_not_of_the_run_lives_on(lab: Lab, tmp_path: Path) -> None:
    """A process of the same name, and one that only names the run."""
    node = lab.nodes[1]
    foreign = lab.exec(node, ["sh", "-c", "setsid sleep 7001 >/dev/null 2>&1 </dev/null & echo $!"]).out.strip()

    def die(job: subprocess.Popen[bytes]) -> None:
        named = lab.exec(node, ["sh", "-c", f"setsid sh -c 'sleep 7004; :' ft-{run_id(lab)}-0 >/dev/null 2>&1 </dev/null & echo $!"])
        assert named.ok
        job.kill()
        job.wait()

    run = begun(lab, tmp_path, "mpirun", PHASES["init"], die)
    outside.until(lambda: not any(lab.exec(n, ["ls", "/run/fabrictool"]).ok for n in lab.nodes), LIMIT_S)
    alive = re.sub(" +", " ", outside.processes(lab, node))
    assert f"{foreign} sleep 7001" in alive
    assert alive.count("sleep 7001") == 1
    assert "sleep 7002" not in alive
    assert f"ft-{run}-0" in alive


def test_nothing_is_left_after_a_run_that_ended_by_itself(lab: Lab, tmp_path: Path) -> None:
    for launcher in LAUNCHERS:
        done = fleet.tool("check", "allreduce", "-i", spec(lab, launcher, ASKED + "echo no result; exit 3\n"), "-o", "json")
        assert done.rc == 1, done.all
        assert [left(lab, node, "20[0-9]*T[0-9]*Z-") for node in lab.nodes] == ["", ""]
