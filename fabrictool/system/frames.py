"""Frames of a stack: what a line of a dump names, without templates, arguments and namespaces."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 16_384  # characters of a line: a C++ template has thousands


@dataclass(frozen=True, slots=True)
class Frame:
    """`function`: with its last namespace, without templates and arguments; `where`: file and line, or the library."""

    function: str
    where: str = ""

    @property
    def name(self) -> str:
        """Without any namespace."""
        return self.function.rsplit("::", 1)[-1]


def native(text: str) -> Frame:
    """gdb: `name (args) at file:line` or `name (args) from library`; eu-stack: `name(args)` and perhaps ` - library`."""
    where = re.search(r" (?:at|from) (\S{1,400})$", text)
    library = re.search(r" - (/\S{1,400})$", text)
    found = where or library
    head = text[:found.start()] if found else text
    return Frame(short(head), found[1] if found else "")


def short(text: str) -> str:
    """`ns::Class<T>::method(args) const` -> `Class::method`; what stands in <>, () and {} goes, however deep."""
    out: list[str] = []
    depth = 0
    for at, ch in enumerate(text[:LONGEST]):
        if ch in "<({[":
            if depth == 0 and ch == "<" and at == 0:
                return text[:80]  # <module>, <lambda>
            depth += 1
        elif ch in ">)}]":
            depth = max(0, depth - 1)
        elif depth == 0:
            out.append(ch)
    plain = "".join(out).replace("const", " ").split()
    parts = [p for p in (plain[0] if plain else text[:80]).split("::") if p]
    return "::".join(parts[-2:])[:200]
