"""nvidia-smi as pasted: how far GPUs are from NICs, by the judge of the check rails; of all else, which command gives a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fabrictool.diagnose.model import Case, Judged, quoted, softened
from fabrictool.model import Code, Finding, Status, Unreadable, Value
from fabrictool.prove.peermem import NEAR, distance
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line
from fabrictool.system import topology

KINDS = frozenset({Kind.NVIDIA_TOPO, Kind.NVIDIA_SMI})
PATH = "rails.affinity"
PERHAPS = "wrong only if this device belongs to the fabric, and the GPU has a memory of its own (a GB10 has none)"
COMPARE = "`fabrictool check versions -i INVENTORY` compares driver, GPU and limits of all nodes; nvidia-smi topo -m tells how far the " \
    "NICs are; dmesg tells Xids"


def judge(case: Case) -> Iterator[Judged]:
    piece = case.piece
    found = tuple(_topology(case)) if piece.kind is Kind.NVIDIA_TOPO else (_other(case),)
    yield Judged(piece.kind, (piece,), found, case.node, ("that GPUDirect is used: NCCL's log tells (NCCL_DEBUG=INFO: /GDRDMA)",)
                 if any(f.status is Status.PASS for f in found) else ())


def _nothing(case: Case, got: str, why: str, remedy: str, *lines: Line) -> Finding:
    made = Finding(Code.NOTHING_KNOWN, case.subject, "rails.known", "", got, "", why, Status.UNKNOWN, remedy=remedy)
    return quoted(made, case.piece, lines)


def _topology(case: Case) -> Iterator[Finding]:
    piece = case.piece
    seen = topology.parse(_tabs(piece.text))
    about = About(Code.PEER_MEMORY, case.subject, PATH, "")
    if isinstance(seen, Unreadable):
        yield quoted(about.unknown(seen, NEAR, "paste the whole output of nvidia-smi topo -m"), piece, piece.lines[:1])
        return
    spec = case.want
    devices = list(seen.distances)
    if spec is not None:
        if spec.gpu is None or spec.gpu.gpudirect == "none" or spec.gpu.unified_memory:
            yield about.skip("the spec asks for no GPUDirect here")
            return
        devices = [fn.rdma or fn.interface or "" for port in spec.ports.values() for fn in port.functions]
    if not devices:
        yield _nothing(case, "a table without NICs", "it tells how far GPUs are from each other: nvidia-smi saw no RDMA device",
                       "rdma link, or ibv_devinfo, on the same node; a container sees only what is passed on", piece.lines[0])
    for device in devices:
        one = replace(about, subject=case.function(device))
        near = seen.nearest(device)
        if not isinstance(near, Value):
            yield quoted(one.unknown(near, NEAR), piece, piece.lines[:1])
            continue
        status = Status.FAIL if spec is not None and spec.gpu is not None and spec.gpu.gpudirect == "required" else Status.WARN
        made = distance(one, *near.value, status)
        label = next((m[1] for _, m in piece.find(r"^\s*(NIC\d+): (\S+)\s*$") if m[2] == device), device)
        rows = [ln for ln in piece.lines if ln.text.split()[:1] in ([label], [f"{label}:"])]
        yield quoted(made if spec is not None or not made.bad else softened(made, PERHAPS), piece, rows or piece.lines[:1])


def _tabs(text: str) -> str:
    """As nvidia-smi prints it: a terminal makes blanks of tabs. Cells are never that wide that less than two remain."""
    return text if "\t" in text else re.sub(r" {2,}(?=\S)", "\t", text)


def _other(case: Case) -> Finding:
    piece = case.piece
    lost = next((ln for ln, _ in piece.find(r"^NVIDIA-SMI has failed|^No devices were found")), None)
    if lost is not None:
        return _nothing(case, lost.text.strip()[:120], "no GPU can be used on this node as it is; why, the kernel's log tells",
                        "dmesg for NVRM and Xid lines; lsmod for nvidia; then reload the driver or reboot the node", lost)
    said = next((m[1] for _, m in piece.find(r"^Attached GPUs\s+: (\d{1,4})$")), None)
    listed = {m[m.lastindex or 0] for _, m in piece.find(r"^GPU (\d{1,3}): |^\|\s+(\d{1,3})  NVIDIA|^(\d{1,3}), ")}
    count = int(said) if said else len(listed)
    got = f"nvidia-smi's list of {count} GPU{'s' * (count != 1)}" if count else "output of nvidia-smi"
    return _nothing(case, got, "it shows GPUs as they are; how many and which there should be, this text does not tell", COMPARE)
