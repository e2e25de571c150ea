"""A check: a manual page and the rooms it composes. One file each in checks/, found by `fabrictool.catalog`."""

from __future__ import annotations

from dataclasses import dataclass

HEADINGS = ("What it looks at", "Why it matters", "When it fails", "How to fix", "Cost and risk")


@dataclass(frozen=True, slots=True)
class Check:
    """What a file in checks/ exports as `CHECK`. `rooms`: every finding of these rooms counts for the check."""

    rooms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A check as found: `name` is the file's stem, `page` its docstring."""

    name: str
    path: str
    page: str
    check: Check

    @property
    def rooms(self) -> tuple[str, ...]:
        return self.check.rooms

    @property
    def title(self) -> str:
        """The first line of the manual page."""
        return self.page.partition("\n")[0]


def missing_headings(page: str) -> tuple[str, ...]:
    """The headings that a manual page must have and this one lacks (a line begins with heading and colon)."""
    lines = [ln.strip() for ln in page.splitlines()]
    return tuple(h for h in HEADINGS if not any(ln.startswith(f"{h}:") for ln in lines))
