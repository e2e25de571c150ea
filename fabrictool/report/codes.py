"""The text of each code, from docs/codes.md: one paragraph on what it means, one that begins with `Fix:`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.bundled import folder


@dataclass(frozen=True, slots=True)
class CodeText:
    """`why`: what the code means and why it matters; `fix`: what to do."""

    why: str
    fix: str


def parse(markdown: str) -> Mapping[str, CodeText]:
    """Code -> its text. Raises ValueError for a section without both paragraphs, or a code that stands there twice."""
    found: dict[str, CodeText] = {}
    for section in re.split(r"^## ", markdown, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        paragraphs = [p.strip() for p in re.split(r"\n\s*\n", body.split("\n# ")[0]) if p.strip()]
        if len(paragraphs) != 2 or not paragraphs[1].startswith("Fix: "):
            raise ValueError(f"{name}: one paragraph of meaning and one that begins with 'Fix: ' are expected")
        if name in found:
            raise ValueError(f"{name}: stands there twice")
        found[name] = CodeText(paragraphs[0], paragraphs[1].removeprefix("Fix: "))
    return found


def texts() -> Mapping[str, CodeText]:
    """The texts of this installation."""
    return parse((folder("docs") / "codes.md").read_text(encoding="utf-8"))
