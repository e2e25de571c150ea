"""What a judge over the fleet says, sorted for assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fabrictool.model import Code, Evidence, Finding, Said, Status, Unproven
from fabrictool.prove import Case
from tests.prove.recordings import Fleet


class Verdict:
    def __init__(self, said: Iterable[Said]) -> None:
        every = list(said)
        self.findings = [s for s in every if isinstance(s, Finding)]
        self.evidence = {s.key: s.value for s in every if isinstance(s, Evidence)}
        self.unproven = [s.text for s in every if isinstance(s, Unproven)]

    @property
    def bad(self) -> list[Finding]:
        return [f for f in self.findings if f.bad]

    @property
    def codes(self) -> set[tuple[Code, Status]]:
        """Every code that does not pass, with its status."""
        return {(f.code, f.status) for f in self.bad}

    @property
    def nodes(self) -> set[str]:
        """The nodes that anything is held against."""
        return {n for f in self.bad for n in f.subject.nodes}

    @property
    def places(self) -> set[str]:
        return {f.subject.place for f in self.bad}

    @property
    def passes(self) -> bool:
        statuses = {f.status for f in self.findings}
        return Status.PASS in statuses and statuses <= {Status.PASS, Status.SKIP}

    def at(self, path: str) -> list[Finding]:
        return [f for f in self.findings if f.path == path]


def verdict(judge: Callable[[Case], Iterable[Said]], fleet: Fleet | Case) -> Verdict:
    return Verdict(judge(fleet if isinstance(fleet, Case) else fleet.case()))
