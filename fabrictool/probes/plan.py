"""What a run over these nodes is to be, or why there can be none. Pure: the spec, what each node said, and what was looked at."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Code, Reason, Unreadable, Value
from fabrictool.probes import ready
from fabrictool.probes.direct import Direct
from fabrictool.probes.launch import ALGORITHM, Added, Job, Launcher
from fabrictool.probes.limits import Limits, control_size, idle_s, sent_bytes
from fabrictool.probes.mpirun import Mpirun
from fabrictool.probes.ready import Refusal
from fabrictool.probes.srun import Srun
from fabrictool.probes.stage import folder
from fabrictool.prove import look
from fabrictool.prove.facts import DEFAULT, AllReduce
from fabrictool.snapshot import Snapshot
from fabrictool.spec import CollectiveSpec, NodeSpec

LAUNCHERS: Mapping[str, Launcher] = {"direct": Direct(), "mpirun": Mpirun(), "srun": Srun()}
CONTROL_BYTES = 2 << 30  # per node, where the spec sets no other bound
ROUNDS, CONTROL_ROUNDS = (5, 20, 1), (1, 2, 1)  # warm-up, timed, verified
SOCKETS = "Socket"
PIN = "NCCL_SOCKET_IFNAME"


@dataclass(frozen=True, slots=True)
class Plan:
    """`added`: what each node's ranks get besides the consumer's environment; `asked_bytes`: the size that the spec wants; `bound`: why a
    smaller one is taken. `gated`: names of the runs that count; `default_run`: "" for none. `idle_s`: how long to watch before."""

    launcher: Launcher
    job: Job
    added: Mapping[str, Added]
    gated: tuple[str, ...]
    default_run: str
    asked_bytes: int
    bound: str
    consumer: str
    idle_s: int
    network: str = ""

    @property
    def runs(self) -> tuple[str, ...]:
        return (*self.gated, *((self.default_run,) if self.default_run else ()))

    def facts(self, made: tuple[str, ...]) -> AllReduce:
        """What judges need to know. `made`: the runs that were begun."""
        first = self.launcher.starts(self.job, self.runs[0])[0]
        return AllReduce(
            self.launcher.name, self.launcher.program, self.job.size_bytes, self.job.warmup, self.job.iterations, self.job.verify,
            self.job.rank_nodes, tuple(r for r in self.gated if r in made), ALGORITHM, self.default_run if self.default_run in made else "",
            self._told(), self.consumer, shlex.join(first.program), self.job.limits.node_s, self.network, self.asked_bytes, self.bound)

    def _told(self) -> Mapping[str, str]:
        """All that is added anywhere. What differs from node to node is told for each."""
        each = {node: a.variables(self.runs[0], gated=True) for node, a in self.added.items()}
        out: dict[str, str] = {}
        for name in dict.fromkeys(n for v in each.values() for n in v):
            values = {node: v[name] for node, v in each.items() if name in v}
            same = len(set(values.values())) == 1 and len(values) == len(each)
            out[name] = next(iter(values.values())) if same else ", ".join(f"{value} ({node})" for node, value in values.items())
        return out


def plan(run_id: str, wants: Mapping[str, NodeSpec], snaps: Mapping[str, Snapshot], seen: Mapping[str, Snapshot], *, control: bool,
         force: bool) -> Plan | Refusal:
    """`snaps`: the nodes as read; `seen`: what was looked at for this run. Never raises for what a node said."""
    spec = ready.spec_of(wants)
    if isinstance(spec, Refusal):
        return spec
    if len(wants) < 2:
        return Refusal(Code.SINGLE_NODE, Reason.BLOCKED, f"one node ({', '.join(wants) or 'none'}): within one node nothing goes over the "
                       "fabric", tuple(wants))
    idle = ready.not_busy(seen, force)
    if idle is not None:
        return idle
    where = ready.seats(wants, snaps)
    if isinstance(where, Refusal):
        return where
    tool = ready.tool(spec, seen)
    if isinstance(tool, Refusal):
        return tool
    if spec.launcher == "srun" and len({s.ranks for s in where}) > 1:
        return Refusal(Code.LAUNCH_FAILED, Reason.BLOCKED, "srun starts as many ranks on every node, and the nodes' GPU counts differ")
    source = ready.consumer(spec, seen)
    if isinstance(source, Refusal):
        return source
    return _sized(Job(run_id, folder(run_id), where, tool, Limits.of(0), spec.size, port=ready.port(seen[where[0].node]),
                      image=spec.runtime.image if spec.runtime else ""), spec, wants, snaps, seen, source, control)


def _sized(job: Job, spec: CollectiveSpec, wants: Mapping[str, NodeSpec], snaps: Mapping[str, Snapshot], seen: Mapping[str, Snapshot],
           source: str, control: bool) -> Plan | Refusal:
    warmup, iterations, verify = CONTROL_ROUNDS if control else ROUNDS
    launcher = LAUNCHERS[spec.launcher]
    job = dataclasses.replace(job, warmup=warmup, iterations=iterations, verify=verify)
    bounded = ready.bounded(job, wants, seen)
    if isinstance(bounded, Refusal):
        return bounded
    size, bound = bounded
    calls = AllReduce(launcher.name, launcher.program, size, warmup, iterations, verify, job.rank_nodes, ("run1",)).calls
    asked = spec.size
    if control:
        most = spec.control.max_bytes_per_node if spec.control else CONTROL_BYTES
        size = asked = control_size(size, calls, job.ranks, most)
        bound = ""
    if size < 4:
        why = bound or "control.max_bytes_per_node is too small"
        return Refusal(Code.SIZE_REDUCED, Reason.BLOCKED, f"no buffer is small enough: {why}")
    sent = sent_bytes(size, calls, job.ranks)
    job = dataclasses.replace(job, size_bytes=size // 4 * 4, limits=Limits.of(sent, spec.start_s))
    added = _added(job, wants, snaps, seen, control)
    if isinstance(added, Refusal):
        return added
    gated = ("run1",) if control else tuple(f"run{n + 1}" for n in range(spec.runs))
    rate = sum((p.rate_gbit or 0) * 1e9 / 8 for p in wants[job.seats[0].node].ports.values())
    return Plan(launcher, job, added, gated, "" if control else DEFAULT, asked, bound, source, idle_s(sent, rate),
                SOCKETS if control else "")


def _added(job: Job, wants: Mapping[str, NodeSpec], snaps: Mapping[str, Snapshot], seen: Mapping[str, Snapshot],
           control: bool) -> Mapping[str, Added] | Refusal:
    out: dict[str, Added] = {}
    for seat in job.seats:
        want = wants[seat.node]
        if control:
            rail = _rail(want, snaps[seat.node])
            if not rail:
                return Refusal(Code.BLOCKED, Reason.BLOCKED, f"{seat.node}: a run over sockets needs a rail interface that is not "
                               "protected", (seat.node,))
            out[seat.node] = Added(job.folder, network=SOCKETS, sockets=rail)
            continue
        env = look.environment(seen[seat.node])
        named = not isinstance(env, Unreadable) and PIN in (env.names | (frozenset() if job.image else env.conf))
        device = ports.bootstrap(want, ports.read(snaps[seat.node]))
        pin = device.value.name if isinstance(device, Value) and not named else ""
        out[seat.node] = Added(job.folder, pin=pin)
    return out


def _rail(want: NodeSpec, snap: Snapshot) -> str:
    """The first function's interface that may carry a test over sockets, as bound on the node."""
    for fn in ports.bind(want, ports.read(snap)):
        if isinstance(fn.netdev, Value) and fn.netdev.value.name not in want.protected and isinstance(ports.rail_address(fn, want), Value):
            return fn.netdev.value.name
    return ""
