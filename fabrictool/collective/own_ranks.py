"""How far each rank of fabrictool's own AllReduce came, by the lines that it wrote to stderr. No verdicts here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import groupby

from fabrictool.collective.model import ErrorKind, RunError
from fabrictool.collective.tests_own import told


class Step(IntEnum):
    """In their order. Each is said when it is done, `STARTING` apart: from there to `GROUP_MADE` a rank waits in PyTorch's store, and from
    there to `WARMED_UP` NCCL's communicator is made."""

    STARTING = 0
    GROUP_MADE = 1
    WARMED_UP = 2
    TIMED = 3
    VERIFIED = 4

    @property
    def text(self) -> str:
        return self.name.lower().replace("_", " ")


BY_TEXT = {s.text: s for s in Step}


@dataclass(frozen=True, slots=True)
class OwnRank:
    """One rank in one text. `number` None: a line that does not tell whose it is. `step`: the last that it said, in line `line`; None =
    none. `error`: it ended with it; `late`: its own time limit passed; `unsure`:
    perhaps it is the one whose time limit passed."""

    number: int | None
    host: str
    step: Step | None = None
    line: int = 0
    error: RunError | None = None
    late: RunError | None = None
    unsure: bool = False

    @property
    def silent(self) -> bool:
        """It neither came to its end nor says why not."""
        return self.error is None and self.late is None and not self.unsure and self.step is not Step.VERIFIED

    def __str__(self) -> str:
        who = "a rank" if self.number is None else f"rank {self.number}"
        return f"{who} on {self.host}" if self.host else who


def ranks(text: str) -> tuple[OwnRank, ...]:
    """Every rank of one text, in the order of their first lines."""
    said = list(told([text]))
    named: dict[tuple[int, str], list[RunError]] = {}
    for e in said:
        if e.rank is not None:
            named.setdefault((e.rank, e.host), []).append(e)
    whose = len(named) == 1 or _apart(said)
    found = [_rank(number, host, mine, whose) for (number, host), mine in named.items()]
    if not whose:
        found = _shared(found, [e for e in said if e.kind is ErrorKind.TIMEOUT])
    return (*found, *(OwnRank(None, "", error=e) if e.kind is not ErrorKind.TIMEOUT else OwnRank(None, "", late=e)
                      for e in said if e.rank is None))


def _apart(said: Sequence[RunError]) -> bool:
    """Whether the ranks' lines stand one rank after the other, as in files put together: then a time limit is of the rank before it. One
    line for each is no sign of that."""
    blocks = [(rank, sum(1 for e in mine if e.kind is not ErrorKind.TIMEOUT)) for rank, mine in groupby(said, key=lambda e: e.rank)]
    return len({rank for rank, _ in blocks}) == len(blocks) and all(lines > 1 for _, lines in blocks)


def _rank(number: int | None, host: str, said: Sequence[RunError], whose: bool) -> OwnRank:
    steps = [e for e in said if e.text in BY_TEXT]
    last = max(steps, key=lambda e: BY_TEXT[e.text], default=None)
    error = next((e for e in said if e.kind not in (ErrorKind.LAST, ErrorKind.TIMEOUT)), None)
    late = next((e for e in said if e.kind is ErrorKind.TIMEOUT), None) if whose else None
    line = last.line if last else min(e.line for e in said)
    return OwnRank(number, host, BY_TEXT[last.text] if last else None, line, error, late)


def _shared(found: Sequence[OwnRank], limits: Sequence[RunError]) -> list[OwnRank]:
    """Time limits in a text whose lines are mixed: of all that did not end, if there are as many; else nobody knows whose."""
    open_ = [r for r in found if r.silent]
    if not limits or len(limits) >= len(open_):
        return [replace(r, late=limits[0]) if r.silent and limits else r for r in found]
    least = min((r.step for r in open_ if r.step is not None), default=None)
    return [*(replace(r, unsure=True) if r.silent else r for r in found), *(OwnRank(None, "", least, late=e) for e in limits)]
