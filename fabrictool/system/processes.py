"""What processes may lock, and which libraries they have (section `system.processes`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections

_DOCKER = re.compile(r"docker (\d{1,3})")
IPC_LOCK = 14  # bit of CAP_IPC_LOCK (linux/capability.h): whoever has it is under no limit when memory is registered (ib_umem_get)


@dataclass(frozen=True, slots=True)
class Locked:
    """RLIMIT_MEMLOCK, bytes; None: unlimited."""

    soft: int | None
    hard: int | None

    def __str__(self) -> str:
        soft = shown(self.soft)
        return soft if self.hard == self.soft else f"{soft} (can be raised to {shown(self.hard)})"


def shown(size: int | None) -> str:
    if size is None:
        return "unlimited"
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"


def limit(soft: str, hard: str, unit_bytes: int) -> Locked | None:
    """Two words, each a number of units or `unlimited`; None where they are anything else. systemd says infinity."""
    sizes: list[int | None] = []
    for word in (soft, hard):
        if word in ("unlimited", "infinity"):
            sizes.append(None)
        elif re.fullmatch(r"\d{1,20}", word):
            size = int(word) * unit_bytes
            sizes.append(None if size >= (1 << 64) - unit_bytes else size)  # RLIM_INFINITY as a number
        else:
            return None
    return Locked(sizes[0], sizes[1])


@dataclass(frozen=True, slots=True)
class Process:
    """`may_lock_all`: it has CAP_IPC_LOCK. `libraries`: paths as the process sees them."""

    pid: int
    locked: Observed[Locked]
    may_lock_all: Observed[bool]
    libraries: tuple[str, ...] = ()

    @property
    def cudart(self) -> Observed[str]:
        """The CUDA runtime that it has loaded."""
        found = sorted({m[1] for lib in self.libraries if (m := re.search(r"libcudart[^/]{0,40}\.so\.(\d{1,3}\.\d[\d.]{0,20})", lib))})
        return Value(", ".join(found)) if found else Absent("a CUDA runtime library of its own with a version in its name")


def read(snap: Snapshot) -> Mapping[int, Process] | Unreadable:
    raw = snap.raw(sections.PROCESSES.name)
    if isinstance(raw, Unreadable):
        return raw
    text = raw.out.replace("\r\n", "\n")
    if not (text == "end\n" or text.endswith("\nend\n")):
        return Unreadable(Reason.CUT, f"{sections.PROCESSES.name}: the end is missing")
    found: dict[int, Process] = {}
    rows: list[tuple[int, list[str]]] = []
    for line in text.split("\n")[:-2]:
        kind, _, rest = line.partition(" ")
        if kind == "p" and re.fullmatch(r"[0-9]{1,18}", rest):
            rows.append((int(rest), []))
        elif rows and kind in ("m", "k", "l"):
            rows[-1][1].append(line)
        elif line != "more" and not _DOCKER.fullmatch(line):
            return Unreadable(Reason.GARBLED, f"{sections.PROCESSES.name}: {line[:60]!r}")
    for pid, body in rows:
        found[pid] = _process(pid, body)
    return found


def missing(snap: Snapshot) -> Unreadable:
    """Why a process that runs may not be among those of `read`."""
    raw = snap.raw(sections.PROCESSES.name)
    lines = [] if isinstance(raw, Unreadable) else raw.out.splitlines()
    silent = next((m for line in lines if (m := _DOCKER.fullmatch(line))), None)
    if silent is not None:
        return Unreadable(Reason.TIMEOUT if silent[1] == "124" else Reason.FAILED,
                          f"docker, asked for the processes of its containers, ended with status {silent[1]}")
    if "more" in lines:
        return Unreadable(Reason.CUT, "more processes run than are looked at")
    return Unreadable(Reason.NOT_COLLECTED, "it ended, or began, while the node was read: run again")


def _process(pid: int, body: list[str]) -> Process:
    locked: Observed[Locked] = Unreadable(Reason.FAILED, f"/proc/{pid}/limits: could not be read")
    free: Observed[bool] = Unreadable(Reason.FAILED, f"/proc/{pid}/status: could not be read")
    libraries = []
    for line in body:
        kind, _, rest = line.partition(" ")
        words = rest.split()
        if kind == "m" and len(words) == 2 and words != ["?", "?"]:
            got = limit(words[0], words[1], 1)
            locked = Value(got) if got else Unreadable(Reason.GARBLED, f"/proc/{pid}/limits: {rest[:60]!r}")
        elif kind == "k" and re.fullmatch(r"[0-9a-fA-F]{1,16}", rest):
            free = Value(bool(int(rest, 16) >> IPC_LOCK & 1))
        elif kind == "l":
            libraries.append(rest)
    return Process(pid, locked, free, tuple(libraries))
