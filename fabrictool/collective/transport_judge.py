"""Findings from a transport verdict: which pairs run over what, which logs are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.collective import fallback
from fabrictool.collective.edges import Carrier, EdgeVerdict
from fabrictool.collective.environ import judge_environment
from fabrictool.collective.expect import NOTHING, Expect
from fabrictool.collective.gpudirect import judge_gpudirect, judge_shared_memory
from fabrictool.collective.interfaces import judge_interfaces
from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.mixed import judge_gids, judge_versions
from fabrictool.collective.rails import judge_rails
from fabrictool.collective.transport import Overall, Verdict
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.room import About

WANT = "RDMA both ways"
CLAIM = "a claim of the logs: counters prove it"
REMEDY = ("look at the env, rdma and gids checks of these nodes; NCCL_NET=IB makes NCCL fail instead of falling back; "
          "containers need /dev/infiniband")


def judge_transport(got: Verdict, log: NcclLog, wants: Mapping[str, Expect], path: str) -> Iterator[Finding]:
    """Everything that logs tell of a run over several nodes. `wants`: node -> what its logs should show; `path`: where the findings
    belong ("allreduce.transport")."""
    yield from _overall(got, log, path)
    yield from _logs(got, path)
    yield from _pairs(got, log, path)
    for node in got.nodes:
        want = wants.get(node, NOTHING)
        yield from judge_rails(got, log, node, want, path)
        yield from judge_gpudirect(got, log, node, want, path)
        yield from judge_shared_memory(got, log, node, want, path)
        yield from judge_gids(log, node, path)
    yield from judge_interfaces(got, log, wants, path)
    yield from judge_environment(log, got.nodes, wants, path)
    yield from judge_versions(log, path)


def fleet(nodes: tuple[str, ...]) -> Subject:
    return Subject(SubjectKind.NODE if len(nodes) == 1 else SubjectKind.FLEET, nodes)


def _overall(got: Verdict, log: NcclLog, path: str) -> Iterator[Finding]:
    subject, where = fleet(got.nodes), f"{path}.overall"
    if got.overall.claims_rdma:
        yield About(Code.TCP_FALLBACK, subject, where, "").ok(f"{got.overall}: {got.why} ({CLAIM})", WANT)
    elif got.overall is Overall.SINGLE_NODE:
        yield About(Code.SINGLE_NODE, subject, where, "").fail(
            got.overall, "channels between nodes", got.why, status=Status.UNKNOWN, remedy="run over at least two nodes")
    elif got.overall in (Overall.TCP, Overall.MIXED):
        for node in got.selected_tcp if not any(Carrier.TCP in e.carriers for e in got.edges) else ():
            about = About(Code.TCP_FALLBACK, Subject(SubjectKind.NODE, (node,)), where, "")
            yield about.fail("Using network Socket", WANT, _why(got.why, log, (node,)), remedy=REMEDY)
    elif got.overall is not Overall.LOG_MISSING:
        yield About(Code.TRANSPORT_UNKNOWN, subject, where, "").fail(
            got.overall, WANT, got.why, status=Status.UNKNOWN, remedy=_what_to_do(got.overall))


def _what_to_do(overall: Overall) -> str:
    if overall is Overall.NO_CHANNELS:
        return ("set NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH and NCCL_DEBUG_FILE with %h.%p in its name, "
                "and let a collective run")
    if overall is Overall.MNNVL:
        return "NCCL_MNNVL_ENABLE=0 makes NCCL use the fabric"
    if overall is Overall.PLUGIN:
        return "let the RDMA counters decide: fabrictool check rdma_counters"
    return "collect the whole log of every rank, one file each"


def _why(why: str, log: NcclLog, nodes: tuple[str, ...]) -> str:
    """With what the nodes' logs say of the reason, once where they say the same."""
    said = {n: r for n in nodes if (r := fallback.reasons(log, n)[:3])}
    if not said:
        return why
    if len(said) == len(nodes) and len(set(said.values())) == 1:
        return f"{why}; the log says: {'; '.join(said[nodes[0]])}"
    each = "; ".join(f"{n}: {', '.join(r)}" for n, r in said.items())
    return f"{why}; the logs say: {each}"


def _logs(got: Verdict, path: str) -> Iterator[Finding]:
    if got.overall is Overall.NO_CHANNELS and not got.missing:
        return
    where = f"{path}.logs"
    bad = {m.node for m in got.missing}
    for m in got.missing:
        subject = Subject(SubjectKind.NODE, (m.node,)) if m.node else fleet(got.nodes)
        ranks = f"rank{'' if len(m.ranks) == 1 else 's'} {', '.join(map(str, m.ranks[:8]))}" if m.ranks else "this node"
        yield About(Code.LOG_MISSING, subject, where, "").fail(
            f"no log of {ranks}", "a log of every rank", "what these ranks used is not known, so nothing is known of the whole",
            status=Status.UNKNOWN, remedy="collect the NCCL log of every rank (NCCL_DEBUG_FILE with %h.%p in its name)")
    if "" not in bad:
        for node in got.nodes:
            if node not in bad:
                yield About(Code.LOG_MISSING, Subject(SubjectKind.NODE, (node,)), where, "").ok("every rank has its log")


def _pairs(got: Verdict, log: NcclLog, path: str) -> Iterator[Finding]:
    pairs: dict[tuple[str, str], list[EdgeVerdict]] = {}
    order = {n: i for i, n in enumerate(got.nodes)}
    for e in got.edges:
        a, b = sorted((e.src_node, e.dst_node), key=lambda n: order.get(n, len(order)))
        pairs.setdefault((a, b), []).append(e)
    silent = {m.node for m in got.missing}
    for (a, b), edges in pairs.items():
        if silent & {a, b} and not any(e.whole or Carrier.TCP in e.carriers for e in edges):
            continue  # LOG_MISSING says it
        known = tuple(n for n in (a, b) if n)
        if len(set(known)) == 2:
            subject = Subject(SubjectKind.PAIR, (a,), peer=b)
        else:
            subject = Subject(SubjectKind.NODE, known[:1]) if known else fleet(got.nodes)
        yield _pair(subject, edges, log, f"{path}.edges")


def _pair(subject: Subject, edges: list[EdgeVerdict], log: NcclLog, where: str) -> Finding:
    about = About(Code.TCP_FALLBACK, subject, where, "")
    tcp = [e for e in edges if Carrier.TCP in e.carriers]
    names = ", ".join(dict.fromkeys(n for e in edges for end in e.ends for n in end.names))
    if tcp:
        some = "" if len(tcp) == len(edges) else f" ({len(tcp)} of {len(edges)} rank pairs)"
        why = _why("the collective's bytes go through the kernel's sockets, however good the bandwidth looks", log,
                   tuple(n for n in (*subject.nodes[:1], subject.peer) if n))
        return about.fail(f"{names}{some}: {next((str(p) for e in tcp for p in e.proof), '')}", WANT, why, remedy=REMEDY)
    unknown = About(Code.TRANSPORT_UNKNOWN, subject, where, "")
    odd = next((e for e in edges if e.carriers & {Carrier.PLUGIN, Carrier.UNREADABLE, Carrier.LOCAL}), None)
    if odd:
        return unknown.fail(names, WANT, "its name does not tell what carries the bytes between nodes", status=Status.UNKNOWN,
                            remedy="let the RDMA counters decide: fabrictool check rdma_counters")
    half = [e for e in edges if not e.whole and Carrier.RDMA in e.carriers]
    if half:
        side = "receiver" if half[0].send else "sender"
        return unknown.fail(f"{names}: rank {half[0].src} -> {half[0].dst}, the {side} logged nothing", WANT,
                            "one end alone proves nothing", status=Status.UNKNOWN, remedy="collect the whole log of both ranks")
    if all(e.carriers == {Carrier.MNNVL} for e in edges):
        return unknown.fail(names, WANT, "NVLink joins these nodes: the RDMA fabric was not used", status=Status.UNKNOWN,
                            remedy="NCCL_MNNVL_ENABLE=0 makes NCCL use the fabric")
    return about.ok(f"{names} both ways{_devices(edges)} ({CLAIM})", WANT)


def _devices(edges: list[EdgeVerdict]) -> str:
    """`: a mlx5_0, mlx5_1; b mlx5_0`."""
    by_node: dict[str, dict[str, None]] = {}
    for e in edges:
        for node, end in ((e.src_node, e.send), (e.dst_node, e.receive)):
            if end and end.devices:
                by_node.setdefault(node, {}).update(dict.fromkeys(end.devices))
    text = "; ".join(f"{node} {', '.join(names)}" for node, names in by_node.items())
    return f": {text}" if text else ""
