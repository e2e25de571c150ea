"""Ranges in names: `r[0-7]`, `mlx5_[0-3,6-9]`, `gpu[001-512]`, and node sets made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

PART = r"[0-9]+(?:-[0-9]+(?:/[0-9]+)?)?"
RANGE = re.compile(rf"\[({PART}(?:,{PART})*)\]")
NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})")
MAX_NAMES = 4096  # in one range or node set: more is a typing error
DIGITS = 9


class RangeError(ValueError):
    """A range or node set that cannot be read; the message says why."""


def has_range(text: str) -> bool:
    """Whether a range in brackets occurs in it."""
    return RANGE.search(text) is not None


def split(text: str) -> tuple[str, ...]:
    """At commas and blanks that stand outside brackets."""
    return tuple(p for p in re.split(r"[,\s]+(?![^\[\]]*\])", text) if p)


def expand(text: str) -> tuple[str, ...]:
    """The names in the order in which the ranges are written; several ranges in one text give their product.

    Raises:
        RangeError: a range runs backwards, is padded unevenly, or gives more than MAX_NAMES names.
    """
    pieces = RANGE.split(text)
    fixed, ranges = pieces[0::2], pieces[1::2]
    total = 1
    for r in ranges:
        total *= sum(_count(p, text) for p in r.split(","))
        if total > MAX_NAMES:
            raise RangeError(f"{text[:60]} stands for more than {MAX_NAMES} names")
    options = [[n for p in r.split(",") for n in _numbers(p)] for r in ranges]
    return tuple(fixed[0] + "".join(n + f for n, f in zip(chosen, fixed[1:], strict=True)) for chosen in product(*options))


def _bounds(part: str) -> tuple[int, int, int, int]:
    first, _, rest = part.partition("-")
    last, _, step = rest.partition("/")
    width = len(first) if first[0] == "0" and len(first) > 1 else 0
    return int(first[:DIGITS + 1]), int((last or first)[:DIGITS + 1]), int(step[:DIGITS + 1] or "1"), width


def _count(part: str, text: str) -> int:
    first, last, step, width = _bounds(part)
    if any(len(n) > DIGITS for n in re.findall("[0-9]+", part)):
        raise RangeError(f"{text[:60]}: more than {DIGITS} digits in a range")
    if last < first:
        raise RangeError(f"{text[:60]}: the range {part} runs backwards")
    if step == 0:
        raise RangeError(f"{text[:60]}: a step of 0")
    end = part.partition("-")[2].partition("/")[0]
    if width and end and len(end) < width:
        raise RangeError(f"{text[:60]}: {part}: write both ends with as many digits")
    return (last - first) // step + 1


def _numbers(part: str) -> list[str]:
    first, last, step, width = _bounds(part)
    return [str(n).zfill(width) for n in range(first, last + 1, step)]


def in_order(text: str) -> tuple[str, ...]:
    """Node names of `a[1-2],b7` in the order in which they are written.

    Raises:
        RangeError: not a list of node names and ranges.
    """
    names: list[str] = []
    for piece in split(text):
        names += expand(piece)
        if len(names) > MAX_NAMES:
            raise RangeError(f"{text[:60]} stands for more than {MAX_NAMES} names")
    for name in names:
        if not NODE.fullmatch(name):
            raise RangeError(f"{name[:60]!a} is no node name (letters, digits, dot, dash, underscore)")
    if not names:
        raise RangeError("names no node")
    return tuple(names)


def node_set(text: str) -> tuple[str, ...]:
    """The nodes of a node set in natural order, each once. `!` takes away, `&` intersects, as in ClusterShell.

    Raises:
        RangeError: not a node set, or an empty one.
    """
    for piece in re.split(r"[!&^]", text):
        if piece.strip(", \t"):
            in_order(piece)  # bounds the size before anything is expanded, and checks the names
    try:
        names = natural(str(n) for n in NodeSet(",".join(split(text)), resolver=RESOLVER_NOGROUP))
    except NodeSetException as e:
        raise RangeError(f"{text[:60]}: {e}") from None
    if not names:
        raise RangeError(f"{text[:60]!a} names no node")
    return names


def natural(names: Iterable[str]) -> tuple[str, ...]:
    """Sorted so that n2 comes before n10."""
    return tuple(sorted(set(names), key=_natural_key))


def _natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((1, int(p), p) if p.isdigit() else (0, 0, p) for p in re.split(r"([0-9]+)", name) if p)


def fold(names: Iterable[str]) -> str:
    """`gpu[01-04,07]`; "" for none."""
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))
