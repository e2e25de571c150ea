"""The upper levels of a spec file: site, groups, node overrides, waves. Below them everything is a node's own tree."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from fabrictool.spec.expand import Expander
from fabrictool.spec.problems import Mark, Problem, error, nearest, shown
from fabrictool.spec.ranges import RangeError, in_order, natural, node_set
from fabrictool.spec.schema import NAME, NodeSpec
from fabrictool.spec.tree import Map, Scalar, Seq, Tree, kind, make_map
from fabrictool.spec.validate import IDENTITY

NODE_KEYS = tuple(f.name for f in fields(NodeSpec) if f.name not in IDENTITY)
SITE_ONLY = ("version", "site", "waves", "groups", "nodes")
VERSION = 1


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    mark: Mark
    nodes: tuple[str, ...]
    tree: Map


@dataclass
class Sections:
    """A file taken apart. `overrides` holds, for each node, its own trees in the order of the file."""

    name: str = ""
    site: Map = field(default_factory=lambda: Map(Mark(""), ()))
    groups: list[Group] = field(default_factory=list)
    overrides: dict[str, list[Map]] = field(default_factory=dict)
    waves: tuple[tuple[str, ...], ...] = ()
    problems: list[Problem] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[str, ...]:
        return natural(n for g in self.groups for n in g.nodes)


def take_apart(root: Map) -> Sections:
    """Site level, groups and overrides of a file, ranges written out; what is wrong with these levels is in `problems`."""
    s = Sections()
    _keys(s, root, (*SITE_ONLY, *NODE_KEYS))
    _version(s, root)
    s.name = _site_name(s, root)
    expander = Expander()
    s.site = expander.section(_known(root, NODE_KEYS))
    _groups(s, root, expander)
    _overrides(s, root, expander)
    _waves(s, root)
    s.problems += expander.problems
    return s


def _keys(s: Sections, tree: Map, known: tuple[str, ...]) -> None:
    for e in tree.entries:
        if e.key not in known:
            s.problems.append(error(e.mark, f"unknown key {shown(e.key)}", "", nearest(e.key, known)))


def _known(tree: Map, known: tuple[str, ...]) -> Map:
    return make_map(tree.mark, tuple(e for e in tree.entries if e.key in known))


def _version(s: Sections, root: Map) -> None:
    tree = root.get("version")
    if tree is None:
        s.problems.append(error(root.mark, 'the key "version" is missing here', "", f"add `version: {VERSION}`"))
    elif not isinstance(tree, Scalar) or isinstance(tree.value, bool) or tree.value != VERSION:
        got = shown(tree.value) if isinstance(tree, Scalar) else kind(tree)
        s.problems.append(error(tree.mark, f"version {got} of the spec is not known here",
                                f"this program reads version {VERSION}",
                                f"write `version: {VERSION}`"))


def _site_name(s: Sections, root: Map) -> str:
    tree = root.get("site")
    if tree is None:
        s.problems.append(error(root.mark, 'the key "site" is missing here', "", "add `site: NAME`"))
        return "site"
    value = tree.value if isinstance(tree, Scalar) else None
    if not isinstance(value, str) or not NAME.fullmatch(value):
        got = shown(value) if value is not None else kind(tree)
        s.problems.append(error(tree.mark, f'"site" has to be a name, not {got}',
                                "letters, digits, and _ . : @ - after the first",
                                "" if isinstance(value, str) else "quote it"))
        return "site"
    return value


def _section(s: Sections, root: Map, key: str) -> Map | None:
    tree = root.get(key)
    if tree is None or isinstance(tree, Map):
        return tree
    if isinstance(tree, Scalar) and tree.value is None:
        return Map(tree.mark, ())
    s.problems.append(error(tree.mark, f'"{key}" has to be a mapping (key: value), not {kind(tree)}'))
    return Map(tree.mark, ())


def _groups(s: Sections, root: Map, expander: Expander) -> None:
    groups = _section(s, root, "groups")
    if groups is None or (not groups.entries and groups.mark == Mark("")):
        s.problems.append(error(root.mark, 'the key "groups" is missing here', "", "add `groups: {NAME: {nodes: node[01-04]}}`"))
        return
    if not groups.entries:
        entry = root.entry("groups")
        s.problems.append(error(entry.mark if entry else groups.mark, "there is no group, so there are no nodes", "",
                                "add `NAME: {nodes: node[01-04]}`"))
    owner: dict[str, str] = {}
    for e in groups.entries:
        if not NAME.fullmatch(e.key):
            s.problems.append(error(e.mark, f"a group's name has to be a name, not {shown(e.key)}"))
            continue
        if not isinstance(e.value, Map):
            s.problems.append(error(e.value.mark, f"group {shown(e.key)} has to be a mapping (key: value), not {kind(e.value)}"))
            continue
        _keys(s, e.value, ("nodes", *NODE_KEYS))
        names, mark = _group_nodes(s, e.key, e.mark, e.value)
        for n in names:
            if n in owner:
                s.problems.append(error(mark, f"node {shown(n)} is in two groups, {owner[n]} and {e.key}",
                                        "a node belongs to one group",
                                        "leave it in one"))
        names = tuple(n for n in names if owner.setdefault(n, e.key) == e.key)
        s.groups.append(Group(e.key, e.mark, names, expander.section(_known(e.value, NODE_KEYS))))
    for g in s.groups:
        if g.name in owner:
            s.problems.append(error(g.mark, f"{shown(g.name)} is a group and a node", "-l could mean either", "rename one"))


def _group_nodes(s: Sections, group: str, mark: Mark, tree: Map) -> tuple[tuple[str, ...], Mark]:
    nodes = tree.get("nodes")
    if nodes is None:
        s.problems.append(error(mark, f"group {shown(group)} names no nodes", "", "add `nodes: node[01-04]`"))
        return (), mark
    return _node_set(s, nodes), nodes.mark


def _node_set(s: Sections, tree: Tree) -> tuple[str, ...]:
    """A node set as one text or as a list of them."""
    items = tree.items if isinstance(tree, Seq) else (tree,)
    names: list[str] = []
    for item in items:
        if not isinstance(item, Scalar) or not isinstance(item.value, str):
            got = kind(item)
            hint = 'quote it if it is a name: "01"' if got == "a number" else "write node[01-04]"
            s.problems.append(error(item.mark, f"nodes are named by text such as node[01-04], not by {got}", "", hint))
            continue
        try:
            names += node_set(item.value)
        except RangeError as e:
            s.problems.append(error(item.mark, f"this is no set of nodes: {e}", "", "write node[01-04], or node1,node7"))
    if not items:
        s.problems.append(error(tree.mark, "an empty set of nodes", "", "write node[01-04]"))
    return natural(names)


def _overrides(s: Sections, root: Map, expander: Expander) -> None:
    nodes = _section(s, root, "nodes")
    known = set(s.nodes)
    for e in nodes.entries if nodes else ():
        try:
            names = in_order(e.key)
        except RangeError as why:
            s.problems.append(error(e.mark, f"this is no set of nodes: {why}", "", "write node[01-04], or one name"))
            continue
        strange = [n for n in names if n not in known]
        if strange and known:
            s.problems.append(error(e.mark, f"node {shown(strange[0])} is in no group",
                                    f"and {len(strange) - 1} more" if strange[1:] else "", nearest(strange[0], known)))
        tree = Map(e.value.mark, ()) if isinstance(e.value, Scalar) and e.value.value is None else e.value
        if not isinstance(tree, Map):
            s.problems.append(error(tree.mark, f"node {shown(e.key)} has to be a mapping (key: value), not {kind(tree)}"))
            continue
        _keys(s, tree, NODE_KEYS)
        for name, own in zip(names, expander.overrides(_known(tree, NODE_KEYS), names), strict=False):
            if name in known:
                s.overrides.setdefault(name, []).append(own)


def _waves(s: Sections, root: Map) -> None:
    tree = root.get("waves")
    if tree is None:
        return
    if not isinstance(tree, Seq):
        s.problems.append(error(tree.mark, f'"waves" has to be a list of node sets, not {kind(tree)}', "",
                                'write ["node01", "node[02-16]"]'))
        return
    known, seen, waves = set(s.nodes), dict[str, Mark](), list[tuple[str, ...]]()
    for item in tree.items:
        names = _node_set(s, item)
        for n in names:
            if known and n not in known:
                s.problems.append(error(item.mark, f"node {shown(n)} is in no group", "", nearest(n, known)))
            elif n in seen:
                s.problems.append(error(item.mark, f"node {shown(n)} is in two waves", f"the first is at line {seen[n].line}",
                                        "leave it in one"))
            seen.setdefault(n, item.mark)
        waves.append(names)
    rest = tuple(n for n in s.nodes if n not in seen)
    s.waves = tuple(waves) + ((rest,) if rest else ())
