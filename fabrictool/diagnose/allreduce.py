"""Output of fabrictool's own AllReduce: rank 0's line of JSON is judged as an nccl-tests result is; without one, how far the ranks came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from fabrictool.collective import own_ranks, result, tests_own
from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.model import Asked, Ending
from fabrictool.diagnose import ranks, runs
from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.diagnose.proof import numbered, proven
from fabrictool.diagnose.runs import PATH, Group
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line, Piece

KINDS = runs.KINDS | {Kind.ALLREDUCE}
RESULT = re.compile(r"\{\"algbw_gbytes_per_s\": ?[0-9]")
NO_RESULT = "the result: what rank 0 printed on stdout is not in this input"


@dataclass(frozen=True, slots=True)
class _Printed:
    """Rank 0's line. `text`: as the program prints it, also where somebody formatted it anew."""

    piece: Piece
    line: Line
    text: str


def judge(cases: Sequence[Case]) -> Iterator[Judged]:
    """Each run of ours with its logs; what belongs to none of them goes the way of all logs."""
    own = [c for c in cases if c.piece.kind is Kind.ALLREDUCE]
    rest = [c for c in cases if c.piece.kind is not Kind.ALLREDUCE]
    groups = _groups(own) if own else []
    alone = len(groups) == 1 and not any(c.piece.kind is Kind.NCCL_TESTS for c in rest)
    folders = [{_folder(c) for c in g} for g in groups]
    for group, mine in zip(groups, folders, strict=True):
        single = alone or sum(bool(mine & other) for other in folders) == 1
        logs = [c for c in rest if c.piece.kind is Kind.NCCL_LOG and (alone or _folder(c) in mine)] if single else []
        taken = {id(c) for c in logs}
        rest = [c for c in rest if id(c) not in taken]
        yield _judged(Group((*group, *logs)))
    if rest:
        yield from runs.judge(rest)


def _folder(case: Case) -> str:
    return str(PurePath(case.piece.source).parent)


def _groups(own: Sequence[Case]) -> list[list[Case]]:
    """All as one run, if they can be one; else folder by folder; and what is several runs there one by one."""
    if _one_run(own):
        return [list(own)]
    folders: dict[str, list[Case]] = {}
    for case in own:
        folders.setdefault(_folder(case), []).append(case)
    out: list[list[Case]] = []
    for cases in folders.values():
        out += [cases] if _one_run(cases) else [[c] for c in cases]
    return out[:runs.MOST_RUNS]


def _one_run(cases: Sequence[Case]) -> bool:
    """At most one result, and no rank that is in two of the texts."""
    if sum(len(_printed(c.piece)) for c in cases) > 1:
        return False
    found = [(r.number, r.host) for c in cases for r in own_ranks.ranks(c.piece.text) if r.number is not None]
    return len(found) == len(set(found))


def _printed(piece: Piece) -> list[_Printed]:
    if piece.kind is not Kind.ALLREDUCE:
        return []
    ours = [ln for ln in piece.lines if RESULT.match(ln.text) or ("{" in ln.text and tests_own.MARK in ln.text)]
    if not ours and piece.lines[0].text.lstrip().startswith("{"):
        text = _normal(piece.text)
        return [_Printed(piece, piece.lines[0], text)] if tests_own.MARK in text else []
    return [_Printed(piece, ln, ln.text if tests_own.MARK in ln.text else _normal(ln.text)) for ln in ours]


def _normal(text: str) -> str:
    """As the program prints it; unchanged where it is no JSON."""
    if len(text) > tests_own.LONGEST:
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _judged(group: Group) -> Judged:
    own = [c for c in group.cases if c.piece.kind is Kind.ALLREDUCE]
    by_piece = {id(c.piece): [ranks.Said(c.piece, r) for r in own_ranks.ranks(numbered(c.piece))] for c in own}
    said = [s for mine in by_piece.values() for s in mine]
    hosts = {piece: _host(mine) for piece, mine in by_piece.items()}
    seen, too_many = runs.merged(group.pieces, hosts)
    printed = [p for c in own for p in _printed(c.piece)]
    crowd = runs.crowd(too_many, PATH)
    if printed:
        findings, about, unproven = _with_result(group, printed, own, seen)
    else:
        symptoms = list(runs.faults(seen, any(s.rank.late or s.rank.error for s in said)))
        told = list(runs.carried(seen, None, group)) if seen.processes else []
        findings = [*ranks.judge(said, proven(symptoms, group.pieces), seen, f"{PATH}.own"), *told]
        failed = any(f.status is Status.FAIL for f in findings)
        about, unproven = _about(said), (*runs.unproven_of(told), *(() if failed else (NO_RESULT,)))
    return Judged(Kind.ALLREDUCE, group.pieces, proven([*findings, *crowd], group.pieces), about, unproven)


def _host(said: Sequence[ranks.Said]) -> str:
    """Whose node's a text is, where it is one node's."""
    found = {s.rank.host for s in said if s.rank.host}
    return found.pop() if len(found) == 1 else ""


def _about(said: Sequence[ranks.Said]) -> str:
    hosts = tuple(dict.fromkeys(s.rank.host for s in said if s.rank.host))
    count = sum(s.rank.number is not None for s in said)
    if not hosts:
        return ""
    return f"{count} rank{'s' * (count != 1)} on {hosts[0] if len(hosts) == 1 else f'{len(hosts)} nodes'}"


def _with_result(group: Group, printed: Sequence[_Printed], own: Sequence[Case],
                 seen: NcclLog) -> tuple[list[Finding], str, tuple[str, ...]]:
    run = tests_own.parse("\n".join(p.text for p in printed), [numbered(c.piece) for c in own])
    last = printed[-1]
    if not run.concluded and not run.others:
        about = About(Code.RESULT_UNPARSED, Subject(SubjectKind.NODE, run.hosts[:1]), f"{PATH}.rows", "")
        told = list(runs.carried(seen, None, group)) if seen.processes else []
        broken = quoted(about.fail("a line that is not whole", "rank 0's whole line", "a result that is cut or changed tells nothing",
                                   status=Status.UNKNOWN, remedy="paste what rank 0 printed on stdout, whole"), last.piece, [last.line])
        return [*runs.faults(seen, True), broken, *told], "", runs.unproven_of(told)
    subject, nodes = runs.subjects(run)
    of_run = list(_ended(result.judge(run, Asked(), Ending(), subject, PATH, nodes), last))
    told = list(runs.carried(seen, run, group)) if seen.processes else []
    wrong = [f for f in of_run if f.code is Code.WRONG_RESULT and f.status is Status.FAIL]
    rows = [*runs.one_node(run, subject, told), *runs.bandwidth(run, subject, group.cases[0].wants)]
    findings = [*wrong, *runs.faults(seen, True), *of_run, *told, *(quoted(f, last.piece, [last.line]) for f in rows)]
    return findings, runs.described(run), (runs.NO_LOG,) if not seen.processes else runs.unproven_of(told)


def _ended(found: Iterator[Finding], printed: _Printed) -> Iterator[Finding]:
    """In the words of this program: it has a line of result, and no closing line."""
    for f in found:
        if f.code is Code.NO_RESULT and f.status is Status.PASS:
            yield About(f.code, f.subject, f.path, "").ok("rank 0 printed its result")
        else:
            yield quoted(f, printed.piece, [printed.line]) if f.bad else f
