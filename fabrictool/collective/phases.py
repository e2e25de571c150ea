"""How far each rank came: where a start that hangs hangs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from fabrictool.collective.logmodel import CommEvent, Kind, LogLine, NcclLog, Process, ProcessKey, Proof

TRACE = re.compile(r"[A-Za-z0-9_./-]{1,100}:[0-9]{1,6} -> ([1-6])(?: \[.{1,40}\])?$")  # an error on its way up; 7 = in progress
FURTHER = 10  # lines that another rank must have written after it, so that a log cut there is told from a rank that hangs


class Phase(IntEnum):
    LOADED = 0
    NETWORK = 1
    EXCHANGE = 2
    TOPOLOGY = 3
    CONNECT = 4
    READY = 5
    RUNNING = 6
    DONE = 7

    @property
    def text(self) -> str:
        return TEXT[self]

    @property
    def starting(self) -> bool:
        return self <= Phase.CONNECT


TEXT = {
    Phase.LOADED: "the library is loaded, nothing is chosen yet",
    Phase.NETWORK: "the network is chosen, the communicator has not begun",
    Phase.EXCHANGE: "waiting for all ranks (bootstrap)",
    Phase.TOPOLOGY: "building rings and trees with the other ranks",
    Phase.CONNECT: "connecting its channels",
    Phase.READY: "initialised, no collective yet",
    Phase.RUNNING: "connected",
    Phase.DONE: "ended",
}


@dataclass(frozen=True, slots=True)
class Stuck:
    """A process whose log ends before it was connected. `surely`: others went on, so the log was not merely cut."""

    process: ProcessKey
    phase: Phase
    last: Proof
    ranks: tuple[int, ...]
    surely: bool


def phase(process: Process) -> Phase:
    events = {c.event for c in process.comms}
    started = {c.pointer for c in process.comms if c.event is CommEvent.START}
    ready = {c.pointer for c in process.comms if c.event in (CommEvent.COMPLETE, CommEvent.DESTROY)}
    if CommEvent.DESTROY in events and started <= ready:
        return Phase.DONE
    whole = bool(ready) and started <= ready
    if process.connected and whole:
        return Phase.RUNNING
    if any(e.via.kind is Kind.NET for e in process.edges) and not process.connected:
        return Phase.CONNECT
    if whole:
        return Phase.READY
    if CommEvent.TOPOLOGY in events or process.rings:
        return Phase.TOPOLOGY
    if started:
        return Phase.EXCHANGE
    return Phase.NETWORK if process.networks else Phase.LOADED


def fails(line: LogLine) -> bool:
    """An error on its way up through NCCL."""
    return "->" in line.text and TRACE.match(line.text) is not None


def stuck(log: NcclLog, erring: Iterable[ProcessKey]) -> tuple[Stuck, ...]:
    """Processes that did not get through their start, without those that say why."""
    return tuple(_stuck(log, set(erring)))


def _stuck(log: NcclLog, erring: set[ProcessKey]) -> Iterator[Stuck]:
    # Beside ranks that tell who they are, a process that hardly says anything is a damaged line, or a helper.
    ranked = any(p.comms for p in log.processes)
    real = [p for p in log.processes if p.key.known and (p.comms or ((p.networks or p.bootstrap) and p.lines > 2 * ranked))]
    further = [p for p in real if phase(p) >= Phase.READY]
    after = _lines_after(log)
    for p in real:
        at = phase(p)
        if not at.starting or p.key in erring or p.last is None:
            continue
        others = [q for q in further if q.key != p.key and q.last is not None]
        surely = any(q.last is not None and q.last.source != p.last.source for q in others) or (
            bool(others) and after.get(p.key, 0) >= FURTHER)
        yield Stuck(p.key, at, Proof.of(p.last), tuple(dict.fromkeys(c.rank for c in p.comms)), surely)


def _lines_after(log: NcclLog) -> dict[ProcessKey, int]:
    """How many lines other ranks wrote after the last line of each process."""
    total, last_at = 0, dict[ProcessKey, int]()
    for line in log.lines:
        if line.process.known:
            total += 1
            last_at[line.process] = total
    return {key: total - at for key, at in last_at.items()}
