"""Counters of loss, damage, hints and congestion over the gated runs, function by function and port by port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.counters import Invalid, Span, parse
from fabrictool.counters.delta import total
from fabrictool.counters.loss import Growth, Kind, Watched, blind, function_growth, port_growth
from fabrictool.model import Code, Finding, Reason, Said, Subject, SubjectKind, Unproven, Unreadable, Value
from fabrictool.ports import BoundFunction
from fabrictool.prove.wire import Member, unseen
from fabrictool.room import About
from fabrictool.snapshot import Recording

PATH = "rdma_counters.loss"
LOST = "look at PFC and buffers along the way (host and switch), at the cable, and at the path MTU"
HINT = "look at the receive buffers of the application, and at the host's load and PCIe; for symbols at the cable"
DAMAGED = "clean or change the cable or transceiver; for frames that are too large make the MTUs of both ends equal"


def judge(me: Member, recording: Recording, spans: Mapping[str, Span]) -> Iterator[Said]:
    """`spans`: the gated runs by name, also those that broke off: then loss may be the reason."""
    if not spans:
        return
    for fn in me.functions:
        if isinstance(fn.rdma, Value) or any(fn.rdma_name in s.devices for s in spans.values()):
            yield from _function(me, fn, recording, spans)
    for port in me.want.ports:
        yield from _port(me, port, tuple(spans.values()))


def claims_pfc(me: Member, port: str) -> str:
    """The port's switch, where the spec claims that it holds the RoCE priority back by PFC; "" where it does not."""
    name = me.want.ports[port].switch
    switch = me.want.switches.get(name) if name else None
    if name is None or switch is None or isinstance(switch.pfc, str):
        return ""
    qos = me.want.fabric.qos
    mine = {me.priority} if me.priority is not None else set(qos.pfc) if qos else set()
    return name if mine & set(switch.pfc) else ""


def _function(me: Member, fn: BoundFunction, recording: Recording, spans: Mapping[str, Span]) -> Iterator[Finding]:
    subject = fn.subject(me.want)
    about = About(Code.PACKET_LOSS, subject, f"{PATH}.function", "")
    want = "no loss counter grows"
    growth = [tuple(function_growth(span, fn.rdma_name)) for span in spans.values()]
    for run, span, grown in zip(spans, spans.values(), growth, strict=True):
        why = span.broken or blind(grown) or _too_soon(recording, run, span, fn.rdma_name)
        if why is not None:
            yield unseen(about, why, want)
            return
    packets = total(span.rdma_packets(fn.rdma_name) for span in spans.values())
    yield from _weigh(me, fn.port, about, growth, packets.value if isinstance(packets, Value) else 0, want)


def _port(me: Member, port: str, spans: tuple[Span, ...]) -> Iterator[Said]:
    """The physical port. Twins show the same counters: of the interfaces that show them the largest growth counts, never the sum."""
    subject = Subject(SubjectKind.PORT, (me.want.name,), port)
    about = About(Code.PACKET_LOSS, subject, f"{PATH}.port", "")
    shown: dict[str, list[tuple[Growth, ...]]] = {}
    for fn in me.of_port(port):
        for name in fn.members or (fn.interface,):
            growth = [tuple(port_growth(span, name, me.priority)) for span in spans]
            if all(growth):
                shown[name] = growth
    if not shown:
        yield Unproven(f"discards at port {port} of {me.want.name}: ethtool -S shows none of the port's own counters")
        return
    packets = 0
    for name in shown:
        seen = total(span.nic(name, f"{way}_packets_phy") for span in spans for way in ("rx", "tx"))
        packets = max(packets, seen.value if isinstance(seen, Value) else 0)
    yield from _weigh(me, port, about, _largest(shown), packets, "no loss counter grows")


def _largest(shown: Mapping[str, list[tuple[Growth, ...]]]) -> list[tuple[Growth, ...]]:
    """Of each run and counter the interface that saw most; one that is no number wins over all."""
    out = []
    for run in zip(*shown.values(), strict=True):
        best: dict[str, Growth] = {}
        for g in (g for grown in run for g in grown):
            old = best.get(g.name)
            if old is None or not isinstance(g.moved, Value) or (isinstance(old.moved, Value) and g.moved.value > old.moved.value):
                best[g.name] = g
        out.append(tuple(best.values()))
    return out


def _weigh(me: Member, port: str, about: About, growth: list[tuple[Growth, ...]], packets: int, want: str) -> Iterator[Finding]:
    """`growth`: run by run; `packets`: of all of them, 0 = not known."""
    sums: dict[Watched, tuple[str, int]] = {}
    broken: list[Invalid | Unreadable] = []
    for g in (g for run in growth for g in run):
        if isinstance(g.moved, Value):
            sums[g.watched] = (g.name, sums.get(g.watched, ("", 0))[1] + g.moved.value)
        else:
            broken.append(g.moved)
    grown = {kind: {w: s for w, s in sums.items() if w.kind is kind and s[1]} for kind in Kind}
    switch = claims_pfc(me, port)
    quiet = sum(1 for w in sums if w.kind in (Kind.LOSS, Kind.DAMAGE))
    if grown[Kind.LOSS]:
        got, why = _said(grown[Kind.LOSS], packets)
        if switch:
            yield about.fail(got, want, f"{why}; the spec claims that switch {switch} holds this priority back by PFC", remedy=LOST)
        else:
            yield about.warn(got, want, f"{why}; the spec claims no PFC of the switch, so some loss under load is no surprise", remedy=LOST)
    if grown[Kind.DAMAGE]:
        got, why = _said(grown[Kind.DAMAGE], packets)
        yield About(about.code, about.subject, f"{about.path}.damage", "").fail(got, "no such counter grows", why, remedy=DAMAGED)
    if grown[Kind.HINT]:
        got, why = _said(grown[Kind.HINT], packets)
        yield About(about.code, about.subject, f"{about.path}.hint", "").warn(got, "no such counter grows", why, remedy=HINT)
    if broken:
        yield unseen(about, broken[0], want)
    elif not grown[Kind.LOSS] and not grown[Kind.DAMAGE]:
        yield about.ok(f"{quiet} counters, none grew", want)
    if grown[Kind.CONGESTION]:
        got, _ = _said(grown[Kind.CONGESTION], 0)
        yield About(about.code, about.subject, f"{about.path}.congestion", "").ok(f"{got}: congestion control at work")


def _said(grown: Mapping[Watched, tuple[str, int]], packets: int) -> tuple[str, str]:
    """What grew, with a rate where there are packets to tell it of; and what it means."""
    rates = [f"{name} +{n}" + (f" ({n * 1e6 / packets:.3g} per million packets)" if packets else "") for name, n in grown.values()]
    return ", ".join(rates), "; ".join(f"{name}: {watched.meaning}" for watched, (name, _) in grown.items())


def _too_soon(recording: Recording, run: str, span: Span, device: str) -> Unreadable | None:
    """hw_counters may be as old as their lifespan: read sooner after the run, they need not hold its end."""
    seen = span.after.device(device)
    lifespan = seen.value.lifespan_ms if isinstance(seen, Value) else None
    end, now = parse.stamp(recording.at(run, span.after.node).raw("clock.end")), span.after.clock.epoch_s
    if not isinstance(lifespan, Value) or not isinstance(end, Value) or not isinstance(now, Value):
        return None
    if now.value - end.value >= lifespan.value / 1000:
        return None
    return Unreadable(Reason.FAILED, f"{device}: read {now.value - end.value:.3f} s after the run, and its hw_counters may be "
                                     f"{lifespan.value} ms old (hw_counters/lifespan)")
