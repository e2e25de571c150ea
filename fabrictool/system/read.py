"""Readers of a node's versions: one fact each, from its own section. N/A is Absent (the tool says that there is none), never a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports.sections import FILE_END
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections
from fabrictool.system.processes import Locked, limit

_NA = re.compile(r"\[?(?:N/?A|Not Supported|Not Available|Unknown Error|Requested functionality has been deprecated)\]?", re.I)
_VERSION = re.compile(r"\d{1,5}(?:\.\d{1,6}){0,4}[\w.+~:-]{0,60}")


def whole_lines(snap: Snapshot, name: str) -> list[str] | Unreadable:
    """The lines before the end marker of a section that must have one."""
    text = snap.text(name)
    if isinstance(text, Unreadable):
        return text
    lines = text.value.replace("\r\n", "\n").split("\n")
    return lines[:-2] if lines[-2:] == ["end", ""] else Unreadable(Reason.CUT, f"{name}: the end is missing")


def whole_files(snap: Snapshot, name: str) -> Mapping[str, str] | Unreadable:
    """A sysfs section that ends with the file that any Linux has."""
    got = snap.sysfs(name)
    if isinstance(got, Unreadable):
        return got
    if FILE_END not in got:
        return Unreadable(Reason.CUT, f"{name}: the end is missing")
    return {path: text.strip() for path, text in got.items() if path != FILE_END}


@dataclass(frozen=True, slots=True)
class Host:
    """`locked`: what a program started by this login may lock."""

    kernel: Observed[str]
    os: Observed[str]
    available_bytes: Observed[int]
    locked: Observed[Locked]


def host(snap: Snapshot) -> Host:
    lines = whole_lines(snap, sections.HOST_FACTS.name)
    if isinstance(lines, Unreadable):
        return Host(lines, lines, lines, lines)
    found: dict[str, str] = {}
    for line in lines:
        name, _, rest = line.partition(" ")
        found.setdefault(name, rest.strip())

    def of(name: str) -> Observed[str]:
        return Value(found[name]) if found.get(name) else Unreadable(Reason.EMPTY, f"system.host: {name}: not told")

    available = re.fullmatch(r"(\d{1,15}) kB", found.get("MemAvailable", ""))
    words = found.get("locked", "").split()
    pair = limit(words[0], words[1], 1024) if len(words) == 2 else None  # ulimit -l counts KiB
    locked = Value(pair) if pair else Unreadable(Reason.GARBLED, f"ulimit -l: {found.get('locked', '')[:40]!r}")
    os = Value(found["os"].strip("\"'")) if found.get("os") else Absent("a name of the system (PRETTY_NAME)")
    available_bytes = Value(int(available[1]) * 1024) if available else Unreadable(Reason.EMPTY, "MemAvailable: not told")
    return Host(of("kernel"), os, available_bytes, locked)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi lists it."""

    name: str
    bus: str
    driver: Observed[str]
    vbios: Observed[str]
    mig: Observed[str]
    ecc: Observed[str]
    power_limit: Observed[str]


def gpus(snap: Snapshot) -> Observed[tuple[Gpu, ...]]:
    lines = whole_lines(snap, sections.GPU.name)
    if isinstance(lines, Unreadable):
        said = snap.raw(sections.GPU.name)
        if not isinstance(said, Unreadable) and said.out.strip() == "No devices were found":
            return Absent("a GPU (nvidia-smi finds none)")
        return lines
    out = []
    for line in lines:
        cells = [c.strip() for c in line.split(",")]
        if len(cells) != 8 or not cells[0].isdigit() or not cells[1]:
            return Unreadable(Reason.GARBLED, f"system.gpu: {line[:60]!r}")
        out.append(Gpu(cells[1], cells[2].lower(), *(_told(c, what) for c, what in zip(cells[3:], (
            "driver version", "VBIOS version", "MIG mode", "ECC mode", "power limit"), strict=True))))
    return Value(tuple(out)) if out else Unreadable(Reason.EMPTY, "system.gpu: no GPU listed")


def _told(cell: str, what: str) -> Observed[str]:
    return Absent(f"{what}: {cell}") if not cell or _NA.fullmatch(cell) else Value(cell)


def cuda(snap: Snapshot) -> Observed[str]:
    """The newest CUDA that the driver takes."""
    text = snap.text(sections.CUDA.name)
    if isinstance(text, Unreadable):
        return text
    m = re.search(r"CUDA Version\s{0,60}:\s{0,4}(\S{1,40})", text.value)
    if m is None or not _VERSION.fullmatch(m[1]):
        return Unreadable(Reason.GARBLED, "nvidia-smi -q: no CUDA version in it")
    return Value(m[1])


@dataclass(frozen=True, slots=True)
class Driver:
    """NVIDIA's kernel module. `open`: the open kernel modules, which alone can hand memory on as dma-buf."""

    version: str
    open: bool


def driver(snap: Snapshot) -> Observed[Driver]:
    got = whole_files(snap, sections.DRIVER.name)
    if isinstance(got, Unreadable):
        return got
    text = got.get("/proc/driver/nvidia/version")
    if text is None:
        return Absent("NVIDIA's kernel module (it is not loaded)")
    m = re.search(r"Kernel Module(?: for \S{1,20})?\s{1,8}(\d{1,4}(?:\.\d{1,4}){1,3})\s", text)
    return Value(Driver(m[1], "Open Kernel Module" in text)) if m else Unreadable(Reason.GARBLED, f"NVRM version: {text[:80]!r}")


def firmware(snap: Snapshot, rdma: str) -> Observed[str]:
    """Firmware of an RDMA device, with its board id (PSID) where it has one: the same number on another board is another firmware."""
    got = whole_files(snap, sections.NIC.name)
    if isinstance(got, Unreadable):
        return got
    version, board = (got.get(f"/sys/class/infiniband/{rdma}/{f}", "") for f in ("fw_ver", "board_id"))
    if not version:
        return Unreadable(Reason.EMPTY, f"fw_ver of {rdma}: not told")
    return Value(f"{version} ({board})" if board else version)


def nic_driver(snap: Snapshot) -> Observed[str]:
    """Version of an mlx5 driver that did not come with the kernel."""
    got = whole_files(snap, sections.NIC.name)
    if isinstance(got, Unreadable):
        return got
    text = got.get("/sys/module/mlx5_core/version")
    return Value(text) if text else Absent("an mlx5_core from outside the kernel")


def ofed(snap: Snapshot) -> Observed[str]:
    text = snap.text(sections.OFED.name)
    if isinstance(text, Unreadable):
        return Absent("MLNX_OFED or DOCA (no ofed_info)") if text.reason is Reason.TOOL_MISSING else text
    return Value(text.value.strip().split("\n")[0].strip().rstrip(":")[:120])


def package(snap: Snapshot, *names: str) -> Observed[str]:
    """The version of the first of these that is installed."""
    lines = whole_lines(snap, sections.PACKAGES.name)
    if isinstance(lines, Unreadable):
        return lines
    rows = [line.split(" ") for line in lines]
    for name in names:
        for row in rows:
            if len(row) == 3 and row[0].partition(":")[0] == name and row[2] == "installed":
                return Value(row[1])
    return Absent(f"package {' or '.join(names)}")


def nccl(snap: Snapshot) -> Observed[str]:
    """The node's own NCCL, which a program outside of containers finds: from the library's name, else from its package."""
    lines = whole_lines(snap, sections.LIBRARIES.name)
    if isinstance(lines, Unreadable):
        return lines
    if not lines:
        return Absent("libnccl on the node")
    found = sorted({m[1] for line in lines if (m := re.search(r"libnccl\.so\.(\d{1,3}\.\d{1,4}\.\d{1,4})", line.partition(" -> ")[2]))})
    if found:
        return Value(", ".join(found))
    packaged = package(snap, "libnccl2", "libnccl")
    return packaged if isinstance(packaged, Value) else Unreadable(Reason.EMPTY, f"the version of {lines[0][:80]} cannot be told")
