"""The control: the same AllReduce over sockets. RDMA counters that move in it would prove nothing when they move in the real one."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.counters import Span, size_text
from fabrictool.counters.delta import total
from fabrictool.counters.limits import LEAST, STILL
from fabrictool.model import Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove import left
from fabrictool.prove.case import Case
from fabrictool.prove.facts import END, AllReduce, all_reduce
from fabrictool.prove.wire import WAYS, Member, expected_of, good_runs, idle_span, member, run_span, unseen
from fabrictool.room import About
from fabrictool.snapshot import Recording

PATH = "rdma_counters.control"
IFNAME = "NCCL_SOCKET_IFNAME"


def judge(case: Case) -> Iterator[Finding]:
    everyone = Subject(SubjectKind.FLEET, tuple(case.wants))
    about = About(Code.CONTROL_MOVED, everyone, PATH, "")
    if "control" not in case.recordings:
        yield about.skip("not asked for: --control runs it")
        return
    recording = case.recording("control")
    facts = all_reduce(recording)
    if isinstance(facts, Unreadable):
        yield about.unknown(facts, "a run over sockets")
        return
    if facts.network != "Socket" or len(facts.nodes) < 2:
        why = Unreadable(Reason.FAILED, f"NCCL_NET={facts.network or '(not set)'} on {len(facts.nodes)} nodes is no control")
        yield about.unknown(why, "NCCL_NET=Socket on two nodes or more")
        return
    yield from _left(recording, facts)
    if expected_of(facts).bytes <= 0:
        no = Unreadable(Reason.GARBLED, f"{facts.calls} calls of {facts.size_bytes} bytes are no traffic")
        yield about.unknown(no, "a run that moves bytes")
        return
    for run in good_runs(recording, facts, PATH, facts.nodes):
        if not isinstance(run, str):
            yield run
            continue
        for node in (n for n in case.wants if n in facts.nodes):
            me = member(case, node)
            span = run_span(recording, run, node)
            yield _still(me, run, span, idle_span(recording, node))
            yield _moving(me, run, span, facts)


def _left(recording: Recording, facts: AllReduce) -> Iterator[Finding]:
    """The control starts ranks of its own, and of them too nothing may be there: after its run, and when everything was ended."""
    for node in facts.nodes:
        takes = [recording.at(moment, node) for moment in (*facts.runs, END)]
        yield left.judge(node, takes, f"{PATH}.left", facts.launcher, "the control run")


def _still(me: Member, run: str, span: Span, idle: Span) -> Finding:
    """All RDMA devices of the node together, each way."""
    about = About(Code.CONTROL_MOVED, me.subject, f"{PATH}.{run}.rdma", "")
    want = f"below {size_text(STILL)} of RDMA"
    devices = span.devices
    if not devices and not span.broken:
        return about.unknown(Unreadable(Reason.EMPTY, f"{me.want.name}: no RDMA device was read"), want)
    seen = span.broken or total(span.rdma_bytes(d, way) for d in devices for way in WAYS)
    if not isinstance(seen, Value):
        return unseen(about, seen, want)
    got = f"{size_text(seen.value)} of RDMA on {len(devices)} devices"
    if seen.value < STILL:
        return about.ok(got, want)
    before = total(idle.rdma_bytes(d, way) for d in devices for way in WAYS)
    if isinstance(before, Value) and before.value >= STILL / 2:
        return About(Code.FOREIGN_TRAFFIC, me.subject, about.path, "").fail(
            got, want, "another job uses these devices: they moved before the run too", status=Status.UNKNOWN,
            remedy="let the other job end, then run again")
    return about.fail(got, want, "RDMA counters moved although NCCL was told to use sockets: they do not tell RDMA from TCP here, or "
                      "something else of the job uses RDMA (MPI, a storage client)",
                      remedy="keep MPI off RDMA, find what moves them (`rdma resource show qp`), then run again")


def _moving(me: Member, run: str, span: Span, facts: AllReduce) -> Finding:
    """The kernel's own path must have carried the run: a control that moved nothing controls nothing."""
    about = About(Code.COUNTERS_SHORT, me.subject, f"{PATH}.{run}.sockets", "")
    need = expected_of(facts, run)
    names = _interfaces(me, span, facts)
    want = f"{size_text(round(need.bytes * LEAST))} or more each way by TCP: {need.how}"
    parts = [span.broken or total(span.net(name, f"{way}_bytes") for name in names) for way in WAYS]
    numbers = [p.value for p in parts if isinstance(p, Value)]
    if len(numbers) < len(parts):
        return unseen(about, next(p for p in parts if not isinstance(p, Value)), want)
    got = f"{' and '.join(f'{size_text(n)} {way}' for n, way in zip(numbers, WAYS, strict=True))} on {', '.join(names)}"
    if min(numbers) >= need.bytes * LEAST:
        return about.ok(got, want)
    return about.fail(got, want, "the control did not go over these interfaces, so it shows nothing", status=Status.UNKNOWN,
                      remedy="see which interface NCCL's log names in `NET/Socket : Using`")


def _interfaces(me: Member, span: Span, facts: AllReduce) -> tuple[str, ...]:
    """The interface that the run was pinned to; without a pin all that carry the fabric."""
    pinned = facts.added.get(IFNAME, "").lstrip("=^")
    if pinned in span.after.nets:
        return (pinned,)
    every = (*(fn.interface for fn in me.functions), me.want.bootstrap or "")
    return tuple(name for name in dict.fromkeys(every) if name in span.after.nets)
