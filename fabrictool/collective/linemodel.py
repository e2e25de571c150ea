"""Lines of NCCL logs: who said what where. Numbers of lines count from 1 within the text they came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """`OTHER`: no line of NCCL. `DAMAGED`: looks like one, and cannot be read."""

    INFO = "INFO"
    WARN = "WARN"
    TRACE = "TRACE"
    ABORT = "ABORT"
    VERSION = "VERSION"
    OTHER = "OTHER"
    DAMAGED = "DAMAGED"


@dataclass(frozen=True, slots=True, order=True)
class ProcessKey:
    """`node`: whose log it is, as the caller knows it; else the host name in the line. pid -1: the line does not tell."""

    node: str
    host: str
    pid: int

    @property
    def known(self) -> bool:
        return self.pid >= 0


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message. `source`: the log's name; `cuda`: the device in brackets; `where`: FILE:LINE; `stamp`: the time as printed."""

    number: int
    source: str
    process: ProcessKey
    level: Level
    text: str
    cuda: int | None = None
    where: str = ""
    func: str = ""
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """A line that proves something."""

    node: str
    source: str
    number: int
    text: str

    @classmethod
    def of(cls, line: LogLine) -> Proof:
        return cls(line.process.node, line.source, line.number, line.text[:300])

    def __str__(self) -> str:
        where = f"{self.source} " if self.source else ""
        return f"{where}line {self.number}: {self.text}"
