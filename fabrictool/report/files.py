"""How a file that apply would write is shown: what changes in it, line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from fabrictool.model import Value, WriteFile
from fabrictool.snapshot import Snapshot
from fabrictool.snapshot.model import parse_files

SHOWN = 24  # lines of one file; -v shows all of them


def texts_by_digest(snapshots: Iterable[Snapshot]) -> Mapping[str, str]:
    """sha256 hex -> text of every file in the snapshots: what `WriteFile.before` points at."""
    found: dict[str, str] = {}
    for snap in snapshots:
        for captured in snap.sections.values():
            if captured.out.startswith("@ "):  # only `files` sections look like this; a wrong guess finds no matching digest
                for seen in parse_files(captured.out).values():
                    if isinstance(seen, Value):
                        found[seen.value.sha256] = seen.value.text
    return found


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def change(step: WriteFile, texts: Mapping[str, str], shown: int = SHOWN) -> tuple[str, ...]:
    """Lines that begin with `+`, `-`, a space or `@@`; at most `shown`, and then how many are left out.

    A file whose old text is not in `texts` is shown as it will be, because no difference can be told.
    """
    new = _lines(step.text)
    old = texts.get(step.before)
    if not step.before:
        lines = [f"+{ln}" for ln in new]
    elif old is None:
        lines = ["(replaces a file whose text is not at hand; it will be:)", *(f" {ln}" for ln in new)]
    else:
        lines = list(difflib.unified_diff(_lines(old), new, lineterm="", n=1))[2:]
        if not lines:
            lines = ["(only its end or its mode differs)"]
    if len(lines) > shown:
        lines = [*lines[:shown], f"(... {len(lines) - shown} more lines: -v shows them)"]
    return tuple(lines)
