"""Cases with some sections of one node changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fabrictool.prove import Case
from fabrictool.snapshot import Captured


def changed(case: Case, node: str, texts: Mapping[str, Captured | None]) -> Case:
    mine = {**case.snaps[node].sections, **texts}
    kept = {k: v for k, v in mine.items() if v is not None}
    return replace(case, snaps={**case.snaps, node: replace(case.snaps[node], sections=kept)})


def edited(case: Case, node: str, section: str, old: str, new: str) -> Case:
    got = case.snaps[node].sections[section]
    assert old in got.out
    return changed(case, node, {section: replace(got, out=got.out.replace(old, new))})
