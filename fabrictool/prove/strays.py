"""RDMA devices that are no rail must stand still while the fabric is proven: storage, management, a cable in another cage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.counters import Span, size_text
from fabrictool.counters.delta import total
from fabrictool.counters.limits import LEAST, STILL, Expected
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind, Value
from fabrictool.prove.wire import WAYS, Member, node_bytes, unseen
from fabrictool.room import About


def judge(me: Member, idle: Span, spans: Mapping[str, Span], needs: Mapping[str, Expected]) -> Iterator[Finding]:
    """`spans`: the runs by name; `needs`: what each of them had to carry."""
    rails = {fn.rdma_name for fn in me.functions}
    for device in sorted({d for span in spans.values() for d in span.devices} - rails):
        yield _device(me, device, idle, spans, needs)


def _device(me: Member, device: str, idle: Span, spans: Mapping[str, Span], needs: Mapping[str, Expected]) -> Finding:
    subject = Subject(SubjectKind.FUNCTION, (me.want.name,), function=device)
    about = About(Code.STRAY_RDMA, subject, "rdma_counters.stray", "")
    want = f"below {size_text(STILL)} in a run"
    most, when = 0, next(iter(spans))
    for run, span in spans.items():
        seen = total(span.rdma_bytes(device, way) for way in WAYS)
        if not isinstance(seen, Value):
            return unseen(about, seen, want)
        if seen.value > most:
            most, when = seen.value, run
    named = "the spec's other_rdma" if device in me.want.other_rdma else "a device that the spec does not name"
    got = f"{size_text(most)} in {when} ({named})"
    if most < STILL:
        return about.ok(got, want)
    before = total(idle.rdma_bytes(device, way) for way in WAYS)
    seconds = spans[when].seconds
    if isinstance(before, Value) and isinstance(idle.seconds, Value) and isinstance(seconds, Value):
        scaled = before.value * seconds.value / idle.seconds.value
        if scaled >= most / 2:
            return About(Code.FOREIGN_TRAFFIC, subject, about.path, "").fail(
                got, want, f"the device was as busy before the run ({size_text(round(scaled))} in its time): its own user's bytes hide "
                "whether ours were among them", status=Status.UNKNOWN, remedy="let that traffic end, then run again")
    if device in me.want.other_rdma and _carried_all(me, spans[when], needs[when]):
        return About(Code.FOREIGN_TRAFFIC, subject, about.path, "").fail(
            got, want, "the rails carried all that the run needs, so these are most likely of the device's own user; that none of ours "
            "were among them is not shown", status=Status.UNKNOWN, remedy="run again while that device is quiet")
    return about.fail(got, want, "bytes went over a device that is no rail while the run was done",
                      remedy="see that NCCL_IB_HCA names only the spec's devices, with `=` in front: mlx5_1 alone also takes mlx5_10")


def _carried_all(me: Member, span: Span, need: Expected) -> bool:
    """Whether the counters of the rails explain the run by themselves. A lower bound explains nothing."""
    seen = [node_bytes(span, me.functions, way) for way in WAYS]
    return need.exact and all(isinstance(s, Value) and s.value >= need.bytes * LEAST for s in seen)
