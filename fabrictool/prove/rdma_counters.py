"""Whether the bytes of an AllReduce went over the fabric's RDMA devices, by the devices' own counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.counters import Moved, Span, size_text
from fabrictool.counters.limits import FLAT, FOREIGN, LEAST, MOST, SHARE_FAIL, SHARE_WARN, Expected
from fabrictool.model import Absent, Code, Evidence, Finding, Reason, Said, Status, Subject, SubjectKind, Unproven, Unreadable, Value
from fabrictool.prove import control, losses, strays
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce, all_reduce
from fabrictool.prove.overruns import bad_once
from fabrictool.prove.wire import (
    WAYS,
    Member,
    carried,
    expected_of,
    good_runs,
    idle_span,
    member,
    node_bytes,
    run_span,
    unseen,
)
from fabrictool.room import About
from fabrictool.snapshot import Recording

NAME = "rdma_counters"
LEAST_SHARE = "least_share_of_expected"
WORDS = {"tx": "sent", "rx": "received"}


def judge(case: Case) -> Iterator[Said]:
    """The check `rdma_counters`: each thing once that stands against a node. What the run with NCCL's own choice moved is told only of
    nodes whose gated runs are well."""
    facts = all_reduce(case.recording("allreduce"))
    said = list(bad_once(NAME, facts.runs if isinstance(facts, AllReduce) else (), measured(case)))
    short = {f.subject.nodes for f in said if isinstance(f, Finding) and f.status is Status.FAIL and f.path.startswith(f"{NAME}.bytes")}
    for one in said:
        default = isinstance(one, Finding) and isinstance(facts, AllReduce) and one.path == f"{NAME}.bytes.{facts.default_run}"
        if not (default and isinstance(one, Finding) and one.bad and one.subject.nodes in short):
            yield one


def measured(case: Case) -> Iterator[Said]:
    """Run by run, and each way by itself."""
    recording = case.recording("allreduce")
    facts = all_reduce(recording)
    everyone = Subject(SubjectKind.FLEET, tuple(case.wants))
    if isinstance(facts, Unreadable):
        yield About(Code.COUNTERS_FLAT, everyone, f"{NAME}.run", "").unknown(facts, "an AllReduce between the nodes")
    elif len(facts.nodes) < 2:
        yield About(Code.SINGLE_NODE, everyone, f"{NAME}.run", "").fail(
            f"one node ({', '.join(facts.nodes) or 'none'})", "at least two", "within one node nothing has to use the fabric",
            status=Status.UNKNOWN, remedy="select two nodes or more")
    elif expected_of(facts).bytes <= 0:
        no = Unreadable(Reason.GARBLED, f"{facts.calls} calls of {facts.size_bytes} bytes are no traffic")
        yield About(Code.COUNTERS_FLAT, everyone, f"{NAME}.run", "").unknown(no, "a run that moves bytes")
    else:
        yield from _runs(case, recording, facts)
    said = list(control.judge(case))
    yield from said
    if said and all(f.status is Status.PASS for f in said):
        yield Evidence("control_run", "over TCP, RDMA counters stood still")


def _runs(case: Case, recording: Recording, facts: AllReduce) -> Iterator[Said]:
    runs = []
    for one in good_runs(recording, facts, NAME, facts.nodes):
        if isinstance(one, str):
            runs.append(one)
        else:
            yield one
    least: list[float] = []
    for node in case.wants:
        me = member(case, node)
        if node not in facts.nodes:
            why = Unreadable(Reason.BLOCKED, f"{node} took no part in the run")
            yield About(Code.BLOCKED, me.subject, f"{NAME}.bytes", "").unknown(why, "a rank on this node")
        elif not me.functions:
            yield About(Code.COUNTERS_FLAT, me.subject, f"{NAME}.bytes", "").skip("the spec names no port of this node")
        else:
            for said in _node(recording, facts, tuple(runs), me):
                if isinstance(said, Evidence):
                    least.append(float(said.value))
                else:
                    yield said
    yield Evidence("expected_per_node_bytes", expected_of(facts).bytes)
    if least:
        yield Evidence(LEAST_SHARE, round(min(least), 3))
    if "control" not in case.recordings:
        yield Unproven("that these counters stand still when a job runs over TCP: --control shows it")


def _node(recording: Recording, facts: AllReduce, runs: tuple[str, ...], me: Member) -> Iterator[Said]:
    node = me.want.name
    idle = idle_span(recording, node)
    spans = {run: run_span(recording, run, node) for run in facts.runs}
    foreign = _idle(me, idle, spans, facts)
    yield foreign
    for run in runs:
        need = expected_of(facts, run)
        for finding, shares in _bytes(me, run, spans[run], need):
            # Beside foreign traffic only a shortfall is sure: whatever else the counters hold may be somebody else's.
            if not foreign.bad or finding.status is Status.FAIL:
                yield finding
                yield from (Evidence(LEAST_SHARE, s) for s in shares)
        if not foreign.bad:
            yield from _shares(me, run, spans[run], need)
    if facts.default_run:
        yield _default(me, facts, run_span(recording, facts.default_run, node))
    yield from strays.judge(me, idle, {run: spans[run] for run in runs}, {run: expected_of(facts, run) for run in runs})
    yield from losses.judge(me, recording, spans)


def _idle(me: Member, idle: Span, spans: Mapping[str, Span], facts: AllReduce) -> Finding:
    """Bytes while nothing of ours ran, scaled to the longest run by the node's own clock. Never subtracted: what was there before need not
    have stayed."""
    limit = round(expected_of(facts).bytes * FOREIGN)
    about = About(Code.FOREIGN_TRAFFIC, me.subject, f"{NAME}.idle", "")
    want = f"at most {size_text(limit)} in the time of a run"
    if not isinstance(idle.seconds, Value):
        return unseen(about, idle.broken or _blind(idle.seconds), want)
    parts = []
    for way in WAYS:
        seen = node_bytes(idle, me.functions, way)
        if not isinstance(seen, Value):
            return unseen(about, seen, want)
        parts.append(seen.value)
    quiet_s = idle.seconds.value
    run_s = max((s.seconds.value for s in spans.values() if isinstance(s.seconds, Value)), default=quiet_s)
    scaled = round(max(parts) * run_s / quiet_s)
    got = f"{size_text(max(parts))} in {quiet_s:.1f} s before our job, that is {size_text(scaled)} in the {run_s:.1f} s of a run"
    if scaled <= limit:
        return about.ok(got, want)
    return about.fail(got, want, "another job uses these devices, so the counters cannot show what ours did", status=Status.UNKNOWN,
                      remedy="let the other job end, or choose other nodes; `rdma resource show qp` names its process")


def _blind(seen: Absent | Unreadable) -> Unreadable:
    return seen if isinstance(seen, Unreadable) else Unreadable(Reason.EMPTY, f"{seen.what}: absent")


def _bytes(me: Member, run: str, span: Span, need: Expected) -> Iterator[tuple[Finding, tuple[float, ...]]]:
    """A finding for each way, and the share of what the run needs (none where that is no number)."""
    for way in WAYS:
        about = About(Code.COUNTERS_SHORT, me.subject, f"{NAME}.bytes.{run}.{way}", "")
        upper = f" to {size_text(round(need.bytes * MOST))}" if need.exact else " or more"
        want = f"{size_text(round(need.bytes * LEAST))}{upper} {WORDS[way]}: {need.how}"
        seen = node_bytes(span, me.functions, way)
        if isinstance(seen, Value):
            share = seen.value / need.bytes
            got = f"{size_text(seen.value)} {WORDS[way]}, {share:.2f} of what the run needs"
            yield _amount(about, share, got, want, need, me, span), (share,)
        else:
            yield unseen(about, seen, want), ()


def _amount(about: About, share: float, got: str, want: str, need: Expected, me: Member, span: Span) -> Finding:
    if share < FLAT:
        names = ", ".join(fn.rdma_name for fn in me.functions)
        return About(Code.COUNTERS_FLAT, about.subject, about.path, "").fail(
            got, want, f"the RDMA counters of {names} stood still while the run was done, whatever the log or the bandwidth says"
            f"{_by_sockets(span, need)}",
            remedy="look at the transport that NCCL's log names, and at NCCL_IB_HCA, /dev/infiniband and the memory lock limit of the job")
    if share < LEAST:
        return about.fail(got, want, "the run needs more bytes than the RDMA counters saw: part of it went another way",
                          remedy="look at NCCL_IB_HCA, at RDMA devices that the spec does not name, and at sockets in NCCL's log")
    if need.exact and share > MOST:
        return About(Code.FOREIGN_TRAFFIC, about.subject, about.path, "").fail(
            got, want, "more than the run and its headers: somebody else used these devices", status=Status.UNKNOWN,
            remedy="let the other job end and run again (nccl-tests before 2.16.8 warms up twice: use a newer one)")
    return about.ok(got, want)


def _by_sockets(span: Span, need: Expected) -> str:
    """Where the bytes were instead, if the kernel's own path had them."""
    for name in span.after.nets:
        seen = span.net(name, "tx_bytes")
        if isinstance(seen, Value) and seen.value >= need.bytes / 4:
            return f": {name} sent {size_text(seen.value)} by way of the kernel, that is by TCP"
    return ""


def _shares(me: Member, run: str, span: Span, need: Expected) -> Iterator[Finding]:
    """Each rail's part of the mean. Says nothing where the node's bytes are no number, or there are none: that was said already."""
    parts: list[tuple[Moved, Moved]] = [(carried(span, fn, "tx"), carried(span, fn, "rx")) for fn in me.functions]
    numbers = [(tx.value, rx.value) for tx, rx in parts if isinstance(tx, Value) and isinstance(rx, Value)]
    if len(numbers) < len(parts) or any(sum(n[i] for n in numbers) < need.bytes * FLAT for i in range(2)):
        return
    means = [sum(n[i] for n in numbers) / len(numbers) for i in range(2)]
    shares = [min(n[i] / means[i] for i in range(2)) for n in numbers]
    carrying = sum(1 for s in shares if s >= SHARE_FAIL)
    for fn, share, (tx, rx) in zip(me.functions, shares, numbers, strict=True):
        code = Code.SINGLE_RAIL if carrying == 1 and len(shares) > 1 else Code.RAIL_IDLE
        about = About(code, fn.subject(me.want), f"{NAME}.share.{run}", "")
        got, want = f"{share:.2f} of the mean ({size_text(tx)} sent, {size_text(rx)} received)", f"at least {SHARE_WARN} of the mean"
        if share >= SHARE_WARN:
            yield about.ok(got, want)
            continue
        there = isinstance(fn.rdma, Value) or fn.rdma_name in span.devices
        why = (f"{fn.rdma_name} is not on the node" if not there else
               f"only one of {len(shares)} rails carries the run" if code is Code.SINGLE_RAIL and share < SHARE_FAIL else
               "this rail carries less than its part: the others wait for it" if share >= SHARE_FAIL else
               "this rail carries next to nothing")
        remedy = ("see that the port is ACTIVE, its GID has the rail's address, and NCCL_IB_HCA names the device: NCCL leaves out what is "
                  "down without a word" if share < SHARE_FAIL else "look at PCIe width, link rate and congestion of this function")
        if share < SHARE_FAIL:
            yield about.fail(got, want, why, remedy=remedy)
        else:
            yield About(Code.RAIL_IDLE, about.subject, about.path, "").warn(got, want, why, remedy=remedy)


def _default(me: Member, facts: AllReduce, span: Span) -> Finding:
    """The run with NCCL's own choice: only lower bounds hold, and nothing hangs on it."""
    need = expected_of(facts, facts.default_run)
    seen = [node_bytes(span, me.functions, way) for way in WAYS]
    numbers = [s.value for s in seen if isinstance(s, Value)]
    code = Code.COUNTERS_FLAT if min(numbers, default=0) < need.bytes * FLAT else Code.COUNTERS_SHORT
    about = About(code, me.subject, f"{NAME}.bytes.{facts.default_run}", "")
    if len(numbers) < len(seen):
        return about.skip("not gated: the counters around the run with NCCL's own choice of algorithm could not be read")
    got = f"{size_text(numbers[0])} sent, {size_text(numbers[1])} received (not gated)"
    want = f"{size_text(need.bytes)} each way or more: {need.how}"
    if min(numbers) >= need.bytes * LEAST:
        return about.ok(got, want)
    return about.warn(got, want, "with NCCL's own choice of algorithm the node moved less than any algorithm must",
                      remedy="compare the log of this run with those of the gated ones")
