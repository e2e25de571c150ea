"""The section `consumers`: what runs on a node and with which NCCL/Gloo/UCX environment. Two rooms judge it.

Values are what a process was started with (/proc/PID/environ); a process that changes its own environment does not show here, and
one that overwrote it (setproctitle) shows none, which is unreadable and not "unset".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot.model import Snapshot
from fabrictool.snapshot.sections import script

SECTION = script("consumers", "consumers.sh", root=True, timeout_s=20, max_bytes=1_048_576)

# The only names that leave a node; the script on the node has the same list, and this one is applied again to what it sent.
ALLOWED = re.compile(r"NCCL_[A-Z0-9_]+|GLOO_[A-Z0-9_]+|UCX_[A-Z0-9_]+|TP_SOCKET_IFNAME|MASTER_ADDR|VLLM_HOST_IP|SGLANG_HOST_IP"
                     r"|SGLANG_LOCAL_IP_NIC|HOST_IP|CUTE_DSL_ARCH|VLLM_NIXL_SIDE_CHANNEL_HOST|VLLM_NIXL_SIDE_CHANNEL_PORT")
# What ranks of a test run get of a consumer's environment. It stays on the node, where NCCL itself tells what it has found.
RANKS = re.compile(ALLOWED.pattern + r"|TP_[A-Z0-9_]+|NVSHMEM_[A-Z0-9_]+|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_ORDER")
TICKS_PER_S = 100  # USER_HZ, fixed in the kernel's ABI for every architecture that carries a GPU


@dataclass(frozen=True, slots=True)
class Process:
    """`started`: seconds since 1970. `libraries`: the NCCL libraries it has mapped. `versions`: of these, where they can be told."""

    pid: int
    ppid: int
    started: float
    box: str
    unit: str
    env: Observed[Mapping[str, str]]
    libraries: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inside:
    """A file as the container sees it, reduced to address lines or allow-listed names."""

    text: str
    mtime: int | None


@dataclass(frozen=True, slots=True)
class Container:
    pid: int
    id: str
    name: str
    created: float | None
    hostname: str
    image: str
    files: Mapping[str, Observed[Inside]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Consumer:
    """Something the spec names and that runs. `label` is docker:NAME or systemd:UNIT."""

    label: str
    processes: tuple[Process, ...]
    container: Container | None = None

    @property
    def ranks(self) -> tuple[Process, ...]:
        """The processes that count: those with NCCL loaded, else all whose environment can be read, else all."""
        readable = tuple(p for p in self.processes if isinstance(p.env, Value))
        return tuple(p for p in readable if p.libraries) or readable or self.processes

    @property
    def born(self) -> float | None:
        """When its environment was fixed, seconds since 1970: a container's at its creation, a service's at its start."""
        if self.container is not None:
            return self.container.created
        return min((p.started for p in self.processes), default=None)


@dataclass(frozen=True, slots=True)
class Consumers:
    """`mtimes`: when our own files were last written, seconds since 1970. `partial`: processes were left out."""

    containers: tuple[Container, ...] | Unreadable
    processes: tuple[Process, ...]
    units: Mapping[str, int]
    mtimes: Mapping[str, int]
    partial: bool = False

    def named(self, pattern: str) -> tuple[Consumer, ...] | Unreadable:
        """The running consumers of a spec pattern, docker:GLOB or systemd:UNIT."""
        kind, _, glob = pattern.partition(":")
        if kind == "docker":
            if isinstance(self.containers, Unreadable):
                return self.containers
            hit = [c for c in self.containers if fnmatchcase(c.name, glob)]
            return tuple(Consumer(f"docker:{c.name}", tuple(p for p in self.processes if p.box in (c.id, f"pid:{c.pid}")
                                                          or p.pid == c.pid), c) for c in hit)
        unit = glob if "." in glob else f"{glob}.service"
        units = [u for u in self.units if fnmatchcase(u, unit)]
        return tuple(Consumer(f"systemd:{u}", tuple(p for p in self.processes if p.unit == u)) for u in units)


def read(snap: Snapshot) -> Consumers | Unreadable:
    """Whole or not at all: without its end marker the section is cut short and says nothing."""
    raw = snap.raw(SECTION.name)
    if isinstance(raw, Unreadable):
        return raw
    if not raw.out.endswith("\nend\n"):
        return Unreadable(Reason.CUT, f"consumers: the end is missing ({raw.tail})" if raw.rc else "consumers: the end is missing")
    try:
        return _parse(raw.out.split("\n")[:-2])
    except (ValueError, IndexError) as error:
        return Unreadable(Reason.GARBLED, f"consumers: {error}"[:200])


def _parse(lines: list[str]) -> Consumers:
    boxes: list[Container] = []
    processes: list[tuple[list[str], list[str]]] = []
    units: dict[str, int] = {}
    mtimes: dict[str, int] = {}
    files: dict[tuple[int, str], tuple[str, str, list[str]]] = {}
    docker: Unreadable | None = Unreadable(Reason.GARBLED, "consumers: nothing said about docker")
    boot: int | None = None
    partial = False
    body: list[str] = []
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "docker":
            docker = _docker(rest)
        elif kind == "c":
            boxes.append(_container(rest))
        elif kind == "m":
            when, _, path = rest.partition(" ")
            if when.isdigit():
                mtimes[path] = int(when)
        elif kind == "boot":
            boot = int(rest)
        elif kind == "u":
            pid, _, unit = rest.partition(" ")
            units[unit] = int(pid)
        elif kind == "p":
            body = []
            processes.append((rest.split(" "), body))
        elif kind == "f":
            number, state, when, path = rest.split(" ", 3)
            body = []
            files[int(number), path] = (state, when, body)
        elif kind in ("n", "e", "l", "v", "F"):
            body.append(line)
        elif kind == "more":
            partial = True
        elif line:
            raise ValueError(f"a line is not understood: {line[:60]!r}")
    if boot is None:
        raise ValueError("the time of boot is missing")
    found = tuple(_process(head, tail, boot) for head, tail in processes)
    filled = tuple(_filled(box, files) for box in boxes)
    return Consumers(docker or filled, found, units, mtimes, partial)


def _docker(rest: str) -> Unreadable | None:
    state, rc, message = (*rest.split(" ", 2), "", "")[:3]
    if state in ("ok", "absent"):
        return None
    reason = {"124": Reason.TIMEOUT, "127": Reason.TOOL_MISSING}.get(rc, Reason.FAILED)
    return Unreadable(reason, f"docker: exit status {rc}: {message}")


def _container(rest: str) -> Container:
    pid, box, tail = rest.split(" ", 2)
    name, created, hostname, image = _strings(tail)
    return Container(int(pid), box, name.lstrip("/"), _when(created), hostname, image)


def _strings(text: str) -> Iterator[str]:
    """JSON strings with blanks between them."""
    at, decoder = 0, json.JSONDecoder()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        if not isinstance(value, str):
            raise ValueError(f"a string expected, got {value!r:.40}")
        yield value
        at += len(text[at:]) - len(text[at:].lstrip(" "))


def _when(text: str) -> float | None:
    """RFC 3339 with up to nanoseconds, as docker prints it."""
    m = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    return datetime.fromisoformat(m[1] + ("+00:00" if m[2] == "Z" else m[2])).timestamp() if m else None


def _process(head: list[str], body: list[str], boot: int) -> Process:
    pid, ppid, ticks, box, unit = head
    env: dict[str, str] = {}
    count, libraries, versions = "?", [], []
    for line in body:
        kind, _, rest = line.partition(" ")
        if kind == "n":
            count = rest
        elif kind == "l":
            libraries.append(rest)
        elif kind == "v":
            versions.append(rest)
        elif kind == "e":
            name, _, value = rest.partition("=")
            if ALLOWED.fullmatch(name):
                env.setdefault(name, value.replace("\x01", "\n"))  # getenv gives the first of two
    versions += [m[1] for lib in libraries if (m := re.search(r"libnccl\.so\.(\d+\.\d+\.\d+)", lib))]
    got: Observed[Mapping[str, str]] = Value(env)
    if count == "?" or (count == "0" and not env):
        why = "could not be read" if count == "?" else "is empty or was overwritten by the process itself"
        got = Unreadable(Reason.FAILED if count == "?" else Reason.EMPTY, f"the environment of process {pid} {why}")
    return Process(int(pid), int(ppid), boot + int(ticks) / TICKS_PER_S, "" if box == "-" else box, "" if unit == "-" else unit,
                   got, tuple(libraries), tuple(dict.fromkeys(versions)))


def _filled(box: Container, files: Mapping[tuple[int, str], tuple[str, str, list[str]]]) -> Container:
    got: dict[str, Observed[Inside]] = {}
    for (pid, path), (state, when, body) in files.items():
        if pid != box.pid:
            continue
        if state == "file":
            got[path] = Value(Inside("".join(f"{line[2:]}\n" for line in body), int(when) if when.isdigit() else None))
        elif state == "absent":
            got[path] = Absent(path)
        else:
            got[path] = Unreadable(Reason.FAILED, f"{path} of container {box.name}: {state}")
    return Container(box.pid, box.id, box.name, box.created, box.hostname, box.image, got)
