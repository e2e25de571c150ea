"""Which nodes differ from the others in one fact: a majority and its outliers, or groups of which none is the majority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Unreadable, Value

NONE = "none"


@dataclass(frozen=True, slots=True)
class Groups:
    """`values`: value -> the nodes that have it, the largest group first (of equal ones the one that the spec names first). A node on
    which the thing is looked for and absent has the value `none`. `unread`: nodes that did not tell, and why."""

    values: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, Unreadable]

    @property
    def agreed(self) -> bool:
        return len(self.values) == 1

    @property
    def majority(self) -> str | None:
        """The value of more than half of the nodes that told theirs."""
        told = sum(map(len, self.values.values()))
        return next((v for v, nodes in self.values.items() if 2 * len(nodes) > told), None)

    @property
    def outliers(self) -> Mapping[str, str]:
        """node -> its value, of the nodes outside of the majority; none without a majority."""
        most = self.majority
        return {} if most is None else {n: v for v, nodes in self.values.items() if v != most for n in nodes}


def groups(values: Mapping[str, Observed[str]]) -> Groups | None:
    """`values`: by node, in the spec's order. None: on no node there is such a thing."""
    found: dict[str, list[str]] = {}
    for node, seen in values.items():
        if isinstance(seen, Value):
            found.setdefault(seen.value, []).append(node)
        elif isinstance(seen, Absent):
            found.setdefault(NONE, []).append(node)
    unread = {n: v for n, v in values.items() if isinstance(v, Unreadable)}
    if set(found) <= {NONE} and not unread:
        return None
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return Groups({value: tuple(nodes) for value, nodes in ordered}, unread)
