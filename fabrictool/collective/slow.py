"""Which process held the others up: the times per iteration and process that nccl-tests -I writes into its JSON file."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median

from fabrictool.collective.model import Device, Row, TestRun
from fabrictool.model import Observed, Reason, Unreadable, Value


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """Mean time of an iteration in one MPI process, its slowest GPU, us. `behind`: share by which it is longer than the median of all
    processes (0.1 = 10 % longer)."""

    process: int
    host: str
    mean_us: float
    behind: float


def process_times(run: TestRun) -> Observed[tuple[ProcessTime, ...]]:
    """At the largest size, both placements together; in the order of processes. Unreadable without -I, with one process, or where the
    table does not fit the list of devices. In a collective every rank waits for the slowest, so small differences tell little."""
    if not run.rows:
        return Unreadable(Reason.EMPTY, "no rows")
    largest = max(run.rows, key=lambda r: r.size_bytes)
    tables = [p.per_iteration.by_process_us for p in largest.placements if p.per_iteration and p.per_iteration.by_process_us]
    hosts = _hosts(run.devices)
    if not tables or any(len(t) != len(hosts) or not all(t) for t in tables):
        return Unreadable(Reason.EMPTY, f"{_size(largest)}: no times per process")
    means = [fmean(time for table in tables for time in table[i]) for i in range(len(hosts))]
    middle = median(means)
    if middle <= 0:
        return Unreadable(Reason.GARBLED, f"{_size(largest)}: times of zero")
    return Value(tuple(ProcessTime(i, host, mean, mean / middle - 1) for i, (host, mean) in enumerate(zip(hosts, means, strict=True))))


def _size(row: Row) -> str:
    return f"{row.size_bytes} bytes"


def _hosts(devices: tuple[Device, ...]) -> list[str]:
    """The host of each process, in rank order: a process is a run of ranks with one host and pid."""
    processes: list[tuple[str, int | None]] = []
    for d in sorted(devices, key=lambda d: d.rank):
        if not processes or processes[-1] != (d.host, d.pid):
            processes.append((d.host, d.pid))
    return [host for host, _ in processes]
