"""Whether these nodes are ready for a run: idle, reachable, with the same tools, a consumer, and memory. Pure.

Each function gives what the run needs to know, or the reason why there can be none. Not knowing is no permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Code, Reason, Unreadable, Value
from fabrictool.probes.launch import Job, Seat, Tool
from fabrictool.probes.limits import unified_size
from fabrictool.prove import look
from fabrictool.snapshot import Snapshot
from fabrictool.spec import CollectiveSpec, NodeSpec


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was run. `nodes`: where that is so; none = it is about all of them."""

    code: Code
    reason: Reason
    why: str
    nodes: tuple[str, ...] = ()

    @property
    def error(self) -> Unreadable:
        return Unreadable(self.reason, self.why)


def spec_of(wants: Mapping[str, NodeSpec]) -> CollectiveSpec | Refusal:
    """The nodes' common settings; the defaults where the spec has none."""
    found = {name: want.collective or CollectiveSpec() for name, want in wants.items()}
    one = next(iter(found.values()), CollectiveSpec())
    other = tuple(name for name, spec in found.items() if spec != one)
    if other:
        return Refusal(Code.LAUNCH_FAILED, Reason.BLOCKED, "the spec gives these nodes other `collective` settings than the first: one run "
                       "has one launcher and one size", other)
    return one


def not_busy(seen: Mapping[str, Snapshot], force: bool) -> Refusal | None:
    """Nobody's work is slowed down unasked. Not knowing is no permission."""
    if force:
        return None
    for node, snap in seen.items():
        found = look.apps(snap)
        if isinstance(found, Unreadable):
            return Refusal(Code.GPU_BUSY, found.reason, f"{node}: whether its GPUs are busy is not known: {found.why}", (node,))
    busy = {node: a for node, snap in seen.items() if (a := look.apps(snap)) and not isinstance(a, Unreadable)}
    if busy:
        told = "; ".join(f"{node}: {', '.join(f'{a.name} ({a.pid})' for a in apps[:3])}{' ...' if len(apps) > 3 else ''}"
                         for node, apps in busy.items())
        return Refusal(Code.GPU_BUSY, Reason.BLOCKED, f"GPUs are busy: {told}"[:400], tuple(busy))
    return None


def seats(wants: Mapping[str, NodeSpec], snaps: Mapping[str, Snapshot]) -> tuple[Seat, ...] | Refusal:
    seats: list[Seat] = []
    first = 0
    for node, want in wants.items():
        got = ports.read(snaps[node])
        address, device = ports.bootstrap_address(want, got), ports.bootstrap(want, got)
        if not isinstance(address, Value) or not isinstance(device, Value):
            seen = device if not isinstance(device, Value) else address
            why = seen.why if isinstance(seen, Unreadable) else f"{getattr(seen, 'what', 'bootstrap')}: absent"
            return Refusal(Code.LAUNCH_FAILED, Reason.BLOCKED, f"{node}: ranks have to meet at its bootstrap address: {why}", (node,))
        network = next(str(a.network) for a in device.value.addresses if str(a.ip) == address.value)
        count = want.gpu.count if want.gpu else 1
        seats.append(Seat(node, first, count, address.value, network, device.value.name))
        first += count
    return tuple(seats)


def tool(spec: CollectiveSpec, seen: Mapping[str, Snapshot]) -> Tool | Refusal:
    """What the first node has; every other one must have the same program at the same place."""
    found: dict[str, look.Tools] = {}
    for node, snap in seen.items():
        got = look.tools(snap)
        if isinstance(got, Unreadable):
            return Refusal(_refused(got), got.reason, f"{node}: {got.why}", (node,))
        if "docker" in got.silent:
            why = got.silent["docker"]
            return Refusal(Code.LAUNCH_FAILED, why.reason, f"{node}: whether the image is there is not known: {why.why}", (node,))
        found[node] = got
    lack = {node: t.missing for node, t in found.items() if t.missing}
    if lack:
        what = "; ".join(f"{node}: no {', '.join(missing)}" for node, missing in lack.items())
        return Refusal(Code.TOOL_MISSING, Reason.TOOL_MISSING, what[:400], tuple(lack))
    head = next(iter(found.values()))
    if spec.launcher == "direct":
        python = spec.python or (f"{spec.venv}/bin/python" if spec.venv else "python3")
        return Tool(python)
    elsewhere = tuple(node for node, t in found.items() if t.program != head.program)
    if elsewhere:
        return Refusal(Code.TOOL_MISSING, Reason.BLOCKED, f"all_reduce_perf lies at {head.program} on the first node, and at "
                       f"{found[elsewhere[0]].program} on {elsewhere[0]}: name one path with collective.program", elsewhere)
    if spec.launcher == "mpirun" and not head.open_mpi:
        first, said = next(iter(found)), head.mpi or "it says nothing"
        return Refusal(Code.TOOL_MISSING, Reason.TOOL_MISSING, f"{first}: {head.mpirun} is not Open MPI: {said}", (first,))
    if spec.launcher == "srun" and "sinfo" in head.silent:
        first, why = next(iter(found)), head.silent["sinfo"]
        return Refusal(Code.LAUNCH_FAILED, why.reason, f"{first}: whether Slurm hands out GPUs is not known: {why.why}", (first,))
    return Tool(head.program, head.mpirun if spec.launcher == "mpirun" else head.srun, head.open_mpi, head.options, head.pmi, head.gres)


def _refused(got: Unreadable) -> Code:
    return Code.NEEDS_ROOT if got.reason is Reason.NEEDS_ROOT else Code.LAUNCH_FAILED


def consumer(spec: CollectiveSpec, seen: Mapping[str, Snapshot]) -> str | Refusal:
    """Whose environment the ranks will get, for people; "" = nobody's."""
    sources: dict[str, str] = {}
    for node, snap in seen.items():
        got = look.environment(snap)
        if isinstance(got, Unreadable):
            return Refusal(_refused(got), got.reason, f"{node}: the environment of the consumer: {got.why}", (node,))
        sources[node] = got.source
    if spec.consumer and (gone := tuple(n for n, s in sources.items() if not s)):
        return Refusal(Code.LAUNCH_FAILED, Reason.BLOCKED, f"{spec.consumer} is not on {', '.join(gone)}, and the spec wants its "
                       "environment", gone)
    if len(set(sources.values())) == 1:
        return next(iter(sources.values()))
    return ", ".join(f"{source or 'none'} ({node})" for node, source in sources.items())


def port(snap: Snapshot) -> int:
    got = look.tools(snap)
    return 0 if isinstance(got, Unreadable) else got.port


def bounded(job: Job, wants: Mapping[str, NodeSpec], seen: Mapping[str, Snapshot]) -> tuple[int, str] | Refusal:
    """(the buffer's size, why it is smaller than asked)."""
    size, why = job.size_bytes, ""
    for seat in job.seats:
        gpu = wants[seat.node].gpu
        if gpu is None or not gpu.unified_memory:
            continue
        free = look.available_bytes(seen[seat.node])
        if not isinstance(free, Value):
            told = free.why if isinstance(free, Unreadable) else "absent"
            return Refusal(Code.SIZE_REDUCED, Reason.BLOCKED, f"{seat.node}: GPUs share the system's memory, and what is free is not "
                           f"known: {told}", (seat.node,))
        most = unified_size(size, free.value, seat.ranks)
        if most < size:
            size, why = most, f"{seat.node} has {free.value >> 20} MiB free, which its GPUs share with everything else"
    return size, why
