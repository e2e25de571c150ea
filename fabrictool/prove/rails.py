"""`rails`: what each port of the fabric can carry: its functions, PCIe, link rate, GPUDirect, and what it did carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictool import counters, ports
from fabrictool.counters.limits import MOST
from fabrictool.model import Code, Evidence, Finding, Said, Status, Unproven, Unreadable, Value
from fabrictool.ports import BoundFunction, Netdev
from fabrictool.prove import degraded, peermem, results
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce, all_reduce, moments
from fabrictool.prove.picked import picked
from fabrictool.prove.wire import expected_of
from fabrictool.room import About
from fabrictool.snapshot import Recording
from fabrictool.spec import NodeSpec
from fabrictool.values import Rate

PROBE = "allreduce"
RECKONED = ("ports.interface", "ports.binding", "ports.members", "ports.same_port", "ports.pcie", "link.state", "link.speed", "rdma.device",
            "rdma.state", "rdma.rate")
NOT_SHOWN = "whether a NIC is degraded: link and PCIe look fine then, and only traffic shows it (fabrictool check allreduce rails)"
UNTOLD = "whether a NIC is degraded: link and PCIe look fine then, and none of the runs made here tells it; allreduce says why"


def judge(case: Case) -> Iterator[Said]:
    sick: dict[str, frozenset[str]] = {}
    for node, found in picked(case, "rails", ("ports", "link", "rdma"), lambda f: f.path in RECKONED):
        yield from found
        speeds = tuple(_speeds(case.wants[node], case))
        yield from speeds
        yield from peermem.judge(case.wants[node], case.snap(node), "rails")
        sick[node] = frozenset(f.subject.function for f in (*found, *speeds) if f.bad)
    yield from _measured(case, sick)


def _speeds(want: NodeSpec, case: Case) -> Iterator[Finding]:
    """PCIe speed; its width is the room's."""
    snap = case.snap(want.name)
    seen = ports.read(snap)
    for fn in ports.bind(want, seen):
        about = About(Code.PCIE_WIDTH, fn.subject(want), "rails.pcie_speed", "")
        for dev in _devices(fn, seen):
            if not isinstance(dev.pcie, Value) or dev.pcie.value.speed_gt_s is None or dev.pcie.value.max_speed_gt_s is None:
                continue  # that it cannot be read is said for its width
            now, best = dev.pcie.value.speed_gt_s, dev.pcie.value.max_speed_gt_s
            if now >= best:
                yield about.ok(f"{dev.name}: {now:g} GT/s", f"{best:g} GT/s")
                continue
            carries, rate = dev.pcie.value.gbit_per_s, want.ports[fn.port].rate_gbit
            share = rate / sum(1 for f in want.ports[fn.port].functions) if rate else None
            short = carries is None or share is None or carries < share
            yield about.fail(f"{dev.name}: {now:g} GT/s", f"{best:g} GT/s",
                             f"the slot, or what is between, is slower than the card: {carries or 0:.0f} Gb/s" + (
                                 f" for its part of {rate} Gb/s" if rate else ""),
                             status=Status.FAIL if short else Status.WARN,
                             remedy="look at the slot's speed in the BIOS; reseat the card; power the node off and on")


def _devices(fn: BoundFunction, seen: ports.Ports) -> tuple[Netdev, ...]:
    if fn.members:
        return tuple(d.value for d in (seen.netdev(m) for m in fn.members) if isinstance(d, Value))
    return (fn.netdev.value,) if isinstance(fn.netdev, Value) else ()


@dataclass(frozen=True, slots=True)
class _Run:
    busbw: float
    sent: Mapping[tuple[str, str], int]  # (node, function's interface) -> bytes


def _measured(case: Case, sick: Mapping[str, frozenset[str]]) -> Iterator[Said]:
    recording = case.recordings.get(PROBE)
    facts = all_reduce(recording) if recording is not None else None
    if recording is None or not isinstance(facts, AllReduce) or facts.algorithm != "Ring" or len(facts.nodes) < 2:
        yield Unproven(UNTOLD if recording is not None and isinstance(facts, Unreadable) else NOT_SHOWN)
        return
    runs = [r for name in facts.runs if (r := _run(case, recording, facts, name)) is not None]
    if not runs:
        yield Unproven(UNTOLD)
        return
    carried = []
    for node in (n for n in facts.nodes if n in case.wants):
        seen = [rates for r in runs if (rates := _rates(r, node, facts))]
        if not seen:
            yield Unproven(f"whether a NIC of {node} is degraded: its counters saw nothing of the runs, or other traffic as well")
        for fn in ports.bind(case.wants[node], ports.read(case.snap(node))) if seen else ():
            rate = case.wants[node].ports[fn.port].rate_gbit
            best = max(rates.get(fn.interface, 0.0) for rates in seen)
            if best <= 0:
                yield Unproven(f"whether the NIC at {fn.interface} of {node} is degraded: it carried nothing")
            if rate is not None and best > 0:
                healthy = fn.interface not in sick.get(node, ())
                carried.append(degraded.Carried(fn.subject(case.wants[node]), best, Rate.gbit(rate), healthy))
    if not carried:
        yield Unproven(f"{NOT_SHOWN}; no RDMA bytes were counted in the recorded runs")
        return
    yield from degraded.judge(carried, "rails.measured")
    yield Evidence("slowest_function_gbit_per_s", round(min(c.gbit_per_s for c in carried), 1))


def _rates(run: _Run, node: str, facts: AllReduce) -> Mapping[str, float]:
    """{} where the node's counters saw nothing, or more than the run's bytes: then shares of them tell nothing of the run."""
    sent = {fn: n for (of, fn), n in run.sent.items() if of == node}
    return degraded.rates(run.busbw, sent) if sum(sent.values()) <= expected_of(facts).bytes * MOST else {}


def _run(case: Case, recording: Recording, facts: AllReduce, name: str) -> _Run | None:
    """None: it did not come to a result, or a counter of some function is not to be told."""
    result = results.read(recording, facts, name, "rails")
    if not isinstance(result.busbw, Value) or not result.ended:
        return None
    before, _, after = moments(name)
    sent: dict[tuple[str, str], int] = {}
    for node in facts.nodes:
        want = case.wants.get(node)
        if want is None:
            continue
        span = counters.span(counters.read(recording.at(before, node)), counters.read(recording.at(after, node)))
        for fn in ports.bind(want, ports.read(case.snap(node))):
            moved = span.rdma_bytes(fn.rdma_name, "tx", fn.interface)
            if not isinstance(moved, Value):
                return None
            sent[node, fn.interface] = moved.value
    return _Run(result.busbw.value, sent) if sent and not isinstance(result.busbw, Unreadable) else None
