"""A symptom: a line that tells what went wrong, with its cause and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.collective.linemodel import ProcessKey, Proof
from fabrictool.model import Code


class Weight(StrEnum):
    """`CAUSE`: may be the root cause. `RETRY`: counts only when nothing went on after it. `AFTER`: follows from another error, on this
    rank or another: never the root cause. `BENIGN`: says nothing."""

    CAUSE = "cause"
    RETRY = "retry"
    AFTER = "after"
    BENIGN = "benign"


@dataclass(frozen=True, slots=True)
class Told:
    """What a line means."""

    code: Code
    cause: str
    fix: str
    weight: Weight = Weight.CAUSE


@dataclass(frozen=True, slots=True)
class Rule:
    """`needles`: one of them is in every line that `pattern` matches (a quick look before the pattern). `tell`: the meaning of a match;
    None = not this rule after all."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    tell: Callable[[re.Match[str]], Told | None]


@dataclass(frozen=True, slots=True)
class Symptom:
    """One meaning in one process. `lines`: how many lines say it, the first of them in `proof`; `order`: place of the first among all
    lines; `stamp`: its time as printed, or ""."""

    told: Told
    process: ProcessKey
    proof: tuple[Proof, ...]
    lines: int
    order: int
    stamp: str = ""

    @property
    def node(self) -> str:
        return self.process.node

    @property
    def code(self) -> Code:
        return self.told.code

    @property
    def cause(self) -> str:
        return self.told.cause

    @property
    def fix(self) -> str:
        return self.told.fix


def rule(pattern: str, code: Code, cause: str, fix: str, *needles: str, weight: Weight = Weight.CAUSE) -> Rule:
    """A rule with one meaning. Without needles the pattern itself is plain text."""
    told = Told(code, cause, fix, weight)
    if not needles:
        return Rule((pattern,), re.compile(re.escape(pattern)), lambda _: told)
    return Rule(needles, re.compile(pattern), lambda _: told)
