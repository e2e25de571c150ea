"""The values that every part of the program exchanges: observations, findings, steps, results.

Nothing here does I/O and nothing here knows a room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar, Union

from fabrictool.code import RESERVED, Code

__all__ = [
    "RESERVED", "Absent", "Code", "Evidence", "Finding", "Observed", "Reason", "Report", "Result", "Risk", "Run", "Said", "Status", "Step",
    "Subject", "SubjectKind", "Unproven", "Unreadable", "Value", "WriteFile",
]

T = TypeVar("T")


class Status(StrEnum):
    """A verdict. Absence of evidence is `UNKNOWN`, never `PASS`; `SKIP` = the spec does not ask."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


class Risk(StrEnum):
    """What a step does to what is running."""

    NONE = "none"
    FLAP = "flap"  # the link goes down and up, or its channels are re-opened: RDMA queue pairs die


class Reason(StrEnum):
    """Why something could not be read."""

    TOOL_MISSING = "tool missing"
    NEEDS_ROOT = "needs root"
    TIMEOUT = "timed out"
    FAILED = "failed"  # the tool ran and refused
    EMPTY = "empty answer"
    GARBLED = "not understood"
    CUT = "cut short"
    UNREACHABLE = "unreachable"
    NOT_COLLECTED = "not collected"
    BLOCKED = "blocked"  # something else has to be right first


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """Something that was read."""

    value: T


@dataclass(frozen=True, slots=True)
class Absent:
    """Looked for, and proven not to be there. `what` names it for people."""

    what: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Could not be read: says nothing about the thing itself. `why` is one line for people."""

    reason: Reason
    why: str


Observed = Union[Value[T], Absent, Unreadable]


class SubjectKind(StrEnum):
    NODE = "node"
    PORT = "port"
    FUNCTION = "function"
    RAIL = "rail"
    PAIR = "pair"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about. `function` is the interface name as bound on the node."""

    kind: SubjectKind
    nodes: tuple[str, ...]
    port: str = ""
    function: str = ""
    rail: str = ""
    peer: str = ""

    @property
    def place(self) -> str:
        """The subject without its nodes, for folding equal findings over nodes."""
        parts = (self.port, self.function, self.rail and f"rail {self.rail}", self.peer and f"peer {self.peer}")
        return "/".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class Run:
    """Run `argv` on the node, at most `timeout_s` seconds. `undo` is the argv that puts back the old state."""

    argv: tuple[str, ...]
    timeout_s: int = 20
    undo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Put exactly `text` (surrogateescape for bytes that are not UTF-8) at `path`, by temp + fsync + rename.

    `before` is the sha256 hex digest of the bytes that were judged; "" = the file must not exist.
    The write is refused when the file changed meanwhile. Undo = the backup (or removal).
    """

    path: str
    text: str
    before: str
    mode: int = 0o644


Step = Union[Run, WriteFile]


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison of want and got.

    A judge yields one for everything it compares: `PASS` findings are the evidence that a pass needs.
    `path` is dotted and starts with the room ("qos.trust"); `aspect` is the part of the room that converge sets.
    A finding with `steps` is what plan shows and apply does; `remedy` says what a person can do where there are none.
    `lines`: where the text that was judged was pasted, the lines that show it, as `file:line: text`.
    """

    code: Code
    subject: Subject
    path: str
    aspect: str
    got: str
    want: str
    why: str = ""
    status: Status = Status.FAIL
    risk: Risk = Risk.NONE
    steps: tuple[Step, ...] = ()
    remedy: str = ""
    lines: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Stable over runs: code + subject + path."""
        s = self.subject
        where = ":".join((s.kind, ",".join(s.nodes), s.port, s.function, s.rail, s.peer))
        return f"{self.code}|{where}|{self.path}"

    @property
    def room(self) -> str:
        return self.path.split(".", 1)[0]

    @property
    def bad(self) -> bool:
        return self.status in (Status.FAIL, Status.WARN, Status.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A number or a word that a judge over the fleet stands on. The unit is in `key`: `busbw_gbytes_per_s` (decimal), `_bytes`, `_s`."""

    key: str
    value: str | int | float


@dataclass(frozen=True, slots=True)
class Unproven:
    """What this very run does not show, however well it passes: a pair that was not tried, a counter that could not be read.

    `of_any_node`: the check came to nothing for the whole fleet, so that nothing stands against a node does not speak for it.
    """

    text: str
    of_any_node: bool = False


Said = Union[Finding, Evidence, Unproven]
"""What a judge over the fleet may yield."""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict of one check over the nodes it looked at. `duration_s` in seconds; `proves_nodes`: whether a node against which nothing
    stands is well by it."""

    check: str
    status: Status
    summary: str
    findings: tuple[Finding, ...]
    evidence: Mapping[str, str | int | float] = field(default_factory=dict)
    unproven: tuple[str, ...] = ()
    duration_s: float = 0.0
    proves_nodes: bool = True

    @property
    def code(self) -> Code | None:
        """The worst finding's code."""
        rank = (Status.FAIL, Status.UNKNOWN, Status.WARN)
        for status in rank:
            for f in self.findings:
                if f.status is status:
                    return f.code
        return None


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one run. `started` is UTC, ISO 8601."""

    run_id: str
    command: str
    started: str
    tool_version: str
    spec_digest: str
    simulated: bool
    results: tuple[Result, ...]
    nodes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
