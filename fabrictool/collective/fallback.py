"""Why NCCL did not use RDMA, as far as its own log says."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.collective.logmodel import NcclLog, Process

_LINES = (
    ("Failed to open libibverbs", "the program's libibverbs could not be opened"),
    ("not open libibverbs", "the program's libibverbs could not be opened"),
    ("Unable to open device", "an RDMA device could not be opened: permissions of /dev/infiniband"),
    ("No IP interface found", "no IP interface for the connection setup"),
    ("No device found", "no RDMA device is active and matches NCCL_IB_HCA, or /dev/infiniband is not there"),
)


def reasons(log: NcclLog, node: str) -> tuple[str, ...]:
    """For people, the most telling first. Empty when the log does not say."""
    mine = {p.key for p in log.processes if p.key.node == node}
    set_ = tuple(r for p in log.processes if p.key in mine for r in _set(p))
    said = tuple(text for needle, text in _LINES
                 if any(needle in ln.text and ln.process in mine for ln in log.lines))
    return tuple(dict.fromkeys((*set_, *said)))


def _set(process: Process) -> Iterator[str]:
    for e in process.env:
        if e.name == "NCCL_IB_DISABLE" and e.value not in ("0", ""):
            yield f"NCCL_IB_DISABLE={e.value[:20]} is set"
        elif e.name == "NCCL_NET" and e.value.casefold() == "socket":
            yield "NCCL_NET=Socket is set"
        elif e.name == "NCCL_IB_HCA":
            yield f"NCCL_IB_HCA={e.value[:120]}"
