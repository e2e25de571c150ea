"""A room: one domain, pure. What to collect, how to read it, how to judge it.

`judge` is the only comparison of want and got in the program: plan, drift, check and apply's read-back all use it. It yields a
finding for *everything* it compares, `PASS` included: those are the evidence that a pass needs. Helpers below keep the spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fabrictool.model import Absent, Code, Finding, Observed, Reason, Risk, Status, Step, Subject, Unreadable
from fabrictool.snapshot import Section, Snapshot
from fabrictool.spec import NodeSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a judge may know of other nodes: each node's bootstrap address as read on that node. `left_out`: nodes that this run was
    told not to look at (--limit), and of which nothing is known for that reason alone."""

    addresses: Mapping[str, Observed[str]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Room(Generic[T]):
    """`aspects`: the parts that converge can set, in the order in which they must be set (empty = read only)."""

    name: str
    sections: tuple[Section, ...]
    read: Callable[[Snapshot], T]
    judge: Callable[[NodeSpec, T, Fleet], Iterable[Finding]]
    aspects: tuple[str, ...] = ()

    def findings(self, want: NodeSpec, snap: Snapshot, fleet: Fleet) -> tuple[Finding, ...]:
        return tuple(self.judge(want, self.read(snap), fleet))


@dataclass(frozen=True, slots=True)
class About:
    """The fixed part of a comparison: what it is about. Call its methods to make findings."""

    code: Code
    subject: Subject
    path: str
    aspect: str

    def ok(self, got: str, want: str = "") -> Finding:
        return Finding(self.code, self.subject, self.path, self.aspect, got, want or got, status=Status.PASS)

    def fail(self, got: str, want: str, why: str, *, steps: tuple[Step, ...] = (), risk: Risk = Risk.NONE,
             remedy: str = "", status: Status = Status.FAIL) -> Finding:
        return Finding(self.code, self.subject, self.path, self.aspect, got, want, why, status, risk, steps, remedy)

    def warn(self, got: str, want: str, why: str, *, remedy: str = "") -> Finding:
        return self.fail(got, want, why, remedy=remedy, status=Status.WARN)

    def skip(self, why: str) -> Finding:
        """The spec does not ask."""
        return Finding(self.code, self.subject, self.path, self.aspect, "", "", why, Status.SKIP)

    def unknown(self, seen: Unreadable | Absent, want: str, remedy: str = "") -> Finding:
        """Could not be read. The code tells why, so that it can be acted on."""
        if isinstance(seen, Absent):
            seen = Unreadable(Reason.EMPTY, f"{seen.what}: absent")
        code, how = UNREADABLE[seen.reason]
        return Finding(code, self.subject, self.path, self.aspect, f"unreadable ({seen.reason})", want, seen.why,
                       Status.UNKNOWN, remedy=remedy or how)


UNREADABLE: Mapping[Reason, tuple[Code, str]] = {
    Reason.TOOL_MISSING: (Code.TOOL_MISSING, "install the tool on the node, or put it on root's PATH"),
    Reason.NEEDS_ROOT: (Code.NEEDS_ROOT, "run with -K, or allow the command in sudoers without a password"),
    Reason.TIMEOUT: (Code.TOOL_TIMEOUT, "run the command on the node by hand and see where it hangs"),
    Reason.FAILED: (Code.UNREADABLE, "run the command on the node by hand and read its message"),
    Reason.EMPTY: (Code.UNREADABLE, "run the command on the node by hand: it said nothing"),
    Reason.GARBLED: (Code.UNREADABLE, "save `fabrictool snapshot` and report what could not be understood"),
    Reason.CUT: (Code.UNREADABLE, "run again: the answer was cut short"),
    Reason.UNREACHABLE: (Code.UNREACHABLE, "check that `ssh` to the node works from here"),
    Reason.BLOCKED: (Code.BLOCKED, "mend what it is blocked by, then run again"),
    Reason.NOT_COLLECTED: (Code.UNREADABLE, "run the check against the nodes (--save keeps it): this bundle was made without it"),
}
