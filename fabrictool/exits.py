"""Exit codes, and the rule for which one wins."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """What the process returns (DESIGN 4)."""

    OK = 0
    FAILED = 1  # a check or an operation failed
    DRIFT = 2  # nodes differ from the spec, and apply can set it
    NO_VERDICT = 3  # unreachable, unreadable, blocked
    USAGE = 64
    BUG = 70
    SPEC = 78  # bad spec, empty inventory, empty selection
    INTERRUPTED = 130


WORST_FIRST = (Exit.INTERRUPTED, Exit.BUG, Exit.SPEC, Exit.USAGE, Exit.FAILED, Exit.NO_VERDICT, Exit.DRIFT, Exit.OK)


def worst(exits: Iterable[Exit]) -> Exit:
    """The exit that wins; `OK` for none."""
    seen = set(exits)
    return next((e for e in WORST_FIRST if e in seen), Exit.OK)


class Stop(Exception):  # not an error of the program: a message for its user
    """Ends the command with `exit`; `message` says what, where, why and what to do, without a traceback."""

    def __init__(self, exit: Exit, message: str) -> None:
        super().__init__(message)
        self.exit = exit
        self.message = message
