"""A kernel log cut to the hours that count, and how its events become findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fabrictool.model import Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable
from fabrictool.room import About
from fabrictool.system.events import Event
from fabrictool.system.journal import KernelLog
from fabrictool.system.loglines import Line

E = TypeVar("E", bound=Event)
SHOWN = 160  # characters of a log line in a finding


@dataclass(frozen=True, slots=True)
class Window:
    """`node`: the subject of findings about the node as a whole."""

    node: str
    log: KernelLog
    hours: int

    @property
    def subject(self) -> Subject:
        return Subject(SubjectKind.NODE, (self.node,))

    def about(self, code: Code, path: str, subject: Subject | None = None) -> About:
        return About(code, subject or self.subject, f"kernel_log.{path}", "")

    def recent(self, line: Line) -> bool:
        """In the window; a line that tells no time is taken to be."""
        age = self.log.age_s(line)
        return age is None or age <= self.hours * 3600

    def split(self, events: Iterable[E]) -> tuple[list[E], list[E]]:
        """(recent, older)."""
        found = list(events)
        return [e for e in found if self.recent(e.line)], [e for e in found if not self.recent(e.line)]

    def told(self, events: Sequence[Event]) -> str:
        """`3 times, the last 12 min ago: LINE`."""
        last = events[-1].line
        times = "once," if len(events) == 1 else f"{len(events)} times, the last"
        return f"{times} {ago(self.log.age_s(last))}: {last.text.strip()[:SHOWN]}"

    def quiet(self, about: About, what: str, older: Sequence[Event], others: Sequence[str] = ()) -> Finding:
        """Nothing that stands against the node. `others`: what was seen and is not the job's."""
        wanted = f"no {what} in {self.hours} h"
        begins = self.log.begins
        if begins is not None and self.log.now - begins < min(self.hours * 3600, self.log.up - BOOT_S):
            why = f"{self.log.tool} goes back no further than {ago(self.log.now - begins)}: what came before was overwritten or cut"
            return about.unknown(Unreadable(Reason.CUT, why), wanted, "look at the journal on the node, or ask for fewer hours "
                                 "(kernel_log.hours in the spec)")
        # Not how long ago: the same node would say other words a moment later.
        said = f"no {what} in {self.hours} h" if self.log.up > self.hours * 3600 else f"no {what} since it booted"
        notes = [*others, *([f"older: {len(older)}, the last {ago(self.log.age_s(older[-1].line))}"] if older else [])]
        return about.ok("; ".join((said, *notes)), wanted)


BOOT_S = 10  # a log that begins this soon after the boot has lost nothing


def ago(seconds: float | None) -> str:
    if seconds is None:
        return "at a time that the log does not tell"
    if seconds < 0:
        return "in the future of the node's clock"
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit or (unit == 60 and seconds >= 60):
            return f"{seconds / unit:.0f} {name} ago"
    return f"{seconds:.0f} s ago"


def worst(findings: Sequence[Finding]) -> bool:
    """Whether any of these stands against the node."""
    return any(f.status in (Status.FAIL, Status.WARN, Status.UNKNOWN) for f in findings)
