"""What went wrong, as logs tell: symptoms in their order, who erred, who waits. Pure.

The first error wins: what follows it on any rank is a consequence. Lines that only show another's death are never the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fabrictool.collective import symptom_nccl, symptom_rdma, symptom_torch
from fabrictool.collective.linemodel import Level, LogLine, ProcessKey, Proof
from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.phases import Phase, Stuck, fails, phase, stuck
from fabrictool.collective.symptom_model import Rule, Symptom, Told, Weight

LIBRARY = (*symptom_nccl.RULES, *symptom_rdma.RULES)
AROUND = symptom_torch.RULES
_ANY = re.compile("|".join(re.escape(n) for r in (*LIBRARY, *AROUND) for n in r.needles))
KEPT = 3  # lines kept for each symptom


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`causes`: the first is the root; `after`: consequences; `stuck`: ranks whose log ends while they start; `erring` and `waiting`:
    processes with and without an error; `unexplained`: warnings of NCCL that no rule knows; `finished`: ranks that are connected."""

    causes: tuple[Symptom, ...] = ()
    after: tuple[Symptom, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    erring: tuple[ProcessKey, ...] = ()
    waiting: tuple[ProcessKey, ...] = ()
    unexplained: tuple[LogLine, ...] = ()
    finished: tuple[ProcessKey, ...] = ()

    @property
    def root(self) -> Symptom | None:
        return self.causes[0] if self.causes else None

    @property
    def lone(self) -> bool:
        """Exactly one process errs and others wait: it is not necessarily the one at fault."""
        return len(self.erring) == 1 and bool(self.waiting)


@dataclass(slots=True)
class _Seen:
    """One meaning in one process, while lines are read."""

    told: Told
    first: LogLine
    order: int
    last: int
    lines: int = 0
    proof: list[Proof] = field(default_factory=list)

    def symptom(self) -> Symptom:
        return Symptom(self.told, self.first.process, tuple(self.proof), self.lines, self.order, self.first.stamp)


def meaning(line: LogLine, *, quoted: bool = False) -> Told | None:
    """What one line says, by the first rule that fits. `quoted`: a program repeats here what NCCL said."""
    if line.level in (Level.DAMAGED, Level.VERSION):
        return None
    text = f"{line.where} {line.text}" if line.where else line.text
    if not _ANY.search(text):
        return None
    library = quoted or line.level is not Level.OTHER or "nccl" in text.casefold()
    for r in _rules(library):
        if any(n in text for n in r.needles):
            m = r.pattern.search(text)
            told = r.tell(m) if m else None
            if told:
                return told
    return None


def _quotes(before: LogLine, line: LogLine) -> bool:
    """PyTorch's errors end with `Last error:` and, on the next line, the last warning of NCCL."""
    return before.text == "Last error:" and (before.source, before.number + 1) == (line.source, line.number)


def _rules(library: bool) -> Iterator[Rule]:
    if library:
        yield from LIBRARY
    yield from AROUND


def diagnose(log: NcclLog) -> Diagnosis:
    seen: dict[tuple[Told, ProcessKey], _Seen] = {}
    progress: dict[ProcessKey, int] = {}
    unexplained: list[LogLine] = []
    failed: dict[ProcessKey, None] = {}
    before: LogLine | None = None
    for order, line in enumerate(log.lines):
        told, before = meaning(line, quoted=before is not None and _quotes(before, line)), line
        if told is None:
            if line.level in (Level.WARN, Level.ABORT) and line.text:
                unexplained.append(line)
            if line.process.known and fails(line):
                failed[line.process] = None
            elif line.text.endswith("- Init COMPLETE") or line.text.startswith("Connected all "):
                progress[line.process] = order
            continue
        if told.weight is Weight.BENIGN:
            continue
        found = seen.setdefault((told, line.process), _Seen(told, line, order, order))
        found.lines += 1
        found.last = order
        if len(found.proof) < KEPT:
            found.proof.append(Proof.of(line))
    causes, after = _weighed(seen, progress)
    erring = tuple(dict.fromkeys((*(s.process for s in (*causes, *after) if s.process.known), *failed)))
    held = stuck(log, erring)
    came = {p.key: phase(p) for p in log.processes if p.key.known and p.key not in erring}
    finished = tuple(k for k, at in came.items() if not at.starting)
    # A rank that is connected and did not end waits for the others, as one does that still starts.
    waiting = dict.fromkeys([s.process for s in held] + [k for k in finished if came[k] is not Phase.DONE]) if erring else {}
    return Diagnosis(causes, after, held, erring, tuple(waiting), tuple(unexplained), finished)


def _weighed(seen: dict[tuple[Told, ProcessKey], _Seen],
             progress: dict[ProcessKey, int]) -> tuple[tuple[Symptom, ...], tuple[Symptom, ...]]:
    causes = [s.symptom() for s in seen.values() if s.told.weight is Weight.CAUSE]
    if not causes:  # tries that led to nothing are the cause only where nothing else is
        causes = [replace(s.symptom(), told=replace(s.told, weight=Weight.CAUSE)) for s in seen.values()
                  if s.told.weight is Weight.RETRY and progress.get(s.first.process, -1) < s.last]
    stamped = all(s.stamp for s in causes)
    causes.sort(key=lambda s: (s.stamp if stamped else "", s.order))
    after = sorted((s.symptom() for s in seen.values() if s.told.weight is Weight.AFTER), key=lambda s: s.order)
    return tuple(causes), tuple(after)
