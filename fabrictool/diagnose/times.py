"""How long after its boot a kernel said something, as far as the log tells."""

from __future__ import annotations

import re
from datetime import datetime

from fabrictool.snapshot.sniff import Piece
from fabrictool.system.events import Event

STARTING_S = 1800  # after a boot links come up one by one: OCI's health checks leave out the first 30 minutes (rdma_link_flapping.py)
_DATES = (
    (re.compile(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]"), "%a %b %d %H:%M:%S %Y", ""),
    (re.compile(r"(?:<\d+>)?([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"), "%Y %b %d %H:%M:%S", "2000 "),  # no year: a leap year takes all
    (re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"), "%Y-%m-%d %H:%M:%S", ""),
)


def stamp(line: str) -> datetime | None:
    """The line's own date and time, in whatever zone the log is."""
    for pattern, form, year in _DATES:
        m = pattern.match(line)
        if m:
            try:
                return datetime.strptime(f"{year}{m[1].replace('T', ' ', 1) if form.startswith('%Y-') else m[1]}", form)
            except ValueError:
                return None
    return None


def starting(piece: Piece, event: Event) -> bool:
    """Whether the event fell into the node's start. A log of dates tells it only if it holds the kernel's first line."""
    if event.line.up is not None:
        return event.line.up < STARTING_S
    now = stamp(event.line.raw)
    boots = [ln for ln, _ in piece.find(r"\bLinux version \d") if ln.number <= event.line.number]
    began = stamp(boots[-1].text) if boots else None
    return now is not None and began is not None and 0 <= (now - began).total_seconds() < STARTING_S
