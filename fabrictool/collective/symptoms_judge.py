"""Findings from a diagnosis: the root cause with the lines that prove it, ranks that hang, and that all went well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabrictool.collective.interfaces import chosen, suspicious
from fabrictool.collective.logmodel import NcclLog, Proof
from fabrictool.collective.phases import Phase, Stuck
from fabrictool.collective.symptom_model import Symptom
from fabrictool.collective.symptoms import Diagnosis
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.room import About

LONE = "only this rank errs and the others wait: the fault may lie with any of them"
WHILE = "run it again, and while it hangs: `fabrictool check hang -i INVENTORY` (stacks of all ranks)"
LATER = "came after the first error: likely its consequence"


def judge_symptoms(got: Diagnosis, log: NcclLog, path: str, *, ended: bool = False) -> Iterator[Finding]:
    """`path`: where the findings belong ("allreduce.symptoms"). `ended`: the run was over (its limit, or by itself) when the logs were
    read, so that a log which stops stops for good."""
    root = got.root
    told = set[tuple[Code, str]]()
    for s in got.causes:
        if (s.code, s.node) in told:
            continue
        told.add((s.code, s.node))
        yield _cause(s, got, f"{path}.cause", first=root is not None and s.code is root.code)
    if root is None:
        yield from _consequences(got, path)
        yield from _start(got.stuck, log, f"{path}.start", ended)
        if got.finished and not got.stuck and not got.after and not got.erring:
            nodes = tuple(dict.fromkeys(k.node for k in got.finished))
            count = len(got.finished)
            many = f"{count} processes came through their start" if count > 1 else "1 process came through its start"
            yield About(Code.INIT_HANG, _fleet(nodes), f"{path}.start", "").ok(many)
    if root is None:
        yield from _unexplained(got, path)


def _unexplained(got: Diagnosis, path: str) -> Iterator[Finding]:
    """Warnings that no rule knows: no verdict, except on ranks that came through all the same."""
    for node in dict.fromkeys(ln.process.node for ln in got.unexplained):
        lines = [ln for ln in got.unexplained if ln.process.node == node]
        through = all(ln.process in got.finished for ln in lines)
        yield About(Code.NOTHING_KNOWN, _node(node), f"{path}.warnings", "").fail(
            str(Proof.of(lines[0])), "no warnings", f"{len(lines)} warnings of NCCL that no rule knows",
            status=Status.WARN if through else Status.UNKNOWN, remedy="read them: fabrictool does not know what they mean")


def _node(name: str) -> Subject:
    return Subject(SubjectKind.NODE, (name,)) if name else Subject(SubjectKind.FLEET, ())


def _fleet(nodes: tuple[str, ...]) -> Subject:
    return Subject(SubjectKind.NODE if len(nodes) == 1 else SubjectKind.FLEET, nodes)


def _cause(s: Symptom, got: Diagnosis, where: str, *, first: bool) -> Finding:
    about = About(s.code, _node(s.node), where, "")
    more = f" ({s.lines} lines)" if s.lines > 1 else ""
    shown = f"{s.proof[0]}{more}"
    if not first:
        return about.warn(shown, "no error", f"{s.cause}; {LATER}", remedy=s.fix)
    return about.fail(shown, "no error", f"{s.cause}; {LONE}" if got.lone else s.cause, remedy=s.fix)


def _consequences(got: Diagnosis, path: str) -> Iterator[Finding]:
    """Only lines that show another's death: who died is not known from them."""
    for node in dict.fromkeys(s.node for s in got.after):
        s = next(a for a in got.after if a.node == node)
        yield About(s.code, _node(node), f"{path}.consequence", "").fail(
            str(s.proof[0]), "no error", s.cause, status=Status.UNKNOWN, remedy=s.fix)


def _start(stuck: Sequence[Stuck], log: NcclLog, where: str, ended: bool) -> Iterator[Finding]:
    """A finding for each node. Where all logs were read when the run was over, only the nodes that came least far are told of: the others
    wait for them; and as one where all came as far."""
    by_node: dict[str, list[Stuck]] = {}
    for h in stuck:
        by_node.setdefault(h.process.node, []).append(h)
    least = min((h.phase for h in stuck), default=None)
    behind = [n for n, held in by_node.items() if not ended or any(h.phase is least for h in held)]
    ahead = [n for n in by_node if n not in behind]
    if ended and len(behind) == len(by_node) > 1:
        found = _held(list(stuck), log, where, ended)
        yield replace(found, subject=_fleet(tuple(behind)), why=f"{found.why}; all {len(behind)} nodes came as far as this")
        return
    for n in behind:
        found = _held(by_node[n], log, where, ended)
        yield replace(found, why=f"{found.why}; the others came further and wait: {', '.join(ahead[:8])}") if ahead else found


def _held(held: Sequence[Stuck], log: NcclLog, where: str, ended: bool) -> Finding:
    """Of one node: its ranks that did not get through their start, the one that came least far first."""
    first = min(held, key=lambda h: h.phase)
    why = f"its log ends here: {first.phase.text}"
    if first.phase in (Phase.LOADED, Phase.NETWORK, Phase.EXCHANGE):
        why += next((f"; it uses {e.interface} {e.address}: {w}" for e in chosen(log, first.process.node) if (w := suspicious(e))), "")
    sure = ended or any(h.surely for h in held)
    return About(Code.INIT_HANG, _node(first.process.node), where, "").fail(
        f"{_ranks(held)}: {first.last}", "Init COMPLETE and connected channels", why if sure else f"{why}, or the log was cut",
        status=Status.FAIL if sure else Status.UNKNOWN,
        remedy="compare the last lines of all ranks: a missing rank, a wrong bootstrap interface, a firewall, a GPU that does not answer; "
        f"{WHILE}")


def _ranks(held: Sequence[Stuck]) -> str:
    ranks = tuple(dict.fromkeys(r for h in held for r in h.ranks))
    if not ranks:
        return f"{len(held)} process{'' if len(held) == 1 else 'es'} whose rank is not known yet"
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks[:8]))}{' ...' if len(ranks) > 8 else ''}"
