"""How far it is proven that RoCE has its protected priority: on paper, between all nodes, in traffic, under pressure, over a reboot.

A host proves its own side. What the switch does is never proven, so a fabric is never called lossless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from fabrictool.counters import Span
from fabrictool.counters.loss import Growth, Kind, function_growth, port_growth
from fabrictool.model import Code, Evidence, Finding, Reason, Said, Status, Subject, SubjectKind, Unproven, Unreadable, Value
from fabrictool.prove import priority
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce, all_reduce
from fabrictool.prove.overruns import bad_once
from fabrictool.prove.paper import NAME, agreement, chain
from fabrictool.prove.wire import Member, expected_of, good_runs, member, run_span
from fabrictool.room import About


class Proven(StrEnum):
    """Each level holds all before it. PERSISTENT needs the same run after a reboot to compare with, which one report does not have."""

    NOTHING = "nothing"
    CONFIGURED = "configured"
    AGREED = "agreed"
    EXERCISED = "exercised"
    STRESSED = "stressed"


MEANS: Mapping[Proven, str] = {
    Proven.NOTHING: "the chain from traffic class to protected priority is open on some node",
    Proven.CONFIGURED: "the chain is closed on each node, but it is not shown that all use one priority",
    Proven.AGREED: "all nodes are set to one protected priority; no traffic has shown it",
    Proven.EXERCISED: "all nodes agree, and an AllReduce's bytes rode the protected priority",
    Proven.STRESSED: "an AllReduce's bytes rode the protected priority, PFC or ECN had to work, and nothing was lost",
}
PRESSURE = "how the priority holds under pressure"


def judge(case: Case) -> Iterator[Said]:
    members = {node: member(case, node) for node in case.wants}
    chains = {node: chain(case, me) for node, me in members.items()}
    for closed in chains.values():
        yield from closed.findings
    asked = {node: members[node] for node, closed in chains.items() if closed.asks}
    if not asked:
        return
    level = Proven.NOTHING
    if all(chains[node].closed for node in asked):
        level = Proven.CONFIGURED
        agreed = agreement(tuple(asked.values()))
        yield agreed
        level = Proven.AGREED if agreed.status is Status.PASS else level
    facts = all_reduce(case.recording("allreduce"))
    said = list(bad_once(NAME, facts.runs if isinstance(facts, AllReduce) else (), _traffic(case, asked)))
    yield from said
    statuses = {f.status for f in said if isinstance(f, Finding)}
    unstressed = ""
    if level is Proven.AGREED and Status.PASS in statuses and statuses <= {Status.PASS, Status.WARN}:
        unstressed = _unstressed(case, asked)
        level = Proven.EXERCISED if unstressed else Proven.STRESSED
    yield Evidence("proven", str(level))
    yield Evidence("proven_means", MEANS[level])
    if unstressed:
        yield Unproven(f"{PRESSURE}: {unstressed}")
    yield Unproven("that it is so after a reboot: there is no run of another boot to compare with")


def _traffic(case: Case, asked: Mapping[str, Member]) -> Iterator[Finding]:
    recording = case.recording("allreduce")
    facts = all_reduce(recording)
    everyone = Subject(SubjectKind.FLEET, tuple(asked))
    if isinstance(facts, Unreadable):
        yield About(Code.PRIORITY_WRONG, everyone, f"{NAME}.run", "").unknown(facts, "an AllReduce between the nodes")
        return
    if len(facts.nodes) < 2:
        yield About(Code.SINGLE_NODE, everyone, f"{NAME}.run", "").fail(
            f"one node ({', '.join(facts.nodes) or 'none'})", "at least two", "within one node nothing has to use the fabric",
            status=Status.UNKNOWN, remedy="select two nodes or more")
        return
    for run in good_runs(recording, facts, NAME, facts.nodes):
        if not isinstance(run, str):
            yield run
            continue
        yield from _sent_so([f for node, me in asked.items() if node in facts.nodes and me.priority is not None
                             for f in priority.judge(me, me.priority, run, run_span(recording, run, node), expected_of(facts, run))])
    for node, me in asked.items():
        if node not in facts.nodes:
            why = Unreadable(Reason.BLOCKED, f"{node} took no part in the run")
            yield About(Code.BLOCKED, me.subject, f"{NAME}.bytes", "").unknown(why, "a rank on this node")


def _sent_so(found: Sequence[Finding]) -> Iterator[Finding]:
    """Of one run. Bytes that arrive as a node is seen to send them say nothing against who receives them."""
    wrong = [f for f in found if f.status is Status.FAIL and f.code is Code.PRIORITY_WRONG]
    senders, receivers = (tuple(dict.fromkeys(f.subject.nodes[0] for f in wrong if f.path.endswith(way))) for way in (".tx", ".rx"))
    explained = bool(senders) and len(receivers) <= len(senders)
    for f in found:
        if explained and f in wrong and f.path.endswith(".rx"):
            yield replace(f, status=Status.WARN, why=f"{f.why}; as {', '.join(senders[:8])} sends them")
        else:
            yield f


def _unstressed(case: Case, asked: Mapping[str, Member]) -> str:
    """Why the runs do not show the priority under pressure; "" where PFC or ECN worked in them, and nothing was lost anywhere."""
    recording = case.recording("allreduce")
    facts = all_reduce(recording)
    if isinstance(facts, Unreadable):
        return facts.why
    growth = [g for run in facts.runs for node, me in asked.items() for g in _growth(me, run_span(recording, run, node))]
    grew = {g.watched.kind for g in growth if isinstance(g.moved, Value) and g.moved.value and g.name != "rp_cnp_ignored"}
    if grew & {Kind.LOSS, Kind.DAMAGE}:
        return "packets were lost or damaged in this run"
    if not all(isinstance(g.moved, Value) for g in growth):
        return "not every counter of losses, pauses and ECN marks could be read"
    return "" if Kind.CONGESTION in grew else "this run caused no congestion (no pause frame, no ECN mark)"


def _growth(me: Member, span: Span) -> Iterator[Growth]:
    for fn in me.functions:
        yield from function_growth(span, fn.rdma_name)
        for name in fn.members or (fn.interface,):
            yield from port_growth(span, name, me.priority)
