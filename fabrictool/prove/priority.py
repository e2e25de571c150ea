"""Whether a run's bytes rode the wanted priority, by the ports' own counters: `tx_prio3_bytes` and its kin of `ethtool -S`.

They belong to the physical port. Its functions show them alike, so the largest counts, never the sum; the members of a LAG are ports of
their own and add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.counters import Invalid, Moved, Span, size_text
from fabrictool.counters.delta import total
from fabrictool.counters.limits import LEAST, MOST, OTHER_PRIORITY, SHARE_FAIL, Expected
from fabrictool.model import Code, Finding, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.wire import WAYS, Member, carried, node_bytes, unseen
from fabrictool.room import About

PATH = "lossless_priority.bytes"
PRIORITIES = range(8)
WRONG = {
    "tx": "the node sends the run's bytes with a priority that is not protected",
    "rx": "the run's bytes arrive on a priority that is not protected: a peer sent them so, the switch changed their DSCP, or this "
          "port maps it elsewhere",
}
REMEDY = ("see that the job has NCCL_IB_TC (NCCL's log: `NCCL_IB_TC set by environment`), that the switch keeps the DSCP, and that "
          "both ports map it")


def judge(me: Member, priority: int, run: str, span: Span, need: Expected) -> Iterator[Finding]:
    """A finding for every port and direction."""
    for way in WAYS:
        rdma = node_bytes(span, me.functions, way)
        if isinstance(rdma, Value) and rdma.value < need.bytes * LEAST:
            about = About(Code.PRIORITY_WRONG, me.subject, f"{PATH}.{run}.{way}", "")
            why = f"COUNTERS_SHORT: {size_text(rdma.value)} of RDMA on this node, {size_text(need.bytes)} belong to the run"
            yield about.unknown(Unreadable(Reason.BLOCKED, why), f"the run's bytes on priority {priority}")
            continue
        if isinstance(rdma, Value) and need.exact and rdma.value > need.bytes * MOST:
            about = About(Code.PRIORITY_WRONG, me.subject, f"{PATH}.{run}.{way}", "")
            why = f"FOREIGN_TRAFFIC: others moved RDMA data on this node while the run, with its {size_text(need.bytes)}, was done"
            yield about.unknown(Unreadable(Reason.BLOCKED, why), f"the run's bytes on priority {priority}")
            continue
        for port in me.want.ports:
            about = About(Code.PRIORITY_WRONG, Subject(SubjectKind.PORT, (me.want.name,), port), f"{PATH}.{run}.{way}", "")
            part = need.bytes * len(me.of_port(port)) / max(len(me.functions), 1)
            must = _must(me, port, way, span, rdma, need, part)
            if must < part * SHARE_FAIL:
                why = f"RAIL_IDLE: {size_text(round(must))} of RDMA on this port, its part is {size_text(round(part))}"
                yield about.unknown(Unreadable(Reason.BLOCKED, why), f"the port's part on priority {priority}")
            else:
                seen = {p: port_bytes(me, port, span, f"{way}_prio{p}_bytes") for p in PRIORITIES}
                yield _weigh(about, way, priority, seen, must, part)


def _must(me: Member, port: str, way: str, span: Span, node: Moved, need: Expected, part: float) -> float:
    """Bytes that the port must show: what its functions carried, at least their share of what the run needs. `part`: what to expect where
    the RDMA counters are no numbers."""
    seen = total(carried(span, fn, way) for fn in me.of_port(port))
    if isinstance(seen, Value) and isinstance(node, Value) and node.value:
        return max(seen.value, need.bytes * seen.value / node.value)
    return part


def port_bytes(me: Member, port: str, span: Span, name: str) -> Moved:
    """A counter of the physical port: the largest that any of its functions shows. Unreadable where none does."""
    every = [total(span.nic(i, name) for i in fn.members or (fn.interface,)) for fn in me.of_port(port)]
    invalid = next((m for m in every if isinstance(m, Invalid)), None)
    numbers = [m.value for m in every if isinstance(m, Value)]
    if invalid is not None:
        return invalid
    return Value(max(numbers)) if numbers else next((m for m in every), Unreadable(Reason.EMPTY, f"port {port}: no function"))


def _weigh(about: About, way: str, priority: int, seen: Mapping[int, Moved], must: float, part: float) -> Finding:
    want = f"{size_text(round(must * LEAST))} or more on priority {priority}"
    mine = seen[priority]
    if not isinstance(mine, Value):
        return unseen(about, mine, want)
    others = {p: m.value for p, m in seen.items() if p != priority and isinstance(m, Value)}
    beside = sum(others.values())
    most = max(others, key=lambda p: others[p], default=priority)
    got = f"{size_text(mine.value)} on priority {priority}, {size_text(beside)} on others" + (f", most on {most}" if beside else "")
    if mine.value >= must * LEAST:
        if beside <= part * OTHER_PRIORITY:
            return about.ok(got, want)
        return about.warn(got, want, "the run's bytes are on the wanted priority; others carry much besides, which is not ours",
                          remedy="see what else uses this port (storage, TCP): it takes bandwidth from RoCE")
    if mine.value + beside >= must * LEAST:
        return about.fail(got, want, f"{WRONG[way]} (most on {most})", remedy=REMEDY)
    return about.unknown(Unreadable(Reason.EMPTY, f"the counters by priority account for {size_text(mine.value + beside)} of "
                                    f"{size_text(round(must))}: the firmware does not show all, or twins do not show one port"), want)
