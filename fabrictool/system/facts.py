"""All that should be the same on nodes of one kind, each as one text: name of the fact -> value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Snapshot, consumers
from fabrictool.snapshot.consumers import Consumer
from fabrictool.spec import NodeSpec
from fabrictool.system import containers, processes, read
from fabrictool.system.containers import Boxes
from fabrictool.system.processes import Process


def facts(want: NodeSpec, snap: Snapshot) -> Mapping[str, Observed[str]]:
    """In the order in which a person would look. Absent: looked for, and not there. A fact that cannot even be asked for (of a GPU that
    is not listed) is no key."""
    out: dict[str, Observed[str]] = {"kernel": read.host(snap).kernel}
    if want.gpu is not None:
        out |= _gpu(snap)
    out |= dict(_nic(want, snap))
    out["rdma_core"] = read.package(snap, "rdma-core", "libibverbs1", "libibverbs")
    out["nccl"] = read.nccl(snap)
    out |= dict(_consumers(want, snap))
    return out


def _gpu(snap: Snapshot) -> dict[str, Observed[str]]:
    listed, loaded = read.gpus(snap), read.driver(snap)
    known: Observed[str] = Value(loaded.value.version) if isinstance(loaded, Value) else loaded
    if isinstance(listed, Value):
        first = _one(g.driver for g in listed.value)
        known = first if isinstance(first, Value) else known
    out: dict[str, Observed[str]] = {"driver": known}
    out["driver_kind"] = Value("open" if loaded.value.open else "proprietary") if isinstance(loaded, Value) else loaded
    out["cuda"] = read.cuda(snap)
    if not isinstance(listed, Value):
        return out | {"gpu": listed}
    names = [g.name for g in listed.value]
    out["gpu"] = Value(", ".join(f"{names.count(n)} x {n}" for n in dict.fromkeys(names)))
    for name, cells in (("vbios", [g.vbios for g in listed.value]), ("mig", [g.mig for g in listed.value]),
                        ("ecc", [g.ecc for g in listed.value]), ("power_limit", [g.power_limit for g in listed.value])):
        out[name] = _one(cells)
    return out


def _one(values: Iterable[Observed[str]]) -> Observed[str]:
    """The values of all GPUs as one; what is absent or unreadable on one is so for all."""
    seen = list(values)
    for kind in (Unreadable, Absent):
        for value in seen:
            if isinstance(value, kind):
                return value
    return Value(", ".join(sorted({v.value for v in seen if isinstance(v, Value)})))


def _nic(want: NodeSpec, snap: Snapshot) -> Iterator[tuple[str, Observed[str]]]:
    """Firmware of each function of the spec: names of devices may differ from node to node, functions do not."""
    for fn in ports.bind(want, ports.read(snap)):
        found: Observed[str]
        if isinstance(fn.rdma, Value):
            found = read.firmware(snap, fn.rdma_name)
        else:
            why = f"RDMA_ABSENT: {fn.rdma.what} is not on the node" if isinstance(fn.rdma, Absent) else fn.rdma.why
            found = Unreadable(Reason.BLOCKED if isinstance(fn.rdma, Absent) else fn.rdma.reason, why)
        yield f"firmware.{fn.port}.{fn.want.rail}", found
    yield "nic_driver", read.nic_driver(snap)
    yield "ofed", read.ofed(snap)


def _consumers(want: NodeSpec, snap: Snapshot) -> Iterator[tuple[str, Observed[str]]]:
    if not want.env.consumers:
        return
    running, known = consumers.read(snap), processes.read(snap)
    for pattern in want.env.consumers:
        named = running if isinstance(running, Unreadable) else running.named(pattern)
        if isinstance(named, Unreadable) or not named:
            lost: Observed[str] = named if isinstance(named, Unreadable) else Absent(f"a running {pattern}")
            yield f"nccl.{pattern}", lost
            yield f"cudart.{pattern}", lost
        else:
            yield f"nccl.{pattern}", _nccl(named)
            yield f"cudart.{pattern}", _cudart(named, known, processes.missing(snap))


@dataclass(frozen=True, slots=True)
class Image:
    """`id`: of its content, as docker keeps it here; `digests`: what registries call it, none where it was built or loaded here."""

    id: str
    digests: frozenset[str]


def images(want: NodeSpec, snap: Snapshot) -> Mapping[str, Observed[frozenset[Image]]]:
    """docker:GLOB of the spec -> the images of its running containers. Absent: none runs."""
    patterns = [p for p in want.env.consumers if p.startswith("docker:")]
    if not patterns:
        return {}
    running, boxes = consumers.read(snap), containers.read(snap)
    return {p: running if isinstance(running, Unreadable) else _images(p, running.named(p), boxes) for p in patterns}


def _images(pattern: str, named: tuple[Consumer, ...] | Unreadable, boxes: Boxes | Unreadable) -> Observed[frozenset[Image]]:
    if isinstance(named, Unreadable):
        return named
    if not named:
        return Absent(f"a running {pattern}")
    if isinstance(boxes, Unreadable):
        return boxes
    found: set[Image] = set()
    for consumer in named:
        box = next((b for b in boxes.found if consumer.container is not None and b.id == consumer.container.id), None)
        if box is None or not box.image_id:
            return Unreadable(Reason.EMPTY, f"the image of {consumer.label} is not told")
        known = {} if isinstance(boxes.digests, Unreadable) else boxes.digests
        found.add(Image(box.image_id, known.get(box.image_id, frozenset())))
    return Value(frozenset(found))


def _nccl(named: tuple[Consumer, ...]) -> Observed[str]:
    found: set[str] = set()
    for consumer in named:
        for process in (p for p in consumer.ranks if p.libraries):
            if not process.versions:
                return Unreadable(Reason.EMPTY, f"{consumer.label}: {process.libraries[0][:80]} does not tell its version")
            found.update(process.versions)
    return Value(", ".join(sorted(found))) if found else Absent("a process of it that has loaded NCCL")


def _cudart(named: tuple[Consumer, ...], known: Mapping[int, Process] | Unreadable, missing: Unreadable) -> Observed[str]:
    if isinstance(known, Unreadable):
        return known
    # A helper that came or went while the node was read (a health check) is no loss; one with NCCL is.
    short = missing.reason is not Reason.NOT_COLLECTED
    lost = next((f"process {p.pid} of {c.label}" for c in named for p in c.ranks if p.pid not in known and (short or p.libraries)), None)
    if lost is not None:
        return Unreadable(missing.reason, f"{lost}: {missing.why}")
    seen = [known[p.pid].cudart for c in named for p in c.ranks if p.pid in known]
    found = sorted({s.value for s in seen if isinstance(s, Value)})
    return Value(", ".join(found)) if found else Absent("a process of it with a CUDA runtime of its own")
