"""A run as one node's counters saw it: shared by the judges that count bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabrictool import counters, ports
from fabrictool.counters import Invalid, Moved, Span
from fabrictool.counters.delta import total
from fabrictool.counters.limits import Expected, expected
from fabrictool.model import Absent, Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports import BoundFunction
from fabrictool.prove import ranks, results
from fabrictool.prove.case import Case
from fabrictool.prove.facts import IDLE, AllReduce, moments
from fabrictool.room import About
from fabrictool.snapshot import Captured, Recording
from fabrictool.spec import NodeSpec
from fabrictool.values import Dscp

WAYS = ("tx", "rx")


@dataclass(frozen=True, slots=True)
class Member:
    """A node that took part. `functions`: where the spec expects the bytes, as bound on the node."""

    want: NodeSpec
    functions: tuple[BoundFunction, ...]

    @property
    def subject(self) -> Subject:
        return Subject(SubjectKind.NODE, (self.want.name,))

    @property
    def priority(self) -> int | None:
        """The priority that the spec gives to the fabric's traffic class; None where it says nothing of one."""
        qos, tc = self.want.fabric.qos, self.want.fabric.traffic_class
        if qos is None or tc is None or qos.trust != "dscp":
            return None
        dscp = Dscp.from_tc(tc)
        return qos.dscp_to_priority.get(dscp.value, dscp.default_priority)

    def of_port(self, port: str) -> tuple[BoundFunction, ...]:
        return tuple(fn for fn in self.functions if fn.port == port)


def member(case: Case, node: str) -> Member:
    want = case.wants[node]
    return Member(want, ports.bind(want, ports.read(case.snap(node))))


def run_span(recording: Recording, run: str, node: str) -> Span:
    before, _, after = moments(run)
    return counters.span(counters.read(recording.at(before, node)), counters.read(recording.at(after, node)))


def idle_span(recording: Recording, node: str) -> Span:
    return counters.span(*(counters.read(recording.at(moment, node)) for moment in IDLE))


def carried(span: Span, fn: BoundFunction, way: str) -> Moved:
    """RDMA bytes of the function. One whose device the node does not have, neither when it was asked what it has nor while it was counted,
    carried none."""
    if fn.rdma_name == "?" and isinstance(fn.rdma, Unreadable):
        return fn.rdma
    if isinstance(fn.rdma, Absent) and not span.broken and fn.rdma_name not in span.devices:
        return Value(0)
    # The interfaces below a LAG have ethtool counters each, and the bond none.
    return span.rdma_bytes(fn.rdma_name, way, "" if fn.members else fn.interface)


def node_bytes(span: Span, functions: tuple[BoundFunction, ...], way: str) -> Moved:
    """What the functions carried together."""
    return total(carried(span, fn, way) for fn in functions)


def expected_of(facts: AllReduce, run: str = "") -> Expected:
    """What each node must have sent, and received, in the run; without a name, in a gated one."""
    algorithm = "" if run and run == facts.default_run else facts.algorithm
    return expected(algorithm, facts.calls, facts.size_bytes, facts.ranks)


def ended(recording: Recording, facts: AllReduce, run: str) -> Unreadable | None:
    """Why the run came to no good end; None when it did. What a run that broke off should have carried is not known. One whose numbers
    are wrong, and nothing else, has carried all."""
    broken = _broken(recording, facts, run)
    return None if broken is None or _only_wrong(recording, facts, run) else broken


def _only_wrong(recording: Recording, facts: AllReduce, run: str) -> bool:
    """Whether the run came to its result and all that stands against it are its numbers: then statuses are not 0 either."""
    got = results.read(recording, facts, run, "run")
    codes = {f.code for f in got.findings if f.bad}
    statuses = [r.rc if isinstance(r, Captured) else None for _, _, r in results.ranks(recording, facts, run)]
    return got.ended and codes == {Code.WRONG_RESULT} and set(statuses) <= {0, *statuses[:1]} - {None}


def _broken(recording: Recording, facts: AllReduce, run: str) -> Unreadable | None:
    _, moment, _ = moments(run)
    if facts.launcher == "direct":
        told = {rank: bad for rank, node in enumerate(facts.rank_nodes)
                if (bad := _bad(recording, moment, node, "rank", str(rank), f"rank {rank} on {node}"))}
        if len(told) > 1:  # the first of them need not be the one at fault
            nodes = ", ".join(dict.fromkeys(facts.rank_nodes[rank] for rank in told))[:120]
            late = "; its time limit passed" if any(bad.reason is Reason.TIMEOUT for bad in told.values()) else ""
            return Unreadable(Reason.FAILED, f"{run}: {len(told)} of {facts.ranks} ranks broke off ({nodes}){late}")
        return next(iter(told.values()), None)
    at = [node for node in facts.nodes if "launcher" in recording.at(moment, node).sections]
    if not at:
        return Unreadable(Reason.NOT_COLLECTED, f"{run}: nothing of the launcher was recorded")
    return next((bad for node in at if (bad := _bad(recording, moment, node, "launcher", "", f"{facts.launcher} on {node}"))), None)


def _bad(recording: Recording, moment: str, node: str, section: str, item: str, who: str) -> Unreadable | None:
    got = recording.at(moment, node).raw(section, item)
    if isinstance(got, Unreadable):
        return Unreadable(got.reason, f"{moment}: {who}: {got.why}")
    if ranks.DEADLINE.search(got.err):
        return Unreadable(Reason.TIMEOUT, f"{moment}: {who}: its time limit passed")
    if got.rc != 0:
        return Unreadable(Reason.FAILED, f"{moment}: {who} ended with exit status {got.rc}: {got.tail or 'no message'}")
    return None


def good_runs(recording: Recording, facts: AllReduce, check: str, nodes: tuple[str, ...]) -> Iterator[str | Finding]:
    """The gated runs that can be judged; for each other one the finding that says why not."""
    for run in facts.runs:
        why = ended(recording, facts, run)
        if why is None:
            yield run
        else:
            about = About(Code.BLOCKED, Subject(SubjectKind.FLEET, nodes), f"{check}.{run}", "")
            blocked = Unreadable(Reason.BLOCKED, f"it did not end well, so nobody knows what it should have carried: {why.why}")
            yield about.unknown(blocked, "a run that ended well", "see what the check of the collective itself says of this run")
    if not facts.runs:
        about = About(Code.NO_RESULT, Subject(SubjectKind.FLEET, nodes), f"{check}.runs", "")
        yield about.fail("no gated run", "at least one", "nothing was run that could be judged", status=Status.UNKNOWN)


def unseen(about: About, seen: Unreadable | Invalid, want: str) -> Finding:
    """The finding for bytes that are no number."""
    if isinstance(seen, Unreadable):
        return about.unknown(seen, want)
    return About(Code.COUNTERS_INVALID, about.subject, about.path, "").fail(
        "no valid sample", want, seen.why, status=Status.UNKNOWN,
        remedy="look into the kernel log (mlx5, AER, reboot) of the node, then run again")
