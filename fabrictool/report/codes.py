"""The text of each code, from docs/codes.md: one paragraph on what it means, one that begins with `Fix:`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.bundled import folder


@dataclass(frozen=True, slots=True)
class CodeText:
    """`why`: what the code means and why it matters; `fix`: what to do; `area`: the heading that it stands under."""

    why: str
    fix: str
    area: str = ""

    @property
    def when(self) -> str:
        """When it is raised: the first sentence of the text. A full stop within a word, a number or `code` ends none."""
        m = _SENTENCE.match(self.why)
        return m[0].strip() if m else self.why

    @property
    def matters(self) -> str:
        """The rest of the text; all of it where it is one sentence."""
        return self.why[len(self.when):].strip() or self.why


_SENTENCE = re.compile(r"(?:`[^`]*`|[^.`]|\.(?!\s|$))+\.(?=\s|$)")


def parse(markdown: str) -> Mapping[str, CodeText]:
    """Code -> its text. Raises ValueError for a section without both paragraphs, or a code that stands there twice."""
    found: dict[str, CodeText] = {}
    area = ""
    for section in re.split(r"^(?=##? )", markdown, flags=re.MULTILINE):
        if section.startswith("# "):
            area = section.partition("\n")[0].removeprefix("# ").strip()
        if not section.startswith("## "):
            continue
        name, _, body = section.removeprefix("## ").partition("\n")
        paragraphs = [p.strip() for p in re.split(r"\n\s*\n", body) if p.strip()]
        if len(paragraphs) != 2 or not paragraphs[1].startswith("Fix: "):
            raise ValueError(f"{name}: one paragraph of meaning and one that begins with 'Fix: ' are expected")
        if name in found:
            raise ValueError(f"{name}: stands there twice")
        found[name] = CodeText(paragraphs[0], paragraphs[1].removeprefix("Fix: "), area)
    return found


def texts() -> Mapping[str, CodeText]:
    """The texts of this installation."""
    return parse((folder("docs") / "codes.md").read_text(encoding="utf-8"))
