"""From findings to a report: who said what, what that makes of each check, and what nobody said. Pure.

A check passes when every node gave at least one PASS finding and nothing worse. A node from which a room said nothing at all is
UNKNOWN, never PASS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fabrictool.check import Listed
from fabrictool.model import Code, Evidence, Finding, Report, Result, Said, Status, Subject, SubjectKind, Unproven
from fabrictool.prove import Case
from fabrictool.spec import NodeSpec

REACH = "reach"  # the check under which unreachable nodes appear
COUNTS = ("compared", "nodes")  # evidence that every result has
WORST_FIRST = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)

UNPROVEN: Mapping[str, tuple[str, ...]] = {
    "link": ("that the switch passes packets of this size: fabrictool check path_mtu shows it",),
    "qos": ("anything about the switch: a host can prove its own PFC, trust and map, not that the fabric is lossless",),
    "rdma": ("that traffic between nodes uses these devices: only traffic and its counters show that",),
    "env": ("that a consumer uses these values: it may read others from places that are not looked at",),
}
"""What a result of the check does not show, however well it passes."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a report says of its own run. `started`: UTC, ISO 8601; `spec_digest`: sha256 hex of the merged spec."""

    run_id: str
    command: str
    started: str
    tool_version: str
    spec_digest: str
    simulated: bool


def _about(code: Code, room: str, node: str, got: str, why: str, remedy: str, what: str) -> Finding:
    return Finding(code, Subject(SubjectKind.NODE, (node,)), f"{room}.{what}", "", got, "", why, Status.UNKNOWN, remedy=remedy)


def _missing(room: str, node: str, reached: bool) -> Finding:
    if reached:
        return _about(Code.NO_EVIDENCE, room, node, "no evidence", f"{room} said nothing about this node",
                      "report this with `fabrictool snapshot` of the node: a judge must say something", "evidence")
    return _about(Code.BLOCKED, room, node, "not read", "the node could not be reached", "reach the node first", "blocked")


def worst_status(statuses: Iterable[Status]) -> Status:
    """The worst; UNKNOWN for none, because nothing is no evidence."""
    seen = set(statuses)
    return next((s for s in WORST_FIRST if s in seen), Status.UNKNOWN)


def reached(findings: Iterable[Finding]) -> bool:
    """Whether nothing stands against the node under the check `reach`."""
    return not any(f.room == REACH and f.bad for f in findings)


def _summary(findings: Sequence[Finding], nodes: int, against_spec: bool) -> str:
    count = Counter(f.status for f in findings)
    settable = sum(1 for f in findings if f.status is Status.FAIL and f.steps)
    word = "differ" if against_spec else "failed"
    parts = [f"{count[Status.FAIL]} {word}" + (f" ({settable} can be set)" if settable else "")] if count[Status.FAIL] else []
    words = ((Status.UNKNOWN, "unknown"), (Status.WARN, "to look at"), (Status.PASS, "as wanted"))
    parts += [f"{count[s]} {word}" for s, word in words if count[s]]
    if not parts:
        parts = ["the spec does not ask"]
    return f"{nodes} node{'' if nodes == 1 else 's'}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a check's own judge over the fleet said, and what its passing does not show. `evidence`: its numbers by key, unit in the
    key; of two with one key the later one stands."""

    findings: tuple[Finding, ...]
    unproven: tuple[str, ...] = ()
    evidence: Mapping[str, str | int | float] = field(default_factory=dict)
    proves_nodes: bool = True


def judged(check: Listed, case: Case) -> Judged:
    """What the check's own judge says. One that raises is a bug and no verdict: it must hide neither the other checks' nor what it had
    said before."""
    assert check.check.judge is not None
    said: list[Said] = []
    try:
        for one in check.check.judge(case):
            said.append(one)
    except Exception as error:  # noqa: BLE001 - hostile output of one node must not end the run
        said.append(Finding(Code.BUG, Subject(SubjectKind.FLEET, tuple(case.wants)), f"{check.name}.bug", "",
                            f"{type(error).__name__}: {error}"[:300], "a verdict", "fabrictool itself failed here; please report it",
                            Status.UNKNOWN))
    unproven = (*check.check.unproven, *(s.text for s in said if isinstance(s, Unproven)))
    return Judged(tuple(s for s in said if isinstance(s, Finding)), unproven, {s.key: s.value for s in said if isinstance(s, Evidence)},
                  not any(isinstance(s, Unproven) and s.of_any_node for s in said))


def _said_nothing(check: str, nodes: Iterable[str]) -> Finding:
    """A judge over the fleet without a word: no evidence."""
    return Finding(Code.NO_EVIDENCE, Subject(SubjectKind.FLEET, tuple(nodes)), f"{check}.evidence", "", "no evidence", "",
                   f"{check} said nothing about these nodes", Status.UNKNOWN,
                   remedy="report this with `fabrictool snapshot` of the nodes: a judge must say something")


def _result(check: str, rooms: Sequence[str], by_node: Mapping[str, Sequence[Finding]], judged: Judged | None,
            duration_s: float) -> Result:
    found: list[Finding] = []
    for node, findings in by_node.items():
        ok = reached(findings)
        for room in rooms:
            mine = [f for f in findings if f.room == room]
            if not mine and room != REACH:
                mine = [_missing(room, node, ok)]
            found += mine
    if judged is not None:
        found += judged.findings or (_said_nothing(check, by_node),)
    compared = sum(1 for f in found if f.status in (Status.PASS, Status.WARN, Status.FAIL))
    said = judged.unproven if judged else ()
    unproven = tuple(dict.fromkeys((*(u for r in rooms for u in UNPROVEN.get(r, ())), *said)))
    evidence = {**dict(zip(COUNTS, (compared, len(by_node)), strict=True)), **(judged.evidence if judged else {})}
    summary = _summary(found, len(by_node), bool(rooms))
    return Result(check, worst_status(f.status for f in found), summary, tuple(found), evidence, unproven, duration_s,
                  judged is None or judged.proves_nodes)


def each_room(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """One check per room, named like it: what plan, drift and apply show."""
    return {n: (n,) for n in names}


def assemble(info: RunInfo, checks: Mapping[str, Sequence[str]], by_node: Mapping[str, Sequence[Finding]],
             specs: Iterable[NodeSpec] = (), *, judged: Mapping[str, Judged] | None = None,
             durations_s: Mapping[str, float] | None = None, notes: Sequence[str] = ()) -> Report:
    """The report over `by_node` (every selected node is a key, also those that said nothing).

    `checks`: check name -> the rooms it composes; `judged`: check name -> what its own judge said. Findings of path `reach.*` get a
    result of their own, first; findings of rooms that no check asks for are left out.
    """
    durations = durations_s or {}
    results = []
    if any(f.room == REACH for findings in by_node.values() for f in findings):
        results.append(_result(REACH, (REACH,), by_node, None, durations.get(REACH, 0.0)))
    own = judged or {}
    results += [_result(name, rooms, by_node, own.get(name), durations.get(name, 0.0)) for name, rooms in checks.items()]
    return Report(info.run_id, info.command, info.started, info.tool_version, info.spec_digest, info.simulated,
                  tuple(results), tuple(by_node), (*notes, *not_acted_on(specs)))


def not_acted_on(specs: Iterable[NodeSpec]) -> tuple[str, ...]:
    """A note for the sections of the spec that are validated and that nothing acts on yet."""
    seen = set[str]()
    for spec in specs:
        seen |= {name for name, there in (("checkpoints", bool(spec.checkpoints)), ("kernel_caches", bool(spec.kernel_caches))) if there}
    if not seen:
        return ()
    return (f"{Code.SPEC_NOT_ACTED_ON}: {', '.join(sorted(seen))}: the spec is valid here, but nothing acts on "
            f"{'it' if len(seen) == 1 else 'them'} yet",)
