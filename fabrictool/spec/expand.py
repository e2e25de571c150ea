"""Writing out ranges in keys and values of a marked tree.

- `p[0-7]: {rdma: "mlx5_[0-3,6-9]"}`: a range in a key makes one entry for each name; ranges in the values below it step along.
- `other_rdma: ["mlx5_[4-5]"]`: a range in a list item makes one item for each name.
- elsewhere a range has nothing to step with: an error. Free text (`env.set` and the sections for containers and files) keeps
  its brackets: they can be globs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fabrictool.spec.problems import Mark, Problem, error, shown
from fabrictool.spec.ranges import RangeError, expand, has_range
from fabrictool.spec.tree import Entry, Map, Path, Scalar, Seq, Tree, make_map, make_seq

FREE_TEXT: tuple[Path, ...] = (("env", "set"), ("collective",), ("checkpoints",), ("kernel_caches",), ("versions",))
MAX_VALUES = 200_000  # of one section, written out


@dataclass
class Expander:
    """Writes out ranges; problems are collected, and a value with a problem stays as it is."""

    problems: list[Problem] = field(default_factory=list)
    _written: int = 0

    def section(self, tree: Map) -> Map:
        """Everything of one level (site, group or node override) written out."""
        done = self._map(tree, ())
        self._leftovers(done, ())
        return done

    def overrides(self, tree: Map, names: tuple[str, ...]) -> tuple[Map, ...]:
        """An override written for `names`, one for each of them; ranges in its values step with the names."""
        done = self._map(tree, ())
        n = len(names)
        if n * done.size > MAX_VALUES:
            self._error(tree.mark, f"ranges here stand for more than {MAX_VALUES} values")
            return ()
        out: list[Map] = []
        for i in range(n):
            picked = self._pick(done, i, n) if n > 1 else done
            if isinstance(picked, Map):
                self._leftovers(picked, ())
                out.append(picked)
        return tuple(out)

    def names(self, text: str, mark: Mark) -> tuple[str, ...]:
        try:
            return expand(text)
        except RangeError as e:
            self._error(mark, str(e))
            return (text,)

    def _error(self, mark: Mark, what: str, why: str = "", do: str = "") -> None:
        self.problems.append(error(mark, what, why, do))

    def _map(self, tree: Map, path: Path) -> Map:
        if path in FREE_TEXT:
            return tree
        out: dict[str, Entry] = {}
        for e in tree.entries:
            value = self._tree(e.value, (*path, e.key))
            keys = self.names(e.key, e.mark) if has_range(e.key) else (e.key,)
            for i, key in enumerate(keys):
                if key in out:
                    first = out[key].mark
                    self._error(e.mark, f"the key {shown(key)} is here a second time, through {shown(e.key)}",
                                f"first at line {first.line}, column {first.col}", "keep one")
                    continue
                here = self._pick(value, i, len(keys)) if len(keys) > 1 or has_range(e.key) else value
                self._written += here.size
                if self._written > MAX_VALUES:
                    self._error(e.mark, f"ranges here stand for more than {MAX_VALUES} values")
                    return make_map(tree.mark, tuple(out.values()))
                out[key] = Entry(key, e.mark, here)
        return make_map(tree.mark, tuple(out.values()))

    def _tree(self, tree: Tree, path: Path) -> Tree:
        if isinstance(tree, Map):
            return self._map(tree, path)
        if not isinstance(tree, Seq) or path in FREE_TEXT:
            return tree
        items: list[Tree] = []
        for item in tree.items:
            if isinstance(item, Scalar) and isinstance(item.value, str) and has_range(item.value):
                items += [Scalar(item.mark, n, item.quoted) for n in self.names(item.value, item.mark)]
            else:
                items.append(self._tree(item, (*path, "*")))
        return make_seq(tree.mark, tuple(items))

    def _pick(self, tree: Tree, i: int, n: int) -> Tree:
        """The i-th of n: every range in a value steps along."""
        if isinstance(tree, Map):
            return make_map(tree.mark, tuple(Entry(e.key, e.mark, self._pick(e.value, i, n)) for e in tree.entries))
        if isinstance(tree, Seq):
            return make_seq(tree.mark, tuple(self._pick(t, i, n) for t in tree.items))
        if not isinstance(tree.value, str) or not has_range(tree.value):
            return tree
        names = self.names(tree.value, tree.mark)
        if len(names) != n:
            self._error(tree.mark, f"{shown(tree.value)} stands for {len(names)} values, its key for {n}",
                        "ranges in a key and in its values step together", "make them equally long")
            return Scalar(tree.mark, names[min(i, len(names) - 1)], tree.quoted)
        return Scalar(tree.mark, names[i], tree.quoted)

    def _leftovers(self, tree: Tree, path: Path) -> None:
        if path in FREE_TEXT:
            return
        if isinstance(tree, Map):
            for e in tree.entries:
                self._leftovers(e.value, (*path, e.key))
        elif isinstance(tree, Seq):
            for t in tree.items:
                self._leftovers(t, (*path, "*"))
        elif isinstance(tree.value, str) and has_range(tree.value):
            self._error(tree.mark, f"{shown(tree.value)}: a range, but its key has none to step with", "",
                        'give the key a range too (p[0-7]: {rdma: "mlx5_[0-7]"}), or write one name')
