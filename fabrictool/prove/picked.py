"""Findings of rooms, chosen for a check that asks for only some of them: compared once, in the room, and told under the check's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from fabrictool import rooms
from fabrictool.model import Finding
from fabrictool.prove.case import Case

Choice = Callable[[Finding], bool]


def picked(case: Case, check: str, only: Iterable[str], wanted: Choice) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """(node, what the rooms `only` found there and `wanted` takes), for every node. Paths begin with the check's name."""
    names = tuple(only)
    for node, want in case.wants.items():
        found = rooms.findings(want, case.snap(node), case.fleet, names)
        mine = tuple(replace(f, path=f"{check}.{f.path}") for name in names for f in found.get(name, ()) if wanted(f))
        yield node, mine
