"""The section that holds a node's kernel log, and its reader. It is large, so only a check that names it collects it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Section, Snapshot, script
from fabrictool.system.events import Event
from fabrictool.system.kernel import events
from fabrictool.system.loglines import Line, lines

NAME = "system.kernel_log"
MOST = 1_000_000  # bytes of log that kernellog.sh sends: its end
_REFUSED = re.compile(r"not permitted|permission denied|insufficient permissions", re.I)
_HEAD = re.compile(r"clock (\d{1,12})\nuptime (\d{1,12}(?:\.\d{1,9})?)\nboot (\S{1,64})\n"
                   r"(?:first ([^\n]{0,40})\n)?log (journalctl|dmesg)\n")
_SECONDS = re.compile(r" {0,12}(\d{1,12}\.\d{1,9})")


def section(hours: int) -> Section:
    """`hours`: how far back the journal is asked; dmesg gives what the kernel still holds."""
    return script(NAME, "kernellog.sh", root=True, timeout_s=25, max_bytes=MOST + 4096, args=(str(hours),))


@dataclass(frozen=True, slots=True)
class KernelLog:
    """`now`, `up`: the node's own clock (seconds since 1970) and its seconds since boot. `begins`: the time of the first line, where the
    log may have lost older ones (cut by its size, overwritten in the kernel's buffer, or given up by a journal that was full); None: it
    goes back to the boot, or to the beginning of the window."""

    tool: str
    now: float
    up: float
    boot: str
    rows: tuple[Line, ...]
    begins: float | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        return events(self.rows)

    def age_s(self, line: Line) -> float | None:
        """How long ago on the node's own clock; None where the line tells no time."""
        if line.at is not None:
            return self.now - line.at
        return self.up - line.up if line.up is not None else None

    def after_boot_s(self, line: Line) -> float | None:
        age = self.age_s(line)
        return None if age is None else self.up - age


def read(snap: Snapshot) -> KernelLog | Unreadable:
    """Whole or not at all: without its end nothing is known of what it lacks."""
    text = snap.text(NAME)
    if isinstance(text, Unreadable):
        return text
    body = text.value.replace("\r\n", "\n")
    head = _HEAD.match(body)
    if head is None:
        return Unreadable(Reason.GARBLED, f"{NAME}: not as expected: {body[:60]!r}")
    log, mark, rest = body[head.end():].rpartition("\nrc ")
    if not mark:
        log, mark, rest = "", "rc ", body[head.end():].removeprefix("rc ")
    status, end, after = rest.partition("\nend\n")
    if not end or after or not status.isdigit():
        return Unreadable(Reason.CUT, f"{NAME}: the end is missing")
    tool = head[5]
    if status != "0":
        said = log.strip().split("\n")[-1][:160]
        reason = Reason.NEEDS_ROOT if _REFUSED.search(said) else Reason.FAILED
        return Unreadable(reason, f"{tool}: exit status {status}: {said or 'no message'}")
    now, up = float(head[1]), float(head[2])
    cut = len(log.encode("utf-8", "surrogateescape")) >= MOST - 64
    rows = lines(log.partition("\n")[2] if cut else log)
    if not rows:
        return Unreadable(Reason.EMPTY, f"{tool}: no line of the kernel in it")
    got = KernelLog(tool, now, up, head[3], rows)
    first = got.age_s(rows[0])
    # The kernel's first words come within its first seconds: a buffer that begins later was overwritten.
    lost = cut or (tool == "dmesg" and first is not None and up - first > FIRST_WORDS_S)
    begins = now - first if lost and first is not None else now if lost else None
    oldest = _SECONDS.fullmatch(head[4] or "")
    if begins is None and oldest is not None and float(oldest[1]) > FIRST_ENTRY_S:
        begins = now - up + float(oldest[1])
    return KernelLog(tool, now, up, head[3], rows, begins)


FIRST_WORDS_S = 5.0
FIRST_ENTRY_S = 300.0  # journald starts within the boot, which takes minutes on a large server, and takes the kernel's words before it over
