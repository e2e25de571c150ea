"""What the renderers are told beside the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.report.exit import Mode


@dataclass(frozen=True, slots=True)
class Show:
    """`texts`: sha256 hex -> old text of files, for showing what would change in them (`files.texts_by_digest`)."""

    mode: Mode = Mode.PLAN
    verbose: bool = False
    strict: bool = False
    next_line: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
