"""What is wrong with a spec: where, why, and what to do. All problems travel together in one `SpecError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

SHOWN = 60  # characters of a user's value that a message repeats


class Severity(StrEnum):
    """An error stops every command (exit 78); a warning is shown by `lint` and `plan`."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file; line and column start at 1, as editors count. Line 0: the file as a whole."""

    file: str
    line: int = 0
    col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `what` names it, `why` says why it matters, `do` what to change; `why` and `do` may be empty."""

    mark: Mark
    severity: Severity
    what: str
    why: str = ""
    do: str = ""

    @property
    def file(self) -> str:
        return self.mark.file

    @property
    def line(self) -> int:
        return self.mark.line

    @property
    def col(self) -> int:
        return self.mark.col

    @property
    def text(self) -> str:
        """`file:line:col: error: what`, then why and what to do, indented."""
        lines = [f"{self.mark}: {self.severity}: {self.what}"]
        lines += [f"    {self.why}"] if self.why else []
        lines += [f"    do: {self.do}"] if self.do else []
        return "\n".join(_printable(line) for line in lines)


class SpecError(Exception):
    """The spec cannot be used. `problems` holds all of them, warnings too, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = ordered(problems)
        super().__init__(render(self.problems))


def error(mark: Mark, what: str, why: str = "", do: str = "") -> Problem:
    return Problem(mark, Severity.ERROR, what, why, do)


def warning(mark: Mark, what: str, why: str = "", do: str = "") -> Problem:
    return Problem(mark, Severity.WARNING, what, why, do)


def errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Only the errors."""
    return tuple(p for p in problems if p.severity is Severity.ERROR)


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, in the order of the file."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda p: (p.mark, p.severity, p.what)))


def count(problems: Iterable[Problem]) -> str:
    """`3 errors, 1 warning`."""
    all_ = tuple(problems)
    bad = len(errors(all_))
    parts = [(bad, "error"), (len(all_) - bad, "warning")]
    return ", ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in parts if n) or "no problem"


def render(problems: Iterable[Problem]) -> str:
    """All problems as text for people, with the count last."""
    all_ = tuple(problems)
    return "\n".join([*(p.text for p in all_), count(all_)])


def shown(value: object) -> str:
    """A user's value for a message: one line, quoted, cut, control characters escaped."""
    text = value if isinstance(value, str) else str(value)
    text = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return f'"{_printable(text)}"'


def _printable(text: str) -> str:
    """Control characters, direction overrides and the like as escapes: the text comes from a file and goes to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def nearest(name: str, known: Iterable[str]) -> str:
    """`write "mtu"` for the nearest known name, else the list of all."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6) if len(name) <= 128 else []
    if near:
        return f"did you mean {shown(near[0])}?"
    if not names:
        return "none is allowed here"
    listed = ", ".join(names[:24]) + (f" and {len(names) - 24} more" if len(names) > 24 else "")
    return f"known here: {listed}"
