"""/etc/hosts as pasted, one file or those of several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.model import Code, Finding
from fabrictool.names import hosts
from fabrictool.names.hosts import LOOPBACK_NAMES
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line, Piece

KINDS = frozenset({Kind.HOSTS})
_OTHERS = (".internal", ".localdomain", ".local")  # names that programs put on the loopback lines for themselves


@dataclass(frozen=True, slots=True)
class _Row:
    line: Line
    entry: hosts.Line


def judge(cases: Sequence[Case]) -> Iterator[Judged]:
    for case in cases:
        yield Judged(Kind.HOSTS, (case.piece,), tuple(_file(case)), f"/etc/hosts of {case.node}" if case.node else "",
                     ("what DNS and nsswitch answer: `getent ahosts NAME` on the node asks them all",))
    if len(cases) > 1:
        yield Judged(Kind.HOSTS, tuple(c.piece for c in cases), tuple(_across(cases)), f"{len(cases)} hosts files against each other")


def _rows(piece: Piece) -> list[_Row]:
    return [_Row(ln, entry) for ln in piece.lines if (entry := hosts.parse_line(ln.text[:4096]))]


def _file(case: Case) -> Iterator[Finding]:
    piece, rows = case.piece, _rows(case.piece)
    about = About(Code.NAME_LOOPBACK, case.subject, "names.self", "")
    looped = [(row, name) for row in rows if hosts.loopback(row.entry.address) for name in row.entry.names if _meant(name, case)]
    for row, name in looped:
        own = name.lower().partition(".")[0] == case.node.lower().partition(".")[0] if case.node else \
            row.entry.address == "127.0.1.1" or "." not in name
        got = f"{name} = {row.entry.address}"
        why = "Gloo and others advertise the address of the host's own name: loopback leads every other node to itself"
        remedy = f"replace {row.entry.address} by the node's address in the cluster's network; cloud-init's template as well"
        make = about.fail if own or row.entry.address == "127.0.1.1" else about.warn
        yield quoted(make(got, "not a loopback address", why, remedy=remedy), piece, [row.line])
    yield from _twice(case, rows)
    yield from _spec(case, rows)
    if not looped:
        if rows:
            text = f"{len(rows)} entries, no host name on a loopback address"
            yield quoted(about.ok(text, "not a loopback address"), piece, [r.line for r in rows[:1]])
        else:
            yield quoted(About(Code.NO_EVIDENCE, case.subject, "names.file", "").warn(
                "no entry", "an entry for every node", "the file names nobody: names then come from DNS alone"), piece, piece.lines[:1])


def _meant(name: str, case: Case) -> bool:
    """Whether a name on a loopback line is a host's."""
    low = name.lower()
    if case.node and low == case.node.lower():
        return True
    return not LOOPBACK_NAMES.fullmatch(name) and not low.endswith(_OTHERS) and not low.startswith(("ip6-", "ip4-", "localhost"))


def _twice(case: Case, rows: Iterable[_Row]) -> Iterator[Finding]:
    """One name with several addresses of one family: programs take the first."""
    seen: dict[tuple[str, int], dict[str, Line]] = {}
    for row in rows:
        address = hosts.ip(row.entry.address)
        if address is None or address.is_multicast or address.is_loopback:
            continue
        for name in row.entry.names:
            seen.setdefault((name.lower(), address.version), {}).setdefault(str(address), row.line)
    for (name, _), found in seen.items():
        if len(found) > 1:
            about = About(Code.NAME_DIFFERS, case.subject, f"names.twice.{name}", "")
            yield quoted(about.warn(f"{name} = {', '.join(found)}", "one address", "programs take the first one, and some try all in turn",
                                    remedy="keep the address of the network that the nodes talk over"), case.piece, found.values())


def _spec(case: Case, rows: Iterable[_Row]) -> Iterator[Finding]:
    """Every node of the spec has an entry that other nodes can reach."""
    if case.want is None:
        return
    named = {n.lower() for row in rows if not hosts.loopback(row.entry.address) for n in row.entry.names}
    for node in case.want.nodes:
        about = About(Code.NAME_DIFFERS, case.subject, f"names.peers.{node}", "")
        if hosts.ip(node) is not None:
            continue
        if node.lower() in named:
            yield about.ok(f"{node} has an address", "an address")
        else:
            missing = about.warn(f"{node} has no entry", "an address", "the name is known only if DNS answers for it",
                                 remedy=f"add a line for {node}, or see what `getent ahosts {node}` says")
            yield quoted(missing, case.piece, case.piece.lines[:1])


def _across(cases: Sequence[Case]) -> Iterator[Finding]:
    """The same name with different addresses in different files."""
    seen: dict[str, dict[str, tuple[Case, Line]]] = {}
    for case in cases:
        for row in _rows(case.piece):
            address = hosts.ip(row.entry.address)
            if address is not None and not address.is_loopback and not address.is_multicast and address.version == 4:
                for name in row.entry.names:
                    if not LOOPBACK_NAMES.fullmatch(name):
                        seen.setdefault(name.lower(), {}).setdefault(str(address), (case, row.line))
    nodes = tuple(dict.fromkeys(c.node for c in cases if c.node))
    first = cases[0].subject
    differ = {name: found for name, found in seen.items() if len({c.piece.source for c, _ in found.values()}) > 1}
    for name, found in differ.items():
        about = About(Code.NAME_DIFFERS, first, f"names.across.{name}", "")
        text = "; ".join(f"{address} in {case.piece.source}" for address, (case, _) in found.items())
        bad = about.fail(f"{name} = {text}"[:400], "one address everywhere", "nodes disagree on where this name is",
                         remedy="write the same line on all nodes; `fabrictool apply` does so from a spec")
        yield _lines(bad, found.values())
    if not differ:
        text = f"{len(seen)} names agree" if seen else "no names"
        whose = f" ({', '.join(nodes)})" if nodes else ""
        yield About(Code.NAME_DIFFERS, first, "names.across", "").ok(f"{text} in {len(cases)} files{whose}")


def _lines(f: Finding, found: Iterable[tuple[Case, Line]]) -> Finding:
    return replace(f, lines=tuple(case.piece.quote(line) for case, line in found)[:12])
