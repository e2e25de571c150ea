"""Folding: what is the same on many nodes is said once, as `spark[01-04]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fabrictool.model import Code, Finding, Report, Status
from fabrictool.verdict import REACH

_RANK = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.SKIP, Status.PASS)
_SAID_BY_REACH = (Code.BLOCKED, Code.UNREACHABLE, Code.HOST_KEY_CHANGED, Code.LOCKED)

_UNASKED = ": not in this snapshot"  # behind a section's name: snapshot.model


@dataclass(frozen=True, slots=True)
class Folded:
    """One finding as it stands on `nodes`; for unknowns also on several `paths`."""

    nodes: tuple[str, ...]
    paths: tuple[str, ...]
    finding: Finding

    @property
    def where(self) -> str:
        """Nodes and place. Of a pair both its ends."""
        subject = self.finding.subject
        if subject.peer and len(self.nodes) == 1:
            place = replace(subject, peer="").place
            return f"{self.nodes[0]} with {subject.peer}" + (f"  {place}" if place else "")
        place = subject.place
        return f"{node_names(self.nodes)}  {place}" if place else node_names(self.nodes)


def node_names(nodes: Iterable[str]) -> str:
    """`spark[01-04]` for spark01 ... spark04; "fleet" for none. Names that cannot be folded are joined by commas."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    unique = list(dict.fromkeys(nodes))
    try:
        return str(NodeSet.fromlist(unique, resolver=RESOLVER_NOGROUP)) if unique else "fleet"
    except NodeSetException:
        return ",".join(unique)


def rank(finding: Finding) -> tuple[int, int]:
    """Worst first: fails that nobody can set by itself, then those that apply sets, unknowns, warnings."""
    return _RANK.index(finding.status), 1 if finding.steps else 0


def _key(f: Finding) -> tuple[object, ...]:
    bare = replace(f, subject=replace(f.subject, nodes=()))
    if f.status is not Status.UNKNOWN:
        return (bare,)
    why = _UNASKED if f.why.endswith(_UNASKED) else f.why
    return (replace(bare, path="", aspect="", want="", why=why),)


def _one(same: Sequence[Finding]) -> Finding:
    """The first of findings that are folded; with the names of all sections that were not asked for."""
    names = dict.fromkeys(f.why.removesuffix(_UNASKED) for f in same)
    return same[0] if len(names) < 2 else replace(same[0], why=", ".join(names) + _UNASKED)


def fold(findings: Iterable[Finding]) -> tuple[Folded, ...]:
    """Equal findings of different nodes as one, worst first, in the order in which they came otherwise.

    Unknowns that differ only in what could not be read are one as well: a missing tool is said once, and so is a bundle that was made
    without what a check reads.
    """
    per_node: dict[tuple[object, ...], dict[tuple[str, ...], list[Finding]]] = {}
    for f in findings:
        per_node.setdefault(_key(f), {}).setdefault(f.subject.nodes, []).append(f)
    merged: dict[tuple[object, ...], tuple[list[str], tuple[str, ...], Finding]] = {}
    for key, by_nodes in per_node.items():
        for nodes, same in by_nodes.items():
            paths = tuple(dict.fromkeys(f.path for f in same))
            kept = merged.setdefault((key, paths), ([], paths, _one(same)))
            kept[0].extend(nodes)
    out = [Folded(tuple(dict.fromkeys(nodes)), paths, f) for nodes, paths, f in merged.values()]
    return tuple(sorted(out, key=lambda x: rank(x.finding)))


def groups(folded: Sequence[Folded]) -> tuple[tuple[str, tuple[Folded, ...]], ...]:
    """By nodes and place, the worst group first."""
    by: dict[str, list[Folded]] = {}
    for f in folded:
        by.setdefault(f.where, []).append(f)
    return tuple((where, tuple(fs)) for where, fs in by.items())


def unreached(report: Report) -> frozenset[str]:
    """Nodes against which something stands under the check `reach`."""
    return frozenset(n for r in report.results if r.check == REACH for f in r.findings if f.bad for n in f.subject.nodes)


def said_by_reach(finding: Finding, lost: frozenset[str]) -> bool:
    """Whether it only repeats, for another room, that the node was not reached."""
    return finding.room != REACH and finding.code in _SAID_BY_REACH and bool(finding.subject.nodes) \
        and lost.issuperset(finding.subject.nodes)
