"""From a file to a `Site`: load, merge site -> group -> node, validate each distinct tree once, lint."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.spec.lint import lint_node, lint_site
from fabrictool.spec.load import load
from fabrictool.spec.problems import Mark, Problem, SpecError, errors, ordered
from fabrictool.spec.rules.view import Placed, View
from fabrictool.spec.schema import NodeSpec
from fabrictool.spec.sections import Group, Sections, take_apart
from fabrictool.spec.tree import Map, merge, plain
from fabrictool.spec.validate import validate


@dataclass(frozen=True, slots=True)
class Site:
    """A valid spec. `nodes` in natural order; `waves`: every node once, each wave is applied before the next."""

    path: Path
    name: str
    digest: str  # sha256 of the file's bytes, hex
    nodes: tuple[NodeSpec, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waves: tuple[tuple[str, ...], ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.nodes)

    def node(self, name: str) -> NodeSpec:
        """The spec of one node.

        Raises:
            KeyError: the site has no such node.
        """
        for n in self.nodes:
            if n.name == name:
                return n
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Case:
    """One distinct merged tree, and the nodes that it stands for. `mark`: the group's."""

    group: str
    mark: Mark
    names: tuple[str, ...]
    tree: Map


@dataclass(frozen=True, slots=True)
class Examined:
    """A file looked at: all problems, and the site when none of them is an error."""

    site: Site | None
    problems: tuple[Problem, ...]


def spec_path(path: Path) -> Path:
    """The YAML of an inventory: a `.py` stands for the YAML beside it."""
    if path.suffix != ".py":
        return path
    beside = [path.with_suffix(s) for s in (".yaml", ".yml")]
    return next((p for p in beside if p.exists()), beside[0])


def load_site(path: Path) -> Site:
    """The site of a spec (.yaml) or of the inventory (.py) beside it.

    Raises:
        SpecError: the file has errors; all of them, and the warnings, are in it.
    """
    seen = examine(path)
    if seen.site is None:
        raise SpecError(seen.problems)
    return seen.site


def examine(path: Path) -> Examined:
    """Everything that can be said about a spec file. Never raises for what is in it.

    Raises:
        SpecError: the file cannot be read at all.
    """
    loaded = load(spec_path(path))
    if loaded.tree is None:
        return Examined(None, ordered(loaded.problems))
    sections = take_apart(loaded.tree)
    early = [*loaded.problems, *sections.problems]
    cases = _cases(sections)
    found: list[Problem] = []
    nodes: dict[str, NodeSpec] = {}
    for case in cases:
        seen = validate(case.tree, case.names[0], sections.name, case.group, sections.nodes)
        found += seen.problems
        if seen.spec is None:
            continue
        found += lint_node(View(seen.spec, case.mark, seen.tree, len(case.names)), seen.pruned)
        nodes |= {n: dataclasses.replace(seen.spec, name=n) for n in case.names}
    if len(nodes) == len(sections.nodes):
        found += lint_site([Placed(nodes[n], c.tree, c.mark) for c in cases for n in c.names])
    problems = ordered([*early, *_new(found, early)])
    if errors(problems):
        return Examined(None, problems)
    site = Site(loaded.path, sections.name, loaded.digest, tuple(nodes[n] for n in sections.nodes),
                {g.name: g.nodes for g in sections.groups}, sections.waves or (sections.nodes,), problems)
    return Examined(site, problems)


def _new(found: list[Problem], early: list[Problem]) -> list[Problem]:
    """Without what only follows from a problem that was found in the text itself at the same place."""
    taken: set[Mark] = {p.mark for p in early}
    return [p for p in found if p.mark not in taken]


def _cases(sections: Sections) -> list[Case]:
    """One case for each distinct merged tree, with all the nodes that it stands for."""
    cases: list[Case] = []
    for group in sections.groups:
        base = merge(sections.site, group.tree)
        same: dict[str, list[str]] = {}
        for n in group.nodes:
            same.setdefault(json.dumps([plain(t) for t in sections.overrides.get(n, ())]), []).append(n)
        cases += [_case(sections, group, base, tuple(names)) for names in same.values()]
    return cases


def _case(sections: Sections, group: Group, base: Map, names: tuple[str, ...]) -> Case:
    tree = base
    for own in sections.overrides.get(names[0], ()):
        tree = merge(tree, own)
    return Case(group.name, group.mark, names, tree)
