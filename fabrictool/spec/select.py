"""`-l/--limit`: which nodes of a site."""

from __future__ import annotations

import re

from fabrictool.spec.problems import Mark, SpecError, error, nearest, shown
from fabrictool.spec.ranges import RangeError, in_order, split
from fabrictool.spec.resolve import Site
from fabrictool.spec.schema import NodeSpec

LIMIT = Mark("--limit")


def select(site: Site, limit: str = "") -> tuple[NodeSpec, ...]:
    """The nodes that `limit` names, in the site's order. "" = all.

    Host ranges (`gpu[01-04]`), groups (`h20` or `@h20`), `!` takes away (`!gpu03`, `h20!gpu03`); separated by commas or blanks.
    With nothing but `!` words, it is all but those.

    Raises:
        SpecError: an unknown name (the nearest one is in the message), or nothing is left.
    """
    words = split(re.sub(r"(?<=[^\s,!])!", " !", limit))
    problems, taken, dropped = [], set[str](), set[str]()
    for word in words:
        try:
            (dropped if word.startswith("!") else taken).update(_names(site, word.removeprefix("!")))
        except RangeError as e:
            problems.append(error(LIMIT, f"{shown(word)}: {e}", do=nearest(word.lstrip("!@"), [*site.groups, *site.names])))
    if problems:
        raise SpecError(problems)
    if not any(not w.startswith("!") for w in words):
        taken = set(site.names)
    chosen = tuple(n for n in site.nodes if n.name in taken - dropped)
    if not chosen:
        raise SpecError([error(LIMIT, f"{shown(limit)} leaves no node of site {site.name}",
                               do="name at least one node or group")])
    return chosen


def _names(site: Site, word: str) -> tuple[str, ...]:
    group = word.removeprefix("@")
    if group in site.groups:
        return site.groups[group]
    if word.startswith("@"):
        raise RangeError("there is no such group")
    if not word:
        raise RangeError("a `!` with no name behind it")
    names = in_order(word)
    strange = [n for n in names if n not in site.names]
    if strange:
        raise RangeError(f"site {site.name} has no node or group {shown(strange[0])}")
    return names
