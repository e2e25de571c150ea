"""What a lab writes down about itself: its plan, its ports, and the processes it started (by pid *and* start time)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.lab.errors import LabError
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import LabPlan, lab_plan
from fabrictool.lab.profiles import profile

GONE_WAIT_S = 5.0


@dataclass(frozen=True)
class Process:
    """A process that cannot be taken for another one: pids are used again, a start time (clock ticks since boot) with them is not."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started

    def send_kill(self) -> None:
        """SIGKILL, only if it is still that process."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL; returns when it has gone (within `GONE_WAIT_S`)."""
        self.send_kill()
        deadline = time.monotonic() + GONE_WAIT_S
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.005)


def start_time(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat; None when there is no such process, or only its zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def process(pid: int) -> Process:
    started = start_time(pid)
    if started is None:
        raise LabError(f"process {pid} ended as soon as it was started")
    return Process(pid, started)


def processes_in(netns: Iterable[Path]) -> list[Process]:
    """Every process whose network namespace is one of these pinned ones. A pinned namespace's number cannot be another's."""
    ours = set()
    for path in netns:
        try:
            ours.add((path.stat().st_dev, path.stat().st_ino))
        except OSError:
            continue
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            seen = (entry / "ns/net").stat()
        except OSError:
            continue
        started = start_time(int(entry.name))
        if (seen.st_dev, seen.st_ino) in ours and started is not None:
            found.append(Process(int(entry.name), started))
    return found


@dataclass
class Record:
    """lab.json. `ports`: node -> port on 127.0.0.1. `forwarder` None until it runs. `complete`: `up` came to its end."""

    plan: LabPlan
    ports: dict[str, int] = field(default_factory=dict)
    forwarder: Process | None = None
    complete: bool = False

    @classmethod
    def load(cls, layout: Layout) -> Record:
        """LabError if the file is not a lab's."""
        try:
            raw = json.loads(layout.record.read_text())
            plan = lab_plan(raw["name"], profile(raw["profile"]), raw["nodes"])
            forwarder = Process(*raw["forwarder"]) if raw["forwarder"] else None
            return cls(plan, dict(raw["ports"]), forwarder, bool(raw["complete"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LabError(f"{layout.record}: cannot be read as a lab's record ({error}); "
                           f"`fabrictool lab down --name {layout.name}` clears it away") from error

    def save(self, layout: Layout) -> None:
        raw = {"name": self.plan.name, "profile": self.plan.profile.name, "nodes": len(self.plan.nodes), "ports": self.ports,
               "forwarder": [self.forwarder.pid, self.forwarder.started] if self.forwarder else None, "complete": self.complete}
        temp = layout.record.with_suffix(".new")
        temp.write_text(json.dumps(raw, indent=1))
        temp.replace(layout.record)
