"""The result of one run: which text holds it, what it proves (room collective), and its bus bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fabrictool.collective import result, tests_json, tests_own, tests_text
from fabrictool.collective.fresh import fresh
from fabrictool.collective.model import Asked, Ending, TestRun
from fabrictool.model import Absent, Code, Finding, Observed, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.facts import AllReduce
from fabrictool.room import About
from fabrictool.snapshot import Captured, Recording, Snapshot

FAR_S = 1e11  # the year 5138: what is not below it, nan and inf too, is no clock's
FILE = "result.json"  # the section, and the name of the file


@dataclass(frozen=True, slots=True)
class RunResult:
    """`run`: what was printed; `json`: the same from its file, where there is one. `busbw`: decimal GB/s at the largest size, the lower of
    both placements. `findings`: paths begin with CHECK.RUN."""

    name: str
    run: TestRun
    json: TestRun | None
    busbw: Observed[float]
    findings: tuple[Finding, ...]

    @property
    def ended(self) -> bool:
        """Whether it came to a result at all; what a run that did not should have shown is not known."""
        return self.run.concluded

    @property
    def good(self) -> bool:
        """Whether nothing that it printed stands against it."""
        return self.ended and not any(f.bad for f in self.findings)


def read(recording: Recording, facts: AllReduce, name: str, check: str) -> RunResult:
    """Never raises. A run of which nothing was recorded is a finding."""
    path = f"{check}.{name}"
    everyone = Subject(SubjectKind.FLEET, facts.nodes)
    printed = output(recording, facts, name)
    if isinstance(printed, Unreadable):
        about = About(Code.NO_RESULT, everyone, f"{path}.ended", "")
        return RunResult(name, TestRun(), None, printed, (about.unknown(printed, "what the run printed"),))
    first = recording.at(name, facts.rank_nodes[0])
    text, written = _parsed(recording, facts, name, printed), _json(first)
    asked = Asked(facts.size_bytes, facts.ranks, len(facts.nodes), clock(first, "clock.start"), clock(first, "clock.end"))
    # What was printed is of this run; a file that is not leaves the two without a verdict.
    stale = [replace(f, status=Status.UNKNOWN) if f.bad else f
             for f in (_fresh(text, written, asked, About(Code.RESULT_STALE, everyone, f"{path}.json", "")) if written else ())]
    whole = written if written and not any(f.bad for f in stale) and written.concluded else None
    run = whole if whole and text.concluded and _broken(text) and not _broken(whole) else text
    findings = [*result.judge(run, asked, _ending(printed, facts, asked), everyone, path, hosts(facts, run)), *stale]
    if whole and not _broken(text) and text.concluded:
        findings += _agree(text, whole, About(Code.RESULT_STALE, everyone, f"{path}.agrees", ""))
    return RunResult(name, run, whole, result.gate_busbw(run), tuple(findings))


def _parsed(recording: Recording, facts: AllReduce, name: str, printed: Captured) -> TestRun:
    """Of our own program every rank's stderr tells of its steps."""
    if facts.program == "torch":
        return tests_own.parse(printed.out, [got.err for _, _, got in ranks(recording, facts, name) if isinstance(got, Captured)])
    return tests_text.parse(f"{printed.out}\n{printed.err}" if printed.err.strip() else printed.out)


def ranks(recording: Recording, facts: AllReduce, name: str) -> Iterator[tuple[int, str, Captured | Unreadable]]:
    """Every rank that was started by itself: its number, its node, how it ended."""
    for rank, node in enumerate(facts.rank_nodes if facts.launcher == "direct" else ()):
        take = recording.at(name, node)
        got = take.sections.get(f"rank[{rank}]")
        yield rank, node, got or take.error or Unreadable(Reason.NOT_COLLECTED, f"{name}: rank {rank} on {node} was not recorded")


def output(recording: Recording, facts: AllReduce, name: str) -> Captured | Unreadable:
    """What rank 0, or the launcher, printed."""
    if not facts.rank_nodes:
        return Unreadable(Reason.EMPTY, "the run has no ranks")
    key = "rank[0]" if facts.launcher == "direct" else "launcher"
    nodes = facts.nodes if key == "launcher" else facts.rank_nodes[:1]
    takes = [recording.at(name, node) for node in nodes]
    for take in takes:
        got = take.sections.get(key)
        if got is not None:
            return got
    lost = next((t.error for t in takes if t.error), None)
    return lost or Unreadable(Reason.NOT_COLLECTED, f"{name}: {key} was not recorded")


def hosts(facts: AllReduce, run: TestRun) -> dict[str, Subject]:
    """Host names as the run prints them -> the spec's nodes. A name that ranks of two nodes share means none of them."""
    found: dict[str, set[str]] = {}
    for device in run.devices:
        if device.rank < len(facts.rank_nodes):
            found.setdefault(device.host, set()).add(facts.rank_nodes[device.rank])
    named = {host: next(iter(nodes)) for host, nodes in found.items() if len(nodes) == 1}
    return {host: Subject(SubjectKind.NODE, (node,)) for host, node in {**{n: n for n in facts.nodes}, **named}.items()}


def clock(take: Snapshot, section: str) -> float | None:
    """Seconds since 1970 on the node's own clock."""
    got = take.text(section)
    try:
        told = float(got.value.strip()) if isinstance(got, Value) and len(got.value) < 64 else None
    except ValueError:
        return None
    return told if told is not None and 0 <= told < FAR_S else None


def _fresh(text: TestRun, written: TestRun, asked: Asked, about: About) -> Iterator[Finding]:
    """The file must be the one that the run says it wrote, and of the run's time."""
    named = [f for f in fresh(text, replace(asked, result_file=FILE), about) if f.bad] if text.json_path else []
    yield from named or fresh(written, asked, about)


def _json(take: Snapshot) -> TestRun | None:
    got = take.text(FILE)
    parsed = tests_json.parse(got.value) if isinstance(got, Value) else got
    return parsed if isinstance(parsed, TestRun) else None


def _broken(run: TestRun) -> bool:
    return bool(run.fragments or run.missing_rows or run.others or not run.rows)


def _ending(printed: Captured, facts: AllReduce, asked: Asked) -> Ending:
    took = asked.ended_s - asked.started_s if asked.ended_s is not None and asked.started_s is not None else None
    return Ending(printed.rc, took, float(facts.limit_s) if facts.limit_s else None)


def _agree(text: TestRun, written: TestRun, about: About) -> Iterator[Finding]:
    """Both tell of one run: the file rounds less than the table does."""
    one, two = result.gate_busbw(text), result.gate_busbw(written)
    if isinstance(one, Value) and isinstance(two, Value):
        shown = f"{one.value:g} GB/s printed, {two.value:g} in its file"
        if abs(one.value - two.value) <= max(0.02, result.ROUNDING * one.value):
            yield about.ok(shown)
        else:
            yield about.fail(shown, "one figure", "the file and the output are not of one run", status=Status.UNKNOWN,
                             remedy="run again: every run writes to a new file")
    elif isinstance(two, Absent):
        return
