"""How a file that apply would write is shown: what changes in it, line by line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fabrictool.model import Value, WriteFile
from fabrictool.snapshot import Snapshot
from fabrictool.snapshot.model import parse_files

SHOWN = 24  # lines of one file; -v shows all of them
HEAD = 6  # of a new file that is longer: a beginning shows what it is, no more
LEAST = 4  # lines from which on a body that was shown is not shown again
MOST = 3  # words in which a body may differ from one that was shown
_WORD = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[A-Za-z0-9]+")


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


def change(step: WriteFile, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Lines that begin with `+`, `-`, a space or `@@`.

    A file whose old text is not in `texts` is shown as it will be, because no difference can be told.
    """
    new = _lines(step.text)
    old = texts.get(step.before)
    if not step.before:
        return tuple(f"+{ln}" for ln in new)
    if old is None:
        return ("(replaces a file whose text is not at hand; it will be:)", *(f" {ln}" for ln in new))
    return tuple(difflib.unified_diff(_lines(old), new, lineterm="", n=1))[2:] or ("(only its end or its mode differs)",)


def cut(rows: Sequence[str], new: bool) -> Sequence[str]:
    """The first of `rows`, and how many are left out."""
    shown = len(rows) if len(rows) <= SHOWN else HEAD if new else SHOWN
    return rows if shown == len(rows) else (*rows[:shown], f"(... {len(rows) - shown} more lines: -v shows them)")


def instead(rows: Sequence[str], of: Sequence[str]) -> Mapping[str, str] | None:
    """Word -> the word that stands for it, wherever it stands, in `rows`, which are those of `of` otherwise; None where they are not."""
    one, two = "\n".join(of), "\n".join(rows)
    if _WORD.split(one) != _WORD.split(two):
        return None
    found: dict[str, str] = {}
    for was, now in zip(_WORD.findall(one), _WORD.findall(two), strict=True):
        if found.setdefault(was, now) != now:
            return None
    return {was: now for was, now in found.items() if was != now}


@dataclass(slots=True)
class Bodies:
    """What was shown so far of files, to show it once."""

    shown: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    def seen(self, where: str, rows: Sequence[str]) -> str:
        """Which body above `rows` repeat, in words; "" for one that is new. `where`: the file and its nodes."""
        if len(rows) < LEAST:
            return ""
        for label, earlier in self.shown:
            words = instead(rows, earlier)
            if words is not None and len(words) <= MOST:
                with_ = ", ".join(f"{now} for {was}" for was, now in words.items())
                return f"(the same as {label} above{', with ' if with_ else ''}{with_})"
        self.shown.append((where, rows))
        return ""
