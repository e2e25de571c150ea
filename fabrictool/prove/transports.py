"""What carried a run, and what went wrong in it, as the NCCL logs of all its ranks tell (room collective): a claim, which the counters
prove or refute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fabrictool import ports
from fabrictool.collective import fallback, log, transport
from fabrictool.collective.environ import REMEDY as NOT_REACHED
from fabrictool.collective.expect import Expect, of_spec
from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.symptoms import diagnose
from fabrictool.collective.symptoms_judge import judge_symptoms
from fabrictool.collective.transport_judge import REMEDY, judge_transport
from fabrictool.env.derive import desired
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce
from fabrictool.prove.results import ranks
from fabrictool.room import About
from fabrictool.snapshot import Captured, Recording
from fabrictool.spec import NodeSpec

SECTION = "nccl.log"
_PID = re.compile(r"\.[0-9]{1,10}$")


def logs(recording: Recording, facts: AllReduce, name: str) -> NcclLog:
    """Every node's logs under the spec's names. A log that was cut is still a log: what it lacks is not claimed."""
    found = []
    for node in facts.nodes:
        take = recording.at(name, node)
        for item in take.items(SECTION):
            found.append(log.parse(take.sections[f"{SECTION}[{item}]"].out, node, item))
    return log.merge(found)


def judge(case: Case, recording: Recording, facts: AllReduce, name: str, path: str) -> Iterator[Finding]:
    """Of a gated run. Paths begin with `path`.transport."""
    seen = logs(recording, facts, name)
    where = f"{path}.transport"
    if seen.empty:
        about = About(Code.LOG_MISSING, Subject(SubjectKind.FLEET, facts.nodes), f"{where}.logs", "")
        why = next((take.error.why for node in facts.nodes if (take := recording.at(name, node)).error), "")
        yield about.fail("no log of any rank", "a log of every rank", why or "NCCL wrote none, so nothing is known of what carried the run",
                         status=Status.UNKNOWN, remedy="see that NCCL_DEBUG_FILE can be written on the nodes")
        return
    wants = {node: expect(case.wants[node], case, facts) for node in facts.nodes if node in case.wants}
    got = transport.verdict(seen, dict(enumerate(facts.rank_nodes)), facts.nodes)
    apart = list(mixed(seen, facts.nodes, where))
    yield from apart
    alone = {f.subject.nodes[0] for f in apart}
    told = [_bare(f, facts) for f in judge_transport(got, seen, wants, where)
            if not (f.code is Code.TCP_FALLBACK and f.status is Status.FAIL and alone & {*f.subject.nodes, f.subject.peer})]
    yield from _every_pair(told, facts)


def _bare(f: Finding, facts: AllReduce) -> Finding:
    """Where no consumer's environment was found, there was nothing that could have reached the ranks."""
    if f.code is not Code.ENV_NOT_PROPAGATED or f.remedy != NOT_REACHED or facts.consumer:
        return f
    return replace(f, remedy="no consumer runs, and no env file of the spec is on the node, so the ranks got only NCCL's own files: see "
                             "what `fabrictool plan` would write")


def mixed(seen: NcclLog, nodes: Iterable[str], path: str) -> Iterator[Finding]:
    """Nodes that take sockets while others take RDMA: the two cannot connect."""
    took = {n: {w.casefold() for p in seen.processes if p.key.node == n for w in p.networks} for n in nodes}
    others = {w for words in took.values() for w in words} - {"socket"}
    for node, words in took.items():
        if words == {"socket"} and others:
            yield About(Code.NCCL_MIXED, Subject(SubjectKind.NODE, (node,)), f"{path}.network", "").fail(
                "sockets", f"what the others take: {', '.join(sorted(others))[:80]}",
                "; ".join(("this node takes sockets while its peers take RDMA: they cannot connect, and wait for each other",
                           *(f"its log says: {r}" for r in fallback.reasons(seen, node)[:2]))), remedy=REMEDY)


def _every_pair(found: Iterable[Finding], facts: AllReduce) -> Iterator[Finding]:
    """The same fault of every pair of nodes as one finding about all of them."""
    said = list(found)
    pairs = [f for f in said if f.subject.kind is SubjectKind.PAIR and f.path.endswith(".edges")]
    first = pairs[0] if len(pairs) > 1 and all((f.code, f.status) == (pairs[0].code, Status.FAIL) for f in pairs) else None
    for f in said:
        if f is first:
            whole = Subject(SubjectKind.FLEET, facts.nodes)
            yield replace(f, subject=whole, got=f"all {len(pairs)} pairs of nodes; {f.got}")
        elif first is None or f not in pairs:
            yield f


def symptoms(recording: Recording, facts: AllReduce, name: str, path: str, *, good: bool) -> Iterator[Finding]:
    """What logs and the ranks' own output tell of errors. `good`: the run came to its result all the same, so that an error in its logs
    is something to look at."""
    told = [log.parse(got.err, node, f"rank {rank}") for rank, node, got in ranks(recording, facts, name) if isinstance(got, Captured)]
    seen = log.merge([logs(recording, facts, name), *told])
    found = list(judge_symptoms(diagnose(seen), seen, f"{path}.symptoms", ended=True))
    for f in _not_begun(found, seen, facts, f"{path}.symptoms.start"):
        status = Status.WARN if good and f.status is Status.FAIL else f.status
        yield replace(f, status=status, path=_PID.sub("", f.path))  # a process number would give each run another finding


def _not_begun(found: Sequence[Finding], seen: NcclLog, facts: AllReduce, path: str) -> Iterator[Finding]:
    """Where ranks hang in their start: nodes whose log does not even begin one are the cause, and the others wait for them."""
    logged = {p.key.node for p in seen.processes}
    begun = {p.key.node for p in seen.processes if p.comms}
    hangs = [f for f in found if f.path == path and f.code is Code.INIT_HANG and f.status is Status.FAIL]
    silent = [n for n in facts.nodes if n in logged - begun]
    missed = [n for n in silent if not any(n in f.subject.nodes for f in hangs)]
    if not hangs or not missed or not begun:
        yield from found
        return
    yield from (f for f in found if f not in hangs or not begun & set(f.subject.nodes))
    for node in missed:
        yield About(Code.INIT_HANG, Subject(SubjectKind.NODE, (node,)), path, "").fail(
            "its log holds no start of a communicator", "Init START", f"the others wait for it: {', '.join(sorted(begun))}",
            remedy="look at the rank there: its stack (py-spy, gdb), nvidia-smi, the file systems that it imports from")


def expect(want: NodeSpec, case: Case, facts: AllReduce) -> Expect:
    """What the node's ranks should show: the rails' devices as bound, and the environment that the spec derives, where somebody is to have
    it. What the tool itself added is its own matter, but for the algorithm: the counting of bytes hangs on it."""
    seen = ports.read(case.snap(want.name))
    hcas = tuple(fn.rdma_name for fn in ports.bind(want, seen) if fn.rdma_name != "?")
    env: dict[str, str] = {}
    if want.env.write or want.env.consumers or (want.collective and want.collective.consumer):
        env = {n: v for n, v in desired(want, seen).variables.items() if n.startswith("NCCL_") and n not in facts.added}
    if facts.algorithm:
        env["NCCL_ALGO"] = facts.algorithm
    return of_spec(want, hcas, env, env_shown=_env_shown(facts))


def _env_shown(facts: AllReduce) -> bool:
    """Whether the ranks were told to log every variable that NCCL takes: then one that is not in a log was not there."""
    return facts.added.get("NCCL_DEBUG") == "INFO" and "ENV" in facts.added.get("NCCL_DEBUG_SUBSYS", "").split(",")
