"""Services of a lab node: really started, as their unit files say, and remembered as systemd would."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass

from fabrictool.lab.nodeside import container
from fabrictool.lab.nodeside.units import DEFAULT_TIMEOUT_S, MANAGER, Unit, environment, load, seconds, specifiers, wanted, words_of

JOURNAL = "/var/log/lab-journal"  # what services print


@dataclass
class Run:
    """What the manager remembers of a unit: `active` as systemd spells it."""

    active: str = "inactive"
    sub: str = "dead"
    pid: int = 0
    status: int = 0
    result: str = "success"
    manager: int = 0  # the process over a transient unit: it ends all of it when it gets TERM


def run_of(name: str) -> Run:
    try:
        run = Run(**json.loads((MANAGER / "run" / name).read_text()))
    except OSError:
        return Run()
    if run.pid and not os.path.exists(f"/proc/{run.pid}"):
        return Run("inactive", "dead")
    return run


def remember(name: str, run: Run) -> None:
    (MANAGER / "run").mkdir(parents=True, exist_ok=True)
    new = MANAGER / f"{name}.{os.getpid()}"
    new.write_text(json.dumps(run.__dict__))
    new.replace(MANAGER / "run" / name)  # somebody may read it at this moment


def _argv(line: str, unit: Unit) -> tuple[list[str], bool]:
    """A command line and whether its failure is ignored (`-`). Variables are put in as systemd does: only as whole words."""
    prefix = re.match(r"[-@:+!|]*", line)
    marks = prefix[0] if prefix else ""
    env = environment(unit)
    words: list[str] = []
    for word in (specifiers(w, unit.name) for w in words_of(line[len(marks):])):
        alone = re.fullmatch(r"\$([A-Za-z_]\w*)", word)
        if alone:
            words += env.get(alone[1], "").split()
        else:
            words.append(re.sub(r"\$\{([A-Za-z_]\w*)\}", lambda m: env.get(m[1], ""), word).replace("$$", "$"))
    return words, "-" in marks


def start(name: str, limit_s: float | None = None) -> Run:
    """Start a service: the real commands of its file. A oneshot runs to its end, anything else is left running."""
    unit = load(name)
    limit = seconds(unit.last("Service.TimeoutStartSec") or unit.last("Service.TimeoutSec"), DEFAULT_TIMEOUT_S)
    limit = min(limit, limit_s) if limit_s else limit
    deadline = time.monotonic() + limit
    steps = [(k, line) for k in ("ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost")
             for line in unit.settings.get(f"Service.{k}", ())]
    if unit.kind != "oneshot":
        return _start_simple(unit)
    for key, line in steps:
        status, result = _run_step(unit, line, deadline - time.monotonic())
        if status and key == "ExecCondition" and status < 255:
            run = Run(status=status, result="exec-condition")
            remember(name, run)
            return run
        if status:
            run = Run("failed", "failed", status=status, result=result)
            remember(name, run)
            return run
    stays = unit.last("Service.RemainAfterExit") in ("yes", "true", "1", "on")
    run = Run("active", "exited") if stays else Run("inactive", "dead")
    remember(name, run)
    return run


def _run_step(unit: Unit, line: str, limit_s: float) -> tuple[int, str]:
    argv, ignore = _argv(line, unit)
    if not argv:
        return 0, "success"
    try:
        with open(os.devnull) as null, open(JOURNAL, "a") as journal:
            status = subprocess.run(argv, env=environment(unit), stdin=null, stdout=journal, stderr=journal, cwd="/",
                                    timeout=max(limit_s, 0.01), check=False).returncode
    except subprocess.TimeoutExpired:
        return (0, "success") if ignore else (1, "timeout")
    except OSError:
        status = 203  # systemd's EXIT_EXEC
    return (0, "success") if ignore or status == 0 else (abs(status), "exit-code" if status > 0 else "signal")


def _start_simple(unit: Unit) -> Run:
    old = run_of(unit.name)
    if old.active == "active":
        return old
    lines = unit.settings.get("Service.ExecStart", ())
    argv = _argv(lines[0], unit)[0] if lines else []
    try:
        with open(os.devnull) as null, open(JOURNAL, "a") as journal:
            child = subprocess.Popen(argv, env=environment(unit), stdin=null, stdout=journal, stderr=journal, cwd="/",
                                     start_new_session=True)
        container.show_cgroup(child.pid, f"/system.slice/{unit.name}")
        run = Run("active", "running", child.pid)
    except (OSError, IndexError):
        run = Run("failed", "failed", status=203, result="exit-code")
    remember(unit.name, run)
    return run


def stop(name: str) -> None:
    run = run_of(name)
    if run.manager:
        with contextlib.suppress(OSError):
            os.kill(run.manager, signal.SIGTERM)
        while os.path.exists(f"/proc/{run.manager}/fd") and run_of(name).active == "active":
            time.sleep(0.02)
        return
    if run.pid:
        with contextlib.suppress(OSError):
            os.killpg(run.pid, signal.SIGTERM)
    remember(name, Run())


def start_enabled(limit_s: float) -> list[str]:
    """Start what is enabled; the names of those that failed."""
    failed = []
    for name in wanted():
        unit = load(name)
        if unit.fragment and not unit.masked and start(name, limit_s).active == "failed":
            failed.append(name)
    return failed
