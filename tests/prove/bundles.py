"""Bundles of recordings, as `check --save` writes them: for tests, and to look at a report (`python -m tests.prove.bundles FILE FAULT`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from fabrictool.snapshot import bundle
from tests.prove import faulty
from tests.prove.fleets import sparks
from tests.prove.recordings import Fleet

FAULTS: Mapping[str, Callable[[Fleet], Fleet]] = {
    "none": lambda f: f, "fallback": faulty.fallback, "flat": faulty.no_traffic, "one-rail": lambda f: faulty.one_rail(f, "spark03"),
    "died": lambda f: faulty.died(f, 2), "hang": faulty.hangs_in_init,
}


def write(path: Path, fleet: Fleet, digest: str = "") -> Path:
    """`digest`: of the spec that the bundle was taken with."""
    case = fleet.case()
    bundle.write(path, case.snaps.values(), bundle.Meta("0", "2026-01-01T10:00:00+00:00", digest), case.recordings.values(), force=True)
    return path


if __name__ == "__main__":
    write(Path(sys.argv[1]), FAULTS[sys.argv[2]](sparks(4)))
