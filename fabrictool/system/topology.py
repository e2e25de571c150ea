"""How far each NIC is from each GPU, as `nvidia-smi topo -m` draws it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections

NEAREST_FIRST = ("PIX", "PXB", "PHB", "NODE", "SYS")
MEANS = {"PIX": "one PCIe switch", "PXB": "several PCIe switches", "PHB": "the CPU's PCIe host bridge",
         "NODE": "host bridges of one socket", "SYS": "the link between sockets"}
_ANSI = re.compile(r"\x1b\[[0-9;]{0,16}m")
_LEGEND = re.compile(r"\s{1,8}(NIC\d{1,3}): (\S{1,64})\s*$")
_CELL = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV\d{1,3}|C2C")
_COLUMN = re.compile(r"GPU\d{1,4}|NIC\d{1,3}|(?:mlx5|roce|bnxt_re|irdma|efa|hns|mthca|qedr)[\w.-]{0,60}")


@dataclass(frozen=True, slots=True)
class Topology:
    """`distances`: RDMA device -> GPU -> one of NEAREST_FIRST."""

    distances: Mapping[str, Mapping[str, str]]

    def nearest(self, device: str) -> Observed[tuple[str, str]]:
        """(distance, GPU) of the GPU that is nearest to the device."""
        row = self.distances.get(device)
        if not row:
            return Absent(f"{device} in nvidia-smi topo -m")
        gpu = min(row, key=lambda g: NEAREST_FIRST.index(row[g]))
        return Value((row[gpu], gpu))


def read(snap: Snapshot) -> Topology | Unreadable:
    text = snap.text(sections.TOPOLOGY.name)
    return text if isinstance(text, Unreadable) else parse(text.value)


def parse(text: str) -> Topology | Unreadable:
    rows = [_ANSI.sub("", line.rstrip("\r")) for line in text.split("\n")]
    head = next((r.split("\t") for r in rows if r.startswith("\t") and "GPU0" in r), None)
    if head is None:
        return Unreadable(Reason.GARBLED, f"nvidia-smi topo -m: no table: {text.strip()[:60]!r}")
    columns = [c.strip() for c in head]
    names = {m[1]: m[2] for r in rows if (m := _LEGEND.match(r))}
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        cells = [c.strip() for c in row.split("\t")]
        if not _COLUMN.fullmatch(cells[0]) or cells[0].startswith("GPU"):
            continue
        device = names.get(cells[0], cells[0])
        for column, cell in zip(columns[1:], cells[1:], strict=False):
            if column.startswith("GPU") and _COLUMN.fullmatch(column):
                if not _CELL.fullmatch(cell):
                    return Unreadable(Reason.GARBLED, f"nvidia-smi topo -m: {cells[0]} to {column}: {cell[:20]!r}")
                if cell in NEAREST_FIRST:
                    found.setdefault(device, {})[column] = cell
    return Topology(found)
