"""A check: a manual page, what it needs, and who judges. One file each in checks/, found by `fabrictool.catalog`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fabrictool.model import Said
from fabrictool.prove import Case
from fabrictool.snapshot import Section
from fabrictool.spec import NodeSpec

HEADINGS = ("What it looks at", "Why it matters", "When it fails", "How to fix", "Cost and risk")


@dataclass(frozen=True, slots=True)
class Check:
    """What a file in checks/ exports as `CHECK`.

    `rooms`: every finding of these rooms counts for the check. `judge`: what it says over the fleet besides, from the snapshots and from
    what `probes` recorded; its findings' paths start with the check's name. Besides findings it may yield `Evidence` (a number for the
    result) and `Unproven` (what this run did not show). `sections`: what the judge reads of a node besides the rooms' own sections;
    collected only when the check is chosen, and for `snapshot`; plan, drift and apply do not wait for it. A check with `probes` makes
    traffic or looks into running processes, so it runs only when it is named. `unproven`: what a pass never shows.
    """

    rooms: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    judge: Callable[[Case], Iterable[Said]] | None = None
    sections: Callable[[NodeSpec], tuple[Section, ...]] | None = None
    unproven: tuple[str, ...] = ()


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


def extra_sections(checks: Iterable[Listed], want: NodeSpec) -> tuple[Section, ...]:
    """What these checks read of the node besides the rooms' sections, each once."""
    return tuple(dict.fromkeys(s for c in checks if c.check.sections is not None for s in c.check.sections(want)))
