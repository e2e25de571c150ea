"""JSON as nccl-tests writes it by hand: bare `inf`, and files that end in the middle when the run does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fabrictool.model import Reason, Unreadable

LONGEST = 64 * 2**20  # characters
DEEPEST = 32  # nccl-tests' own files have six levels at most

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_NOT_FINITE = frozenset({"inf", "-inf", "nan", "-nan", "Infinity", "-Infinity", "NaN"})
_CLOSER = {"{": "}", "[": "]"}


def load(text: str) -> tuple[Any, bool] | Unreadable:
    """The document, and whether it is whole. Of a file that was cut or damaged, what stands before that place, whole values only."""
    if len(text) > LONGEST:
        return Unreadable(Reason.GARBLED, f"more than {LONGEST // 2**20} Mi characters of JSON")
    if not text.strip():
        return Unreadable(Reason.EMPTY, "empty file")
    strict, whole = _mended(text)
    for attempt in range(2):
        try:
            return json.loads(strict, parse_int=_integer), whole
        except json.JSONDecodeError as error:
            if attempt:
                break
            strict, whole = _mended(strict[:error.pos])[0], False
        except (ValueError, RecursionError):
            break
    return Unreadable(Reason.GARBLED, "not JSON")


def values(text: str) -> Iterator[Any]:
    """JSON lines: each line that is an object of its own. A line that is not gives None."""
    for line in text.split("\n"):
        if line.strip():
            got = load(line)
            yield got[0] if not isinstance(got, Unreadable) and got[1] else None


def _integer(digits: str) -> int:
    """Python refuses more than 4,300 digits with a ValueError of its own; nothing here has more than 20."""
    if len(digits) > 25:
        raise ValueError("too many digits")
    return int(digits)


def _mended(text: str) -> tuple[str, bool]:
    """Numbers that JSON does not know as strings; open brackets closed after the last whole value."""
    out: list[str] = []
    stack: list[str] = []
    safe: tuple[int, str] = (0, "")  # how many of `out` are kept, and what closes them
    for m in _TOKEN.finditer(text):
        token = m[0]
        if token in _NOT_FINITE:
            token = f'"{token}"'
        if token in _CLOSER:
            stack.append(_CLOSER[token])
            if len(stack) > DEEPEST:
                return "", False
            out.append(token)
            safe = (len(out), "".join(reversed(stack)))
            continue
        if token == ",":
            safe = (len(out), "".join(reversed(stack)))
        if token in ("]", "}"):
            if not stack or stack.pop() != token:
                break
            out.append(token)
            safe = (len(out), "".join(reversed(stack)))
            if not stack:
                return "".join(out), not text[m.end():].strip()
            continue
        out.append(token)
    return "".join(out[:safe[0]]) + safe[1], False
