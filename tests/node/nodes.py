"""Scripts of fabrictool/node/ run for real on this machine, each test under a run id of its own, against processes of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictool.snapshot.collector import resource

SHELLS = [s for s in ("dash", "bash --posix", "busybox sh") if shutil.which(s.split()[0])]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
every_shell = pytest.mark.parametrize("shell", SHELLS)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes folders below /run and becomes another user, which needs root")
NO_SYSTEMD = "/nonesuch/systemd"


def new_run() -> str:
    """Of the form that the engine uses, and like no other on this machine."""
    return f"19990101T000000Z-{secrets.token_hex(8)}"


def text(name: str, systemd: str = NO_SYSTEMD) -> str:
    """A script as it is sent, for a machine on which systemd runs or not, whatever this one has."""
    return resource(name).replace("/run/systemd/system", systemd)


def script(shell: str, name: str, *args: str, systemd: str = NO_SYSTEMD, path: str = PATH, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it as the engine does: its text as an argument of the shell. Scripts that set their own PATH get `path` there too."""
    body = text(name, systemd).replace(f"PATH={PATH}", f"PATH={path}")
    program, *options = shell.split()
    return subprocess.run([str(shutil.which(program)), *options, "-c", body, "test", *args], capture_output=True, text=True, timeout=120,
                          check=False, env={"PATH": path, "LC_ALL": "C", **env}, stdin=subprocess.DEVNULL)


def until(what: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a state of the world; the limit is for a broken test, not a measurement."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not come to pass"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def marked(run: str, variable: str = "FABRICTOOL_RUN") -> set[int]:
    """Processes whose environment holds exactly this run's id."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"{variable}={run}".encode() in words:
                found.add(int(entry.name))
    return found


@contextmanager
def sleeper(*argv: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of this test alone, ended by its own id."""
    proc = subprocess.Popen(argv or ("sleep", "300"), env={"PATH": PATH, **env}, start_new_session=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: alive(proc.pid))
        yield proc
    finally:
        if proc.poll() is None:
            os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


def tools(folder: Path, **bodies: str) -> str:
    """Small programs in a folder before the real ones on PATH. A body is sh; `$LOG` is a file beside them."""
    folder.mkdir(exist_ok=True)
    for name, body in bodies.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\nLOG={folder}/log\n{body}\n")
        file.chmod(0o755)
    return f"{folder}:{PATH}"
