"""Tensors as rules. See the package's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._runtime import RUNTIME, Rule


@dataclass(frozen=True)
class Type:
    name: str
    size: int


float32 = Type("torch.float32", 4)


@dataclass(frozen=True)
class device:
    """Where a tensor lies."""

    type: str
    index: int = 0


class Scalar:
    """The result of a sum."""

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value


class Different:
    """Where two tensors differ: in how many elements."""

    def __init__(self, count: int) -> None:
        self.count = count

    def sum(self) -> Scalar:
        return Scalar(self.count)


class Tensor:
    """One dimension of float32. `wrong`: elements that a GPU has got wrong; they stay wrong."""

    def __init__(self, count: int, rule: Rule, kind: Type = float32) -> None:
        self.count, self.rule, self.kind, self.wrong = count, rule, kind, 0

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return self.kind.size

    def _change(self, rule: Rule) -> Tensor:
        self.rule = rule
        return self

    def _now(self) -> Rule:
        RUNTIME.flush()
        return self.rule

    def copy_(self, other: Tensor) -> Tensor:
        RUNTIME.flush()
        self.wrong = other.wrong
        return self._change(other._now())

    def add_(self, number: float) -> Tensor:
        old = self._now()
        return self._change(Rule(old.period, old.scale, old.shift + number))

    def sub_(self, number: float) -> Tensor:
        return self.add_(-number)

    def div_(self, number: float) -> Tensor:
        old = self._now()
        return self._change(Rule(old.period, old.scale / number, old.shift / number))

    def remainder_(self, number: int) -> Tensor:
        old = self._now()
        if old != Rule(0, 1.0, 0.0):
            raise NotImplementedError("stand-in of a fabrictool lab: remainder_ of anything but arange")
        return self._change(Rule(number, 1.0, 0.0))

    def __ne__(self, other: Any) -> Any:
        if self._now() != other._now():
            return Different(self.count)
        return Different(min(self.wrong + other.wrong, self.count))

    __hash__ = object.__hash__


def zeros(count: int, dtype: Type = float32, device: device | None = None) -> Tensor:
    return Tensor(count, Rule(0, 0.0, 0.0), dtype)


def arange(count: int, dtype: Type = float32, device: device | None = None) -> Tensor:
    return Tensor(count, Rule(0, 1.0, 0.0), dtype)
