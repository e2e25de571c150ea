"""Taking a lab down: processes, mounts, namespaces, files. Works from the run folder and the kernel's own lists, so also for a lab
of which everything was killed or that was only half built."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from fabrictool.lab import node
from fabrictool.lab.errors import LabError
from fabrictool.lab.nodeside import syscalls
from fabrictool.lab.paths import Layout, base
from fabrictool.lab.record import Process, Record, processes_in

WAIT_S = 10


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def mounts_below(root: Path) -> list[str]:
    """Mount points in and at `root`, innermost first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [_unescape(line.split()[4]) for line in lines]
    return [p for p in reversed(points) if p == str(root) or p.startswith(f"{root}/")]


def _processes(layout: Layout) -> list[Process]:
    """Recorded ones, and all that live in the lab's network namespaces. Never this one."""
    found = processes_in(sorted((layout.root / "netns").glob("*")) if (layout.root / "netns").is_dir() else [])
    try:
        recorded = Record.load(layout).forwarder
        found += [recorded] if recorded else []
    except LabError:
        pass  # half built: the forwarder is what would be recorded last
    names = [p.name for p in layout.nodes.iterdir()] if layout.nodes.is_dir() else []
    found += [p for p in (node.process_of(layout, name) for name in names) if p]
    return [p for p in found if p.pid != os.getpid() and p.alive]


def clear(layout: Layout) -> None:
    """Nothing of the lab is left afterwards. LabError if something resists."""
    deadline = time.monotonic() + WAIT_S
    while alive := _processes(layout):
        for process in alive:
            process.send_kill()
        for process in alive:
            process.kill()
        if time.monotonic() > deadline:
            raise LabError(f"lab {layout.name}: processes do not end: {', '.join(str(p.pid) for p in alive)}")
    for point in mounts_below(layout.root):
        syscalls.umount(point)
    shutil.rmtree(layout.root, ignore_errors=False)
    layout.lock.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other labs, or a folder that the user chose
        layout.root.parent.rmdir()


def names(folder: Path | None = None) -> list[str]:
    """The labs of this machine (below `folder`)."""
    root = folder or base()
    return sorted(p.name for p in root.iterdir() if (p / "lab.json").exists()) if root.is_dir() else []
