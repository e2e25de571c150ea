"""From YAML text to a marked tree. Finds as many problems as it can, and is safe with hostile input.

PyYAML's scanner and parser are used (they know the grammar); what makes values of the events is ours: YAML 1.2 scalars,
no tags, no merge keys, duplicate keys refused, depth and size limited also where aliases multiply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

import yaml
from yaml import events as ev

from fabrictool.spec.problems import Mark, Problem, error, shown
from fabrictool.spec.scalars import ScalarError, read
from fabrictool.spec.tree import Entry, Map, Scalar, Seq, Tree, kind, make_map, make_seq

MAX_DEPTH = 24
MAX_VALUES = 100_000  # with every alias written out
MAX_REPAIRS = 200  # unquoted ranges reported in one file
BARE_RANGE = re.compile(r"\[[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*\]")
# An unquoted [0-7] in a flow list or mapping ends the word before it. To find the problems behind it too, its three signs are
# swapped for private-use characters (same length, so that all positions stay), and swapped back in the values.
SIGNS = str.maketrans("[],", "\ue000\ue001\ue002")
BACK = str.maketrans("\ue000\ue001\ue002", "[],")

HUMAN = (
    ("found character '\\t'", "a tab is no indentation in YAML", "indent with blanks"),
    ("mapping values are not allowed here", "a colon and blank where no key can be", "quote the value, or check the indentation"),
    ("could not find expected ':'", "a key without a colon", "write `key: value`, with a blank after the colon"),
    ("found character", "this sign cannot start an unquoted value", "quote the value"),
    ("found unexpected end of stream", "a quote or bracket that is never closed", "close it"),
    ("expected <block end>", "this line does not fit the ones above it", "check indentation and missing quotes"),
)


class Stop(Exception):  # control flow, no error of the program
    """Reading cannot go on."""


def compose(text: str, file: str) -> tuple[Tree | None, list[Problem]]:
    """The document's tree (None if there is none) and the problems found. Never raises for any text."""
    problems: list[Problem] = []
    mendable = not any(c in text for c in "\ue000\ue001\ue002")
    while True:
        builder = _Builder(file)
        try:
            tree = builder.document(yaml.parse(text, Loader=yaml.SafeLoader))
            return tree, [*problems, *builder.problems]
        except Stop:
            return None, [*problems, *builder.problems]
        except yaml.reader.ReaderError as e:
            return None, [*problems, _unreadable(text, file, e)]
        except yaml.MarkedYAMLError as e:
            at = e.problem_mark.index if e.problem_mark else 0
            span = BARE_RANGE.match(text, at) if mendable and len(problems) < MAX_REPAIRS else None
            if span is None or not at or text[at - 1] in " \t\n,[]{}:":
                return None, [*problems, *builder.problems, _syntax(file, e)]
            problems.append(_bare_range(text, file, at, span.group()))
            text = text[:at] + span.group().translate(SIGNS) + text[span.end():]


def _bare_range(text: str, file: str, at: int, span: str) -> Problem:
    start = max(text.rfind(c, 0, at) for c in " \t\n,[{:") + 1
    rest = re.match(r"[^\s,\[\]{}:]*", text[at + len(span):])
    word = text[start:at] + span + (rest.group() if rest else "")
    mark = Mark(file, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
    return error(mark, f"unquoted range {word[:60]} in a flow list or mapping",
                 "inside { } and [ ] a bracket starts a new list", f'quote it: "{word[:60]}"')


def _syntax(file: str, e: yaml.MarkedYAMLError) -> Problem:
    mark = Mark(file, e.problem_mark.line + 1, e.problem_mark.column + 1) if e.problem_mark else Mark(file)
    problem = str(e.problem or e.context or "not YAML")
    what, do = next(((w, d) for start, w, d in HUMAN if problem.startswith(start)), (problem, ""))
    context = f"{e.context}, which starts at line {e.context_mark.line + 1}" if e.context and e.context_mark else ""
    return error(mark, f"not YAML: {what}", context, do)


def _unreadable(text: str, file: str, e: yaml.reader.ReaderError) -> Problem:
    at = int(e.position)
    mark = Mark(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
    return error(mark, f"a control character (U+{ord(text[at]):04X})" if at < len(text) else "a control character",
                 "YAML takes no such character", "remove it")


class _Builder:
    """Makes values of PyYAML's events."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._anchors: dict[str, Tree | None] = {}  # None: not complete yet
        self._values = 0
        self.problems: list[Problem] = []

    def document(self, events: Iterator[ev.Event]) -> Tree | None:
        tree: Tree | None = None
        for e in events:
            if isinstance(e, ev.DocumentStartEvent):
                if tree is not None:
                    self._stop(e, "a second document", "one file holds one site", "remove the `---` and what follows it")
                tree = self._node(next(events), events, 0)
        return tree

    def _mark(self, e: ev.Event) -> Mark:
        return Mark(self._file, e.start_mark.line + 1, e.start_mark.column + 1) if e.start_mark else Mark(self._file)

    def _stop(self, e: ev.Event, what: str, why: str = "", do: str = "") -> NoReturn:
        self.problems.append(error(self._mark(e), what, why, do))
        raise Stop

    def _grow(self, e: ev.Event, size: int) -> None:
        self._values += size
        if self._values > MAX_VALUES:
            self._stop(e, f"more than {MAX_VALUES} values", "aliases count as often as they are used", "use groups and ranges")

    def _node(self, e: ev.Event, events: Iterator[ev.Event], depth: int) -> Tree:
        if depth > MAX_DEPTH:
            self._stop(e, f"more than {MAX_DEPTH} levels deep", "no key of a spec is that deep",
                       "look for a [ or { that is not closed, or quote the value if it is text")
        if isinstance(e, ev.AliasEvent):
            return self._alias(e)
        tag = getattr(e, "tag", None)
        if tag is not None and not (isinstance(e, ev.ScalarEvent) and tag == "!"):
            self.problems.append(error(self._mark(e), f"a tag: {shown(tag)}",
                                       "values here are plain text, numbers, lists and mappings", "remove the tag"))
        anchor = getattr(e, "anchor", None)
        if anchor:
            self._anchors[anchor] = None
        self._grow(e, 1)
        tree: Tree
        if isinstance(e, ev.ScalarEvent):
            tree = self._scalar(e)
        elif isinstance(e, ev.SequenceStartEvent):
            tree = self._seq(e, events, depth)
        else:
            tree = self._map(e, events, depth)
        if anchor:
            self._anchors[anchor] = tree
        return tree

    def _alias(self, e: ev.AliasEvent) -> Tree:
        name = str(e.anchor)
        if name not in self._anchors:
            self._stop(e, f"an alias to an anchor that is not there: *{name[:60]}", "an unquoted leading * means an alias",
                       "quote the value if it is text")
        tree = self._anchors[name]
        if tree is None:
            self._stop(e, f"an alias to what it is part of: *{name[:60]}")
        self._grow(e, tree.size)
        return tree

    def _scalar(self, e: ev.ScalarEvent) -> Scalar:
        text = e.value.translate(BACK)
        mark = self._mark(e)
        if any("\ud800" <= c <= "\udfff" for c in text):
            self.problems.append(error(mark, "an escape that is no character", "\\ud800 to \\udfff are halves of characters",
                                       "remove it"))
            return Scalar(mark, "", quoted=True)
        if not e.implicit[0]:
            return Scalar(mark, text, quoted=True)
        try:
            return Scalar(mark, read(text))
        except ScalarError as why:
            self.problems.append(error(mark, why.what, why.why, why.do))
            return Scalar(mark, text)

    def _seq(self, start: ev.Event, events: Iterator[ev.Event], depth: int) -> Seq:
        items: list[Tree] = []
        while not isinstance(e := next(events), ev.SequenceEndEvent):
            items.append(self._node(e, events, depth + 1))
        return make_seq(self._mark(start), tuple(items))

    def _map(self, start: ev.Event, events: Iterator[ev.Event], depth: int) -> Map:
        entries: dict[str, Entry] = {}
        while not isinstance(e := next(events), ev.MappingEndEvent):
            key = self._key(e, self._node(e, events, depth + 1))
            value = self._node(next(events), events, depth + 1)
            mark = self._mark(e)
            if key is None:
                continue
            if key in entries:
                first = entries[key].mark
                self.problems.append(error(mark, f"the key {shown(key)} stands here a second time",
                                           f"first at line {first.line}, column {first.col}; most YAML readers drop one silently",
                                           "keep one"))
                continue
            entries[key] = Entry(key, mark, value)
        return make_map(self._mark(start), tuple(entries.values()))

    def _key(self, e: ev.Event, tree: Tree) -> str | None:
        value = tree.value if isinstance(tree, Scalar) else None
        if isinstance(tree, Scalar) and tree.value == "<<" and not tree.quoted:
            self.problems.append(error(self._mark(e), "a merge key (<<)", "YAML 1.2 has none",
                                       "write common keys at the site or in the group: nodes inherit them"))
            return None
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
        hint = "quote it if it holds a range: \"r[0-7]\"" if not isinstance(tree, Scalar) else "quote it if it is text"
        self.problems.append(error(self._mark(e), f"a key has to be a name or a whole number, not {kind(tree)}", "", hint))
        return None
