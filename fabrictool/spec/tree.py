"""A YAML document as read: plain values that remember where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fabrictool.spec.problems import Mark

Plain = None | bool | int | float | str
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """`quoted`: it stood in quotes or as a block, so it is text for certain."""

    mark: Mark
    value: Plain
    quoted: bool = False
    size: int = 1


@dataclass(frozen=True, slots=True)
class Seq:
    mark: Mark
    items: tuple[Tree, ...]
    size: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value; `mark` is the key's place."""

    key: str
    mark: Mark
    value: Tree


@dataclass(frozen=True, slots=True)
class Map:
    mark: Mark
    entries: tuple[Entry, ...]
    size: int = field(default=1, compare=False)

    def entry(self, key: str) -> Entry | None:
        return next((e for e in self.entries if e.key == key), None)

    def get(self, key: str) -> Tree | None:
        found = self.entry(key)
        return found.value if found else None


Tree = Scalar | Seq | Map


def make_seq(mark: Mark, items: Iterator[Tree] | tuple[Tree, ...]) -> Seq:
    """A sequence with its size: how many values it holds, aliases written out."""
    all_ = tuple(items)
    return Seq(mark, all_, 1 + sum(i.size for i in all_))


def make_map(mark: Mark, entries: Iterator[Entry] | tuple[Entry, ...]) -> Map:
    """A mapping with its size."""
    all_ = tuple(entries)
    return Map(mark, all_, 1 + sum(1 + e.value.size for e in all_))


def kind(tree: Tree) -> str:
    """What it is, in words."""
    if isinstance(tree, Map):
        return "a mapping"
    if isinstance(tree, Seq):
        return "a list"
    if tree.value is None:
        return "nothing"
    if isinstance(tree.value, bool):
        return "true or false"
    return "text" if isinstance(tree.value, str) else "a number"


def plain(tree: Tree) -> object:
    """The values alone, as JSON has them."""
    if isinstance(tree, Map):
        return {e.key: plain(e.value) for e in tree.entries}
    if isinstance(tree, Seq):
        return [plain(i) for i in tree.items]
    return tree.value


@dataclass(frozen=True, slots=True)
class Found:
    """Where a path leads: the value's mark, its key's mark, and whether all of the path exists."""

    tree: Tree
    key: Mark
    whole: bool
    path: Path


def locate(tree: Tree, path: Path) -> Found:
    """Follow `path`; parts that do not exist in the document (names that the validator made up) are passed over."""
    here, key, walked, whole = tree, tree.mark, [], True
    for part in path:
        step: Tree | None = None
        if isinstance(here, Map):
            found = here.entry(str(part))
            if found:
                step, key = found.value, found.mark
        elif isinstance(here, Seq) and isinstance(part, int) and 0 <= part < len(here.items):
            step = here.items[part]
            key = step.mark
        if step is None:
            whole = False
            continue
        here, whole = step, True
        walked.append(part)
    return Found(here, key, whole, tuple(walked))


def merge(base: Map, over: Map) -> Map:
    """`over` laid on `base`: mappings merge key by key, anything else replaces. Marks stay those of the winner."""
    entries = {e.key: e for e in base.entries}
    for e in over.entries:
        old = entries.get(e.key)
        if old and isinstance(old.value, Map) and isinstance(e.value, Map):
            entries[e.key] = Entry(e.key, old.mark, merge(old.value, e.value))  # what both lack is missed at the outer level
        else:
            entries[e.key] = e
    return make_map(over.mark, tuple(entries.values()))


def prune(tree: Tree, path: Path) -> Tree:
    """Without what stands at `path` (nothing happens when there is nothing)."""
    if not path:
        return tree
    first, rest = path[0], path[1:]
    if isinstance(tree, Map):
        kept = (e if e.key != first else Entry(e.key, e.mark,
                                               prune(e.value, rest)) for e in tree.entries if rest or e.key != first)
        return make_map(tree.mark, tuple(kept))
    if isinstance(tree, Seq):
        return make_seq(tree.mark, tuple(prune(t, rest) if i == first else t for i,
                                         t in enumerate(tree.items) if rest or i != first))
    return tree
