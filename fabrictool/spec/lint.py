"""Runs all rules. A rule says nothing about parts that are not valid: their own problems come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabrictool.spec.problems import Problem
from fabrictool.spec.rules import collective, env, fabric, later, ports, site, ssh, versions
from fabrictool.spec.rules.view import Placed, Rule, View
from fabrictool.spec.tree import Path

RULES: tuple[Rule, ...] = (*fabric.RULES, *ports.RULES, *env.RULES, *ssh.RULES, *collective.RULES, *later.RULES, *versions.RULES)


def lint_node(view: View, pruned: Iterable[Path] = ()) -> list[Problem]:
    """All rules over one node's spec; `pruned`: paths that were left out because they are not valid."""
    out = tuple(pruned)
    return [p for r in RULES if not any(_touches(path, need) for path in out for need in r.needs) for p in r.check(view)]


def lint_site(nodes: Sequence[Placed]) -> list[Problem]:
    """The rules that compare nodes."""
    return [p for rule in site.RULES for p in rule(nodes)]


def _touches(path: Path, need: Path) -> bool:
    return all(n in ("*", p) for p, n in zip(path, need, strict=False))
