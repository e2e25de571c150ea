"""Rows of the result table: which columns a build has, and one row put together from the three writes in which it is printed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fabrictool.collective.lines import Piece
from fabrictool.collective.model import Deviation, Fragment, PerIteration, Placement, Row
from fabrictool.model import Absent, Observed, Value

NOT_COUNTED = Absent("verification (N/A)")
NO_COUNT = Absent("a count of wrong elements: this build prints the largest deviation")
NOT_RUN = Absent("placement (N/A)")
TYPES = frozenset({"char", "int", "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16",
                   "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"})
COLUMNS = frozenset({"type", "redop", "op", "root", "time", "cputime", "algbw", "busbw", "#wrong", "error", "res", "i_min", "i_max",
                     "i_p99", "i_cv%", "timestamp"})
SHOWN = 200  # characters of a fragment that are kept

_INT = re.compile(r"[0-9]{1,19}")
_ROOT = re.compile(r"-?[0-9]{1,9}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{1,15}")
_REAL = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,9})?(?:e[+-][0-9]{1,3})?")
_DEVIATION = re.compile(r"([0-9](?:\.[0-9]{1,6})?e[+-][0-9]{2,3})(\*?)")
_COUNT = re.compile(r"[0-9]{1,19}|[1-9](?:\.[0-9]{1,5})?e\+[0-9]{2}")  # %g
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
_NUMERIC = re.compile(r"-?[0-9][0-9.]{0,30}(?:e[+-]?[0-9]{1,3})?\*?|N/A|-?inf|-?nan")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns as the table's head names them. `unit_us`: what one unit of time is in us (builds of 2018 print ms)."""

    redop: bool = True
    root: bool = True
    per_iteration: bool = False
    stamp: bool = False
    deviation: bool = False
    cpu_time: bool = False
    unit_us: float = 1.0

    @property
    def tokens(self) -> int:
        """How many words a row has: 11 to 13, 15 with a timestamp, 21 with times per iteration, 23 with both."""
        return 3 + self.redop + self.root + 2 * (8 if self.per_iteration else 4) + 2 * self.stamp


CURRENT = Layout()
OLD_DEVIATION = Layout(root=False, deviation=True)
# For text without a head. Nothing that has as many words can be told apart there, so these are all that are tried.
GUESSES = (CURRENT, Layout(root=False), OLD_DEVIATION, Layout(stamp=True), Layout(per_iteration=True),
           Layout(per_iteration=True, stamp=True))


def layout_of(text: str) -> Layout | None:
    """The layout that a line of the table's head names; None for any other line."""
    words = text.replace("(", " ").split()
    if words[:1] != ["#"] or not {"type", "algbw", "busbw"} <= set(words):
        return None
    old = words[1:3] == ["bytes", "N"]
    if (not old and words[1:3] != ["size", "count"]) or not set(words[3:]) <= COLUMNS:
        return None
    first = [w for w in words[3:] if w in ("time", "cputime")]
    right = [w for w in words if w in ("#wrong", "error", "res")]
    if len(first) != 2 or len(right) != 2 or len(set(first + right)) != 2:
        return None
    return Layout("redop" in words or "op" in words, "root" in words, words.count("i_p99") == 2, "timestamp" in words,
                  right[0] != "#wrong", first[0] == "cputime", 1000.0 if old else 1.0)


def words_of(piece: Piece) -> list[str]:
    """Its words, without a label that `srun -l` puts before each part of a row."""
    return [w for w in re.split(r"[ \t]+", piece.text) if w and (w != piece.stream or not w.endswith(":"))]


def begins(words: list[str]) -> bool:
    """Whether a row begins here: bytes, elements, a data type."""
    return len(words) >= 3 and bool(_INT.fullmatch(words[0]) and _INT.fullmatch(words[1])) and words[2] in TYPES


def goes_on(words: list[str]) -> bool:
    """Whether a row may go on here: numbers alone, and a timestamp."""
    stamp = 2 if len(words) >= 2 and _DATE.fullmatch(words[-2]) and _CLOCK.fullmatch(words[-1]) else 0
    rest = words[:len(words) - stamp]
    return bool(words) and all(_NUMERIC.fullmatch(w) for w in rest)


def looks_like(words: list[str]) -> bool:
    """Whether it was a row before something damaged it."""
    return len(words) >= 7 and sum(1 for w in words if _NUMERIC.fullmatch(w)) >= 0.6 * len(words)


def row(words: list[str], layout: Layout, line: int) -> Row | None:
    """The row, if each word is what the layout has in its place."""
    if len(words) != layout.tokens or not begins(words):
        return None
    rest = words[3:]
    redop = rest.pop(0) if layout.redop else ""
    root = rest.pop(0) if layout.root else ""
    if (layout.redop and not _WORD.fullmatch(redop)) or (layout.root and not _ROOT.fullmatch(root)):
        return None
    if layout.stamp and not (_DATE.fullmatch(rest[-2]) and _CLOCK.fullmatch(rest[-1])):
        return None
    each = 8 if layout.per_iteration else 4
    halves = [_placement(rest[at:at + each], layout) for at in (0, each)]
    if None in halves or all(isinstance(h, Absent) for h in halves):
        return None
    first, second = (h or NOT_RUN for h in halves)
    return Row(int(words[0]), int(words[1]), words[2], redop, int(root) if root else None, first, second, line)


def _placement(words: list[str], layout: Layout) -> Placement | Absent | None:
    if all(w == "N/A" for w in words):
        return NOT_RUN
    time, algbw, busbw = (_real(w) for w in words[:3])
    wrong, deviation = _right(words[3], layout)
    if time is None or algbw is None or busbw is None or wrong is None:
        return None
    per_iteration = None
    if layout.per_iteration:
        low, high, p99, cv = (_real(w) for w in words[4:])
        if low is None or high is None or p99 is None or cv is None:
            return None
        per_iteration = PerIteration(low, high, p99, cv)
    return Placement(time * layout.unit_us, algbw, busbw, wrong, per_iteration, deviation)


def _real(word: str) -> float | None:
    """A number that is not negative; `%.2f` to `%.1e`, as wide columns need it."""
    if not _REAL.fullmatch(word):
        return None
    number = float(word)
    return number if math.isfinite(number) else None


def _right(word: str, layout: Layout) -> tuple[Observed[int] | None, Deviation | None]:
    """The last column: a count (`%g`), a largest deviation, or N/A. None, None = not understood."""
    if word == "N/A":
        return NOT_COUNTED, None
    if layout.deviation:
        m = _DEVIATION.fullmatch(word)
        return (NO_COUNT, Deviation(float(m[1]), bool(m[2]))) if m else (None, None)
    return (Value(int(float(word))), None) if _COUNT.fullmatch(word) else (None, None)


class Joiner:
    """Puts rows together for one writer. What cannot be put together without a doubt becomes a fragment, never a number."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.line = 0
        self.mixed = False  # a row was given up: a later piece may be its end, so only whole lines count from here on
        self.rows: list[Row] = []
        self.fragments: list[Fragment] = []

    def take(self, piece: Piece, layout: Layout | None) -> bool:
        """Whether the piece had to do with a row. `layout`: of the table, once its head was seen."""
        words = words_of(piece)
        if begins(words):
            self.give_up()
            self._begin(words, piece, layout)
        elif self.words and goes_on(words):
            self.words += words
            self._finish(piece, layout or CURRENT)
        elif (layout or self.rows) and ((goes_on(words) and len(words) >= 3) or looks_like(words)):
            self.fragments.append(Fragment(piece.line, piece.text.strip()[:SHOWN]))
            self.mixed = True
        else:
            return False
        return True

    def give_up(self, *, cut: bool = False) -> None:
        """What is begun stays a fragment. `cut`: nothing came after it."""
        if self.words:
            self.fragments.append(Fragment(self.line, " ".join(self.words)[:SHOWN], cut))
            self.words, self.mixed = [], True

    def _begin(self, words: list[str], piece: Piece, layout: Layout | None) -> None:
        self.words, self.line = words, piece.line
        if layout is None:
            readings = {r for g in GUESSES if (r := row(words, g, piece.line))}
            if len(readings) == 1 and not piece.torn:
                self._keep(readings.pop())
                return
        self._finish(piece, layout or CURRENT)

    def _finish(self, piece: Piece, layout: Layout) -> None:
        if piece.torn or len(self.words) > layout.tokens:
            self.give_up()
        elif len(self.words) == layout.tokens:
            made = None if self.mixed and self.line != piece.line else row(self.words, layout, self.line)
            if made is None:
                self.give_up()
            else:
                self._keep(made)

    def _keep(self, made: Row) -> None:
        self.rows.append(made)
        self.words = []
