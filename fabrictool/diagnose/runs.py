"""Runs of a collective: nccl-tests output, its JSON, NCCL logs of one or many hosts, and what programs around NCCL say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictool.collective import bands, log, result, symptoms, tests_json, tests_text, transport
from fabrictool.collective.expect import Expect, of_gpu
from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.model import Asked, Ending, TestRun
from fabrictool.collective.symptoms_judge import judge_symptoms
from fabrictool.collective.transport_judge import judge_transport
from fabrictool.diagnose.model import Case, Judged
from fabrictool.diagnose.proof import numbered, proven
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Piece
from fabrictool.spec import CollectiveSpec, NodeSpec
from fabrictool.values import Rate

KINDS = frozenset({Kind.NCCL_TESTS, Kind.NCCL_TESTS_JSON, Kind.NCCL_LOG, Kind.PROGRAM})
PATH = "collective"


@dataclass(frozen=True, slots=True)
class Group:
    """What belongs to one run."""

    cases: tuple[Case, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(c.piece for c in self.cases)


def judge(cases: Sequence[Case]) -> Iterator[Judged]:
    """Each run with its own log lines; logs without a run together, as those of many hosts are one run's. A single run that has no log
    lines of its own gets the logs beside it."""
    runs = [c for c in cases if c.piece.kind is Kind.NCCL_TESTS][:MOST_RUNS]
    logs = [c for c in cases if c.piece.kind is Kind.NCCL_LOG]
    if len(runs) == 1 and logs and not merged((runs[0].piece,))[0].processes:
        yield _run(Group((runs[0], *logs)))
        runs, logs = [], []
    for case in runs:
        yield _run(Group((case,)))
    if logs:
        yield _logs(Group(tuple(logs)))
    for case in cases:
        if case.piece.kind is Kind.NCCL_TESTS_JSON:
            yield _json(case)
        elif case.piece.kind is Kind.PROGRAM:
            yield _program(case)


MOST_RUNS = 200  # of one input: each is read with the line numbers of the whole
MOST_NODES = 1024  # more host names than that in one input are damage or a trap, and the judges look at each against each


def merged(pieces: Iterable[Piece], nodes: Mapping[int, str] | None = None) -> tuple[NcclLog, int]:
    """All of them as one, and how many host names that are if there are too many: then the log is empty. `nodes`: whose a piece is, by
    its id(), where its lines do not tell."""
    whole = log.merge([log.parse(numbered(p), (nodes or {}).get(id(p), ""), p.source) for p in pieces])
    hosts = len({p.key.node for p in whole.processes})
    return (whole, 0) if hosts <= MOST_NODES else (NcclLog(), hosts)


def crowd(hosts: int, path: str) -> list[Finding]:
    """That the log was not judged, if it was not."""
    if not hosts:
        return []
    return [Finding(Code.NOTHING_KNOWN, Subject(SubjectKind.FLEET, ()), f"{path}.known", "", f"{hosts} host names in one set of logs", "",
                    f"logs of more than {MOST_NODES} hosts are not judged together, so nothing of them was judged: each rank is held"
                    " against each", Status.UNKNOWN,
                    remedy="give the logs of fewer hosts at a time: first those of the ranks that err")]


def _run(group: Group) -> Judged:
    first = group.cases[0]
    run = tests_text.parse(numbered(first.piece))
    subject, nodes = subjects(run)
    seen, hosts = merged(group.pieces)
    rc = first.piece.rc if first.piece.rc is not None else run.exit_status
    own = list(result.judge(run, Asked(), Ending(rc), subject, PATH, nodes))
    told = list(carried(seen, run, group)) if seen.processes else []
    symptoms_of = list(faults(seen, rc is not None)) if seen.processes else []
    findings = [*(f for f in own if f.code is Code.WRONG_RESULT and f.status is Status.FAIL), *symptoms_of, *own, *told,
                *crowd(hosts, PATH), *one_node(run, subject, told), *bandwidth(run, subject, first.wants)]
    unproven = (NO_LOG,) if not seen.processes and run.concluded and not hosts else unproven_of(told)
    kind = Kind.NCCL_TESTS if run.of_nccl_tests or seen.processes else Kind.PROGRAM  # a launcher's lines may be anybody's
    return Judged(kind, group.pieces, proven(findings, group.pieces), described(run), unproven)


NO_LOG = "which transport carried it: there are no lines of NCCL's log (NCCL_DEBUG=INFO)"
CLAIMED = "that the bytes went over RDMA: logs claim it, only counters prove it (fabrictool check rdma_counters)"


def unproven_of(told: Iterable[Finding]) -> tuple[str, ...]:
    return (CLAIMED,) if any(f.code is Code.TCP_FALLBACK and f.status is Status.PASS for f in told) else ()


def subjects(run: TestRun) -> tuple[Subject, dict[str, Subject]]:
    hosts = run.hosts
    nodes = {h: Subject(SubjectKind.NODE, (h,)) for h in hosts}
    return (nodes[hosts[0]] if len(hosts) == 1 else Subject(SubjectKind.FLEET, hosts)), nodes


def described(run: TestRun) -> str:
    program = run.program.value if isinstance(run.program, Value) else ""
    ranks = run.ranks
    if not isinstance(ranks, Value):
        return program
    hosts = run.hosts
    where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} nodes"
    return f"{program} {ranks.value} rank{'s' * (ranks.value != 1)} on {where}".strip()


def carried(seen: NcclLog, run: TestRun | None, group: Group) -> Iterator[Finding]:
    """Host names are the names of nodes here, as both nccl-tests and NCCL print them."""
    ranks: dict[int, str] = {}
    expected: tuple[str, ...] = ()
    if run is not None and isinstance(run.ranks, Value):
        hosts = {k.node.lower() for k in (p.key for p in seen.processes)}
        full = {h.lower(): h for h in run.hosts}
        if hosts <= full.keys():
            ranks = {d.rank: d.host for d in run.devices}
            expected = run.hosts
    got = transport.verdict(seen, ranks if not _one_host_for_two(seen, ranks) else None, expected)
    yield from judge_transport(got, seen, _wants(run, group, got.nodes), f"{PATH}.transport")


def _one_host_for_two(seen: NcclLog, ranks: Mapping[int, str]) -> bool:
    """NCCL counts more nodes than there are host names (containers with one name, NCCL_HOSTID): then the names tell nothing."""
    counted = {c.nodes for p in seen.processes for c in p.comms if c.nodes is not None}
    return bool(counted) and bool(ranks) and max(counted) > len(set(ranks.values()))


def _wants(run: TestRun | None, group: Group, nodes: Iterable[str]) -> dict[str, Expect]:
    """What the spec says of the nodes, where there is one; else what the GPU's name tells."""
    models = {d.host: d.gpu for d in run.devices} if run is not None else {}
    out: dict[str, Expect] = {}
    for node in nodes:
        want = next((w for c in group.cases for w in c.wants.values() if w.name == node or node.partition(".")[0] == w.name), None)
        if want is None:
            out[node] = of_gpu(models.get(node, ""))
            continue
        gpu = want.gpu
        hcas = tuple(fn.rdma for port in want.ports.values() for fn in port.functions if fn.rdma)
        out[node] = Expect(hcas, want.other_rdma, want.bootstrap or "", gpu.unified_memory if gpu else None,
                           gpu.gpudirect if gpu else "preferred")
    return out


def faults(seen: NcclLog, ended: bool) -> Iterator[Finding]:
    yield from judge_symptoms(symptoms.diagnose(seen), seen, f"{PATH}.symptoms", ended=ended)


def one_node(run: TestRun, subject: Subject, told: Sequence[Finding]) -> Iterator[Finding]:
    """Of a result of one host nothing follows for the fabric. Where NCCL's log is there, that tells."""
    if not told and run.concluded and len(run.hosts) == 1:
        yield About(Code.SINGLE_NODE, subject, f"{PATH}.hosts", "").fail(
            f"all ranks on {run.hosts[0]}", "ranks on several nodes", "nothing is known of the fabric", status=Status.UNKNOWN,
            remedy="run over at least two nodes")


def bandwidth(run: TestRun, subject: Subject, wants: Mapping[str, NodeSpec]) -> Iterator[Finding]:
    """Without a spec it is told, and not judged: what it should be only the ports' rate says."""
    busbw = result.gate_busbw(run)
    if not isinstance(busbw, Value):
        return
    about = About(Code.LOW_BUSBW, subject, f"{PATH}.busbw", "")
    text = f"{busbw.value:g} GB/s bus bandwidth at {max(r.size_bytes for r in run.rows)} bytes"
    named = [wants.get(h) or wants.get(h.partition(".")[0]) for h in run.hosts]
    nodes = [w for w in named if w is not None and w.ports and all(p.rate_gbit for p in w.ports.values())]
    if len(nodes) < 2 or len(nodes) < len(named):
        yield about.ok(text)
        return
    carries = bands.smallest([_capacity(w) for w in nodes])
    least = max((w.collective or CollectiveSpec()).min_share_of_line_rate for w in nodes)
    wanted = f"at least {carries.gbytes_per_s * least:.2f} GB/s: {least:g} of {carries}, by the spec's rates"
    lies = bands.band(busbw.value, carries, least)
    if lies in (bands.Band.GOOD, bands.Band.ABOVE):  # over two nodes a tree may show more than the ports carry
        yield about.ok(text, wanted)
    else:
        yield about.fail(text, wanted, bands.WHY[lies],
                         remedy="see what the log says of the transport; then "
                                "`fabrictool check rails qos path_mtu -i INVENTORY`")


def _capacity(want: NodeSpec) -> bands.Capacity:
    return bands.Capacity(want.name, tuple(
        bands.PortCapacity(name, Rate.gbit(port.rate_gbit or 0), None, len(port.functions)) for name, port in want.ports.items()))


def _logs(group: Group) -> Judged:
    seen, hosts = merged(group.pieces)
    told = list(carried(seen, None, group)) if seen.processes else []
    findings = [*faults(seen, False), *told, *crowd(hosts, PATH)]
    nodes = tuple(dict.fromkeys(p.key.node for p in seen.processes if p.key.known))
    about = f"{len(seen.processes)} process{'es' * (len(seen.processes) != 1)} on {', '.join(nodes[:4])}" if nodes else ""
    more = f" and {len(nodes) - 4} more nodes" if len(nodes) > 4 else ""
    return Judged(Kind.NCCL_LOG, group.pieces, proven(findings or _nothing(group), group.pieces), about + more, unproven_of(told))


def _nothing(group: Group) -> list[Finding]:
    """A log in which no line tells anything."""
    return [Finding(Code.NOTHING_KNOWN, group.cases[0].subject, f"{PATH}.known", "",
                    f"{sum(len(p.lines) for p in group.pieces)} lines", "", "no line of it tells a transport, an error or a phase",
                    Status.UNKNOWN, remedy="set NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH and run again")]


def _json(case: Case) -> Judged:
    got = tests_json.parse(case.piece.text)
    if isinstance(got, Unreadable):
        finding = About(Code.RESULT_UNPARSED, case.subject, f"{PATH}.json", "").unknown(got, "a whole JSON result")
        return Judged(Kind.NCCL_TESTS_JSON, (case.piece,), proven([finding], (case.piece,)))
    subject, nodes = subjects(got)
    findings = [*result.judge(got, Asked(), Ending(got.exit_status), subject, PATH, nodes), *one_node(got, subject, []),
                *bandwidth(got, subject, case.wants)]
    return Judged(Kind.NCCL_TESTS_JSON, (case.piece,), tuple(findings), described(got),
                  ("which transport carried it: the file does not tell",))


def _program(case: Case) -> Judged:
    """Lines of PyTorch, Gloo and engines. Without a known one nothing is proven."""
    seen = log.parse(numbered(case.piece), node=case.node, source=case.piece.source)
    findings = list(judge_symptoms(symptoms.diagnose(seen), seen, f"{PATH}.symptoms"))
    if not findings:
        findings = [Finding(Code.NOTHING_KNOWN, case.subject, f"{PATH}.known", "", f"{len(case.piece.lines)} lines of a program", "",
                            "no line of it is a symptom that is known here: that proves nothing", Status.UNKNOWN,
                            remedy="paste what every rank printed: one rank errs and the others wait")]
    return Judged(Kind.PROGRAM, (case.piece,), proven(findings, (case.piece,)), case.node)
