"""What several runs of one recording said of the same thing, told once: the worst, and in which runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fabrictool.model import Finding, Said, Status, Subject

WORST_FIRST = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)


def over_runs(check: str, by_run: Mapping[str, Iterable[Finding]]) -> Iterator[Finding]:
    """Paths come as `CHECK.RUN.what` and leave as `CHECK.what`, so that a finding's id does not hang on a run. Of one subject and path
    only the findings of the worst status are told, each code once."""
    places: dict[tuple[Subject, str], dict[str, list[Finding]]] = {}
    for run, findings in by_run.items():
        head = f"{check}.{run}."
        for f in findings:
            if not f.path.startswith(head):
                raise ValueError(f"{f.path} does not begin with {head}")
            places.setdefault((f.subject, f"{check}.{f.path.removeprefix(head)}"), {}).setdefault(run, []).append(f)
    for (_, path), told in places.items():
        worst = min((f.status for said in told.values() for f in said), key=WORST_FIRST.index)
        runs = {run: [f for f in said if f.status is worst] for run, said in told.items()}
        yield from _each_code(path, {run: said for run, said in runs.items() if said}, len(by_run))


def _each_code(path: str, runs: Mapping[str, Sequence[Finding]], of: int) -> Iterator[Finding]:
    first: dict[str, Finding] = {}
    seen: dict[str, list[str]] = {}
    for run, said in runs.items():
        for f in said:
            first.setdefault(f.code, f)
            if run not in seen.setdefault(f.code, []):
                seen[f.code].append(run)
    for code, f in first.items():
        some = f"in {', '.join(seen[code])}" if len(seen[code]) < of and f.bad else ""
        yield replace(f, path=path, why="; ".join(w for w in (f.why, some) if w))


WAYS = ("tx", "rx")


def both_ways(findings: Iterable[Finding]) -> Iterator[Finding]:
    """What stands against both ways of one thing as one finding: a path that ends with `.tx` and one with `.rx`, of one code, subject and
    reason."""
    told: dict[tuple[object, ...], list[Finding]] = {}
    for f in findings:
        head, _, way = f.path.rpartition(".")
        key = (f.code, f.status, f.subject, f.why, head) if f.bad and way in WAYS else (len(told), f)
        told.setdefault(key, []).append(f)
    for same in told.values():
        first = same[0]
        if len(same) == 1:
            yield first
        else:
            got, want = ("; ".join(dict.fromkeys(words)) for words in ((f.got for f in same), (f.want for f in same)))
            yield replace(first, path=first.path.rpartition(".")[0], got=got, want=want)


def bad_once(check: str, runs: Collection[str], said: Iterable[Said]) -> Iterator[Said]:
    """What stands against one thing in several runs, or both ways, once. Paths come as `CHECK.what.RUN.way` and leave without the run;
    what passes leaves as it came."""
    by_run: dict[str, list[Finding]] = {run: [] for run in runs}
    rest: list[Said] = []
    for one in said:
        words = one.path.split(".") if isinstance(one, Finding) and one.bad else []
        run = next((w for w in words[1:] if w in by_run), "")
        if isinstance(one, Finding) and run and len(words) > 2:
            by_run[run].append(replace(one, path=".".join((check, run, *(w for w in words[1:] if w != run)))))
        else:
            rest.append(one)
    yield from both_ways(over_runs(check, by_run))
    yield from rest
