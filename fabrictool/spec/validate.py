"""One merged tree -> `NodeSpec`, and pydantic's complaints in words, each at its place in the file."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fabrictool.spec.problems import Mark, Problem, error, nearest, shown
from fabrictool.spec.scalars import OLD_BOOL
from fabrictool.spec.schema import NODE, NodeSpec
from fabrictool.spec.tree import Found, Map, Path, Scalar, Tree, kind, locate, plain, prune

ROUNDS = 4  # each leaves out what the one before complained about
IDENTITY = ("name", "site", "group", "nodes")  # set by the resolver, never written by a person
WANTED: Mapping[str, str] = {
    "string_type": "text", "int_type": "a whole number", "int_parsing": "a whole number", "int_from_float": "a whole number",
    "float_type": "a number", "float_parsing": "a number", "bool_type": "true or false", "bool_parsing": "true or false",
    "dataclass_type": "a mapping (key: value)", "dict_type": "a mapping (key: value)", "mapping_type": "a mapping (key: value)",
    "tuple_type": "a list", "list_type": "a list", "ip_v4_network": "an IPv4 network such as 10.10.1.0/24",
}
BOUND: Mapping[str, str] = {"greater_than_equal": "at least {ge}", "less_than_equal": "at most {le}",
                            "greater_than": "more than {gt}",
                            "less_than": "less than {lt}", "string_too_long": "at most {max_length} characters"}
KEYS: Mapping[str, str] = {"dscp_to_priority": "DSCP: 0..63"}
CHOICE = re.compile(r"\^\(([^()\[\]]+)\)\$|\^([a-z_]+)\$")


@dataclass(frozen=True, slots=True)
class Validated:
    """`spec`: of the tree without its bad values, so that the rest can be linted; `tree`: that; `pruned`: what is left out."""

    spec: NodeSpec | None
    tree: Map
    problems: tuple[Problem, ...] = ()
    pruned: tuple[Path, ...] = ()


def validate(tree: Map, name: str, site: str, group: str, nodes: tuple[str, ...]) -> Validated:
    """The spec of one node, or why its merged tree is none."""
    found: list[Problem] = []
    pruned: list[Path] = []
    for _ in range(ROUNDS):
        data = {**_object(plain(tree)), "name": name, "site": site, "group": group, "nodes": list(nodes)}
        try:
            return Validated(NODE.validate_json(json.dumps(data)), tree, tuple(found), tuple(pruned))
        except ValidationError as e:
            details = e.errors(include_url=False, include_input=False)
        found = found or problems(tree, details)  # later rounds only find what the pruning itself left incomplete
        bad = sorted({_culprit(tree, d) for d in details}, key=lambda p: [str(part).zfill(9) for part in p], reverse=True)
        pruned += [_meant(tree, d) for d in details]
        for path in bad:  # from the last to the first: list positions stay
            smaller = prune(tree, path)
            tree = smaller if isinstance(smaller, Map) else tree
    return Validated(None, tree, tuple(found), tuple(pruned))


def _culprit(tree: Map, e: ErrorDetails) -> Path:
    """What to leave out so that the rest may be valid: the value itself, or the mapping that lacks a key."""
    loc: Path = tuple(e["loc"])
    return locate(tree, loc[:-1] if e["type"] in ("missing", "missing_argument") else loc).path


def _meant(tree: Map, e: ErrorDetails) -> Path:
    """Where rules have to be silent: for an unknown key, the key that was probably meant."""
    path = _culprit(tree, e)
    if e["type"] == "unexpected_keyword_argument":
        near = difflib.get_close_matches(str(path[-1]), known_keys(path[:-1]), n=1)
        return (*path[:-1], *near) if near else path
    return path


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def problems(tree: Map, found: Iterable[ErrorDetails]) -> list[Problem]:
    """One problem for each place: a value that fits none of several types is one problem, not several."""
    out: list[Problem] = []
    wants: dict[Mark, tuple[Tree, list[str]]] = {}
    for e in found:
        loc: Path = tuple(e["loc"])
        at = locate(tree, loc)
        want = _want(e)
        if want and loc and loc[-1] == "[key]":
            out.append(error(at.key, _bad_key(loc, want)))
        elif want and e["type"] != "missing":
            held = wants.setdefault(at.tree.mark, (at.tree, []))[1]
            held += [want] if want not in held else []
        else:
            out.append(_other(tree, e, loc, at))
    for mark, (value, texts) in wants.items():
        out.append(error(mark, f"{_name(tree, value)}has to be {' or '.join(texts)}, not {_got(value)}", "", _hint(value, texts)))
    return out


def _bad_key(loc: Path, want: str) -> str:
    """A key that the schema refuses; `loc` ends in the mapping's own key, the bad one, and "[key]"."""
    where, key = loc[-3:-1] if len(loc) > 2 else ("", loc[0])
    if where in KEYS:
        return f"{str(key)[:20]} is no {KEYS[str(where)]}"
    return f"the key {shown(key)} has to be {want}"


def _name(tree: Map, value: Tree) -> str:
    """`"mtu" `: the key whose value this is."""
    stack: list[tuple[str, Tree]] = [("", tree)]
    while stack:
        key, here = stack.pop()
        if here is value:
            return f"{shown(key)} " if key else "this "
        if isinstance(here, Map):
            stack += [(e.key, e.value) for e in here.entries]
        elif not isinstance(here, Scalar):
            stack += [(key, i) for i in here.items]
    return "this "


def _got(value: Tree) -> str:
    return shown(value.value) if isinstance(value, Scalar) and value.value is not None else kind(value)


def _hint(value: Tree, wanted: list[str]) -> str:
    text = value.value if isinstance(value, Scalar) else None
    if "true or false" in wanted and isinstance(text, str) and text.lower() in OLD_BOOL:
        return "write true or false: YAML 1.2 reads yes, no, on and off as text"
    if wanted == ["text"] and isinstance(value, Scalar) and text is not None:
        return f'quote it: "{text}"'
    if wanted == ["text"] and isinstance(value, Map):
        return "quote it: an unquoted { starts a mapping"
    return ""


def _want(e: ErrorDetails) -> str:
    """What would have been right, in words; "" when the error is of another kind."""
    kind_, ctx = e["type"], e.get("ctx", {})
    if kind_ in WANTED:
        return WANTED[kind_]
    if kind_ in BOUND:
        return BOUND[kind_].format(**ctx)
    if kind_ in ("enum", "literal_error"):
        return str(ctx["expected"]).replace("'", "")
    if kind_ == "string_pattern_mismatch":
        choice = CHOICE.fullmatch(str(ctx["pattern"]))
        return " or ".join((choice[1] or choice[2]).split("|")) if choice else f"text that matches {ctx['pattern']}"
    return ""


def _other(tree: Map, e: ErrorDetails, loc: Path, at: Found) -> Problem:
    if e["type"] == "unexpected_keyword_argument":
        return error(at.key, f"unknown key {shown(loc[-1])}", "", nearest(str(loc[-1]), known_keys(loc[:-1])))
    if e["type"] in ("missing", "missing_argument"):
        parent = locate(tree, loc[:-1])
        return error(parent.key, f"the key {shown(loc[-1])} is missing here", "", f"add `{loc[-1]}: ...`")
    if e["type"] == "value_error":
        what, network = str(e["ctx"]["error"])[:300], loc[-1] == "subnet"
        return error(at.tree.mark, f"{_name(tree, at.tree)}{_got(at.tree)}: {what}" if network else what, "",
                     "write an IPv4 network by its first address, such as 10.10.1.0/24" if network else "")
    return error(at.tree.mark, str(e["msg"])[:300])


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return NODE.json_schema()


def known_keys(path: Path) -> tuple[str, ...]:
    """The keys that the schema knows at `path` of a merged tree."""
    schema = _schema()
    here: list[dict[str, Any]] = [schema]
    for part in path:
        here = [n for s in _flat(here, schema) for n in _below(s, part)] or here  # labels of unions lead nowhere: stay
    keys = {k for s in _flat(here, schema) for k in s.get("properties", {})}
    return tuple(sorted(keys - set(IDENTITY) if not path else keys))


def _below(schema: dict[str, Any], part: str | int) -> list[dict[str, Any]]:
    props = schema.get("properties", {})
    if part in props:
        return [props[part]]
    more = schema.get("items") if isinstance(part, int) else schema.get("additionalProperties")
    found = [more] if isinstance(more, dict) else []
    return found + [s for s in schema.get("patternProperties", {}).values() if isinstance(s, dict)]


def _flat(schemas: list[dict[str, Any]], root: dict[str, Any]) -> list[dict[str, Any]]:
    """References and unions resolved."""
    out: list[dict[str, Any]] = []
    for s in schemas:
        if "$ref" in s:
            out += _flat([root["$defs"][str(s["$ref"]).rsplit("/", 1)[-1]]], root)
        elif "anyOf" in s:
            out += _flat(s["anyOf"], root)
        else:
            out.append(s)
    return out
