"""Units that systemd-run makes: a command in a group of its own, ended as a whole. There are no cgroups in a lab node: a process that
adopts orphans stands over each unit, so that nothing of it can get away.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fabrictool.lab.nodeside import container, services
from fabrictool.lab.nodeside.services import Run
from fabrictool.lab.nodeside.units import MANAGER

PR_SET_CHILD_SUBREAPER = 36
TICK_S = 0.02
EXEC_FAILED = 203  # systemd's EXIT_EXEC


@dataclass(frozen=True)
class Job:
    """`limit_s`: RuntimeMaxSec (0 = none). `stop_s`: between TERM and KILL. `forget`: nothing is known of it once it has ended."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 0.0
    stop_s: float = 90.0
    forget: bool = False
    memlock: bool = False


def start(job: Job) -> int:
    """Runs from now on. Gives a descriptor on which its outcome comes, one JSON line: status, result."""
    read, write = os.pipe()
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            os.close(read)
            _detach(write)
            _manage(job, write)
        os._exit(0)
    os.close(write)
    while services.run_of(job.name).pid == 0 and not _ended(read):
        time.sleep(TICK_S)
    return read


def _ended(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _detach(keep: int) -> None:
    """Out of whatever asked for it: an own session, no descriptors but one, orphans come here."""
    os.setsid()
    for fd in (int(n) for n in os.listdir("/proc/self/fd")):
        if fd not in (0, 1, 2, keep):
            with contextlib.suppress(OSError):
                os.close(fd)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _manage(job: Job, report: int) -> None:
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    child = os.fork()
    if child == 0:
        _become(job)
    services.remember(job.name, Run("active", "running", child, manager=os.getpid()))
    container.show_cgroup(child, f"/system.slice/{job.name}")
    deadline = time.monotonic() + job.limit_s if job.limit_s else float("inf")
    status, result = None, "success"
    while status is None:
        status = _reap(child)
        if status is None and (asked or time.monotonic() > deadline):
            result = "success" if asked else "timeout"
            status = _end(job.stop_s, child)
        elif status is None:
            time.sleep(TICK_S)
    _end(job.stop_s, None)
    if result == "success" and status and not asked:
        result = "exit-code" if status > 0 else "signal"
    _remember(job, status, result)
    os.write(report, json.dumps({"status": status, "result": result}).encode() + b"\n")


def _remember(job: Job, status: int, result: str) -> None:
    failed = result != "success"
    if job.forget or not failed:
        with contextlib.suppress(OSError):
            (MANAGER / "run" / job.name).unlink()
    else:
        services.remember(job.name, Run("failed", "failed", status=abs(status), result=result))


def _become(job: Job) -> None:
    """The unit's own program. Does not return."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        if job.memlock:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        null, out = os.open(os.devnull, os.O_RDONLY), os.open(services.JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        for fd, number in ((null, 0), (out, 1), (out, 2)):
            os.dup2(fd, number)
        os.chdir("/")
        os.execvpe(job.argv[0], list(job.argv), dict(job.env))
    finally:
        os._exit(EXEC_FAILED)


def _reap(wanted: int | None) -> int | None:
    """Take in whoever has ended; the status of `wanted` if it has: negative for a signal."""
    found = None
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == wanted:
            found = os.waitstatus_to_exitcode(raw)


def below(pid: int) -> list[int]:
    """Every process that comes from this one."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat") as stat:
                parents.setdefault(int(stat.read().rpartition(")")[2].split()[1]), []).append(int(name))
    found, queue = [], [pid]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def _end(stop_s: float, wanted: int | None) -> int:
    """TERM to all, then KILL; returns when nobody is left. The status of `wanted`, 0 if it was not among them."""
    status = 0
    deadline = time.monotonic() + stop_s
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in below(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        while below(os.getpid()):
            seen = _reap(wanted)
            status = status if seen is None else seen
            if number == signal.SIGTERM and time.monotonic() > deadline:
                break
            time.sleep(TICK_S)
    seen = _reap(wanted)
    return status if seen is None else seen
