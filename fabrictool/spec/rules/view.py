"""What a rule sees: a node's spec, and where each of its values stands in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fabrictool.spec.problems import Mark, Problem
from fabrictool.spec.schema import FunctionSpec, NodeSpec
from fabrictool.spec.tree import Map, Path, Plain, Scalar, locate


@dataclass(frozen=True, slots=True)
class View:
    """`count`: how many nodes have exactly this spec."""

    spec: NodeSpec
    group: Mark
    tree: Map
    count: int = 1

    def at(self, *path: str | int) -> Mark:
        """The place of a value; of the nearest thing above it when it is not in the file (defaults)."""
        return _at(self.tree, self.group, path)

    def key(self, *path: str | int) -> Mark:
        """The place of a key."""
        return _key(self.tree, self.group, path)

    def value(self, *path: str | int) -> Plain:
        """The value as it stands in the file; None when it does not."""
        found = locate(self.tree, path)
        here = found.tree if found.whole and len(found.path) == len(path) else None
        return here.value if isinstance(here, Scalar) else None

    def functions(self) -> Iterator[tuple[str, int, FunctionSpec]]:
        """(port, position in its list, function) of all ports."""
        for name, port in self.spec.ports.items():
            for i, function in enumerate(port.functions):
                yield name, i, function


@dataclass(frozen=True, slots=True)
class Placed:
    """One node of the site, for rules over all nodes."""

    spec: NodeSpec
    tree: Map
    group: Mark

    def at(self, *path: str | int) -> Mark:
        return _at(self.tree, self.group, path)


@dataclass(frozen=True, slots=True)
class Rule:
    """`needs`: the parts that have to be valid before the rule can say anything; "*" stands for any name."""

    check: Callable[[View], Iterator[Problem]]
    needs: tuple[Path, ...]


def _at(tree: Map, group: Mark, path: Path) -> Mark:
    for n in range(len(path), 0, -1):
        found = locate(tree, path[:n])
        if found.whole and len(found.path) == n:
            return found.tree.mark if n == len(path) else found.key
    return group


def _key(tree: Map, group: Mark, path: Path) -> Mark:
    for n in range(len(path), 0, -1):
        found = locate(tree, path[:n])
        if found.whole and len(found.path) == n:
            return found.key
    return group
