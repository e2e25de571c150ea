"""Ranks of fabrictool's own AllReduce that came to no result: which of them failed, which waited, and for whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.model import ErrorKind
from fabrictool.collective.own_ranks import OwnRank, Step
from fabrictool.diagnose.model import MOST_LINES
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.room import About
from fabrictool.snapshot.sniff import Piece
from fabrictool.system import stacks
from fabrictool.system.phases import READINGS, Phase

MOST = 5000  # lines of a dump
FEW = 4  # ranks that a finding names
WANT = "a result"
ASK = "look at the end of that rank's own output, at its NCCL log, and at the kernel log of its node (OOM, Xid)"
# By what the program itself says of its end: the code, why, and what to do.
ERRORS = {
    ErrorKind.GPUS: (Code.TOO_FEW_GPUS, "a node has fewer GPUs than ranks", "look at nvidia-smi and CUDA_VISIBLE_DEVICES there"),
    ErrorKind.LAUNCHER: (Code.LAUNCH_FAILED, "this Python has no PyTorch that finds a GPU", "name the venv or image with PyTorch for CUDA"),
    ErrorKind.CUDA: (Code.LAUNCH_FAILED, "CUDA could not be used", "look at nvidia-smi, the driver, and the image's CUDA version"),
    ErrorKind.ARGUMENT: (Code.BAD_ARGUMENT, "the program does not take its arguments or environment", "correct the command line"),
}


@dataclass(frozen=True, slots=True)
class Said:
    """A rank, and the text that it wrote."""

    piece: Piece
    rank: OwnRank

    def lines(self) -> list[str]:
        """The lines that show how far it came, why it ended, and where it stood then."""
        r = self.rank
        numbers = [n for n in (r.line, r.error.line if r.error else 0, r.late.line if r.late else 0) if n]
        stand = self.stand()
        at = [ln for ln in self.piece.lines if ln.number in numbers]
        at += [ln for ln in self.piece.lines if r.late and stand and stand.frame and ln.number > r.late.line
               and f" in {stand.frame.name}" in ln.text][:1]
        return [self.piece.quote(ln) for ln in at]

    def stand(self) -> stacks.Stand | None:
        """Where it stood when its time was over: by the dump after that line."""
        late = self.rank.late
        if late is None:
            return None
        after = islice((ln.text for ln in self.piece.lines if ln.number >= late.line), MOST)
        dumps = stacks.parse("\n".join(after))
        return stacks.stand(dumps[0]) if dumps else None

    @property
    def came(self) -> Step:
        """How far. One that said nothing has not come past its start."""
        return self.rank.step if self.rank.step is not None else Step.STARTING

    @property
    def told(self) -> str:
        r = self.rank
        step = f"came to `{r.step.text}`" if r.step is not None else "said nothing of a step"
        if r.late:
            stand = self.stand()
            return f"{r} {step}, then its time was over{f' in {stand}' if stand and stand.frame else ''}"
        return f"{r} {step}" + (f", then {r.error.text[:120]}" if r.error else "")


def _subject(said: Iterable[Said]) -> Subject:
    hosts = tuple(dict.fromkeys(s.rank.host for s in said if s.rank.host))
    return Subject(SubjectKind.NODE if len(hosts) <= 1 else SubjectKind.FLEET, hosts)


def _names(said: Sequence[Said]) -> str:
    return ", ".join(str(s.rank) for s in said[:FEW]) + (f" and {len(said) - FEW} more" if len(said) > FEW else "")


def _shown(f: Finding, said: Iterable[Said]) -> Finding:
    return replace(f, lines=tuple(dict.fromkeys(q for s in said for q in s.lines()))[:MOST_LINES])


def judge(said: Sequence[Said], symptoms: Sequence[Finding], seen: NcclLog, path: str) -> Iterator[Finding]:
    """`symptoms`: what NCCL and PyTorch told in the logs and in these texts."""
    known = [f for f in symptoms if f.status is Status.FAIL]
    own = list(_own_errors(said, path))
    late, silent = [s for s in said if s.rank.late], [s for s in said if s.rank.silent]
    failed = [s for s in said if s.rank.error and s.rank.error.kind not in ERRORS]
    gone = [f for f in symptoms if f.code is Code.RANK_DIED and f.status is Status.UNKNOWN]
    yield from own
    if not own and not known:
        if silent and gone and (late or failed):
            yield _gone(silent, late or failed, gone, path)
        elif late:
            yield from _late(late, silent, _missing(said, seen), path)
        elif failed:
            yield _shown(About(Code.NO_RESULT, _subject(failed), f"{path}.ended", "").fail(
                failed[0].told, WANT, "a call of PyTorch or NCCL failed", remedy="read the first NCCL WARN of that rank's log, and the "
                "output of the ranks that are not in this input"), failed[:FEW])
        elif silent:
            yield _open(said, silent, path)
        else:
            yield About(Code.NO_RESULT, _subject(said), f"{path}.ended", "").ok(f"{_names(said)}: verified")
    yield from symptoms


def _own_errors(said: Sequence[Said], path: str) -> Iterator[Finding]:
    """One for each meaning."""
    for kind, (code, why, fix) in ERRORS.items():
        mine = [s for s in said if s.rank.error and s.rank.error.kind is kind]
        if mine:
            first = mine[0].rank.error
            text = first.text if first else ""
            more = f" ({len(mine)} ranks)" if len(mine) > 1 else ""
            yield _shown(About(code, _subject(mine), f"{path}.{kind}", "").fail(f"{mine[0].rank}: {text}{more}", WANT, why, remedy=fix),
                         mine[:FEW])


def _missing(said: Sequence[Said], seen: NcclLog) -> str:
    """Ranks that should be there, and of which the input holds nothing."""
    there = {s.rank.number for s in said if s.rank.number is not None}
    world = max((c.size for p in seen.processes for c in p.comms), default=0)
    gone = sorted(set(range(min(max(world, max(there, default=0) + 1), 100_000))) - there)
    if gone:
        return f"; of rank {', '.join(map(str, gone[:FEW]))}{' ...' if len(gone) > FEW else ''} nothing is in this input"
    return "; no other rank's output is in this input" if len(there) == 1 and not world else ""


def _late(late: Sequence[Said], silent: Sequence[Said], missing: str, path: str) -> Iterator[Finding]:
    """Time limits that passed, the ranks that came least far first: the others wait for them."""
    least = min(s.came for s in late)
    first = [s for s in late if s.came is least]
    stand = first[0].stand()
    got = f"{first[0].told}{f'; so did {len(first) - 1} more' if len(first) > 1 else ''}"
    behind = [s for s in silent if s.came <= least]
    apart = f"; {_names(behind)} said nothing more: it died or hangs" if behind else ""
    if least <= Step.GROUP_MADE:
        if stand is not None and stand.phase.init:
            why, fix = READINGS[stand.phase].means, READINGS[stand.phase].do
        elif least is Step.STARTING:
            why, fix = READINGS[Phase.STORE].means, READINGS[Phase.STORE].do
        else:
            why = "the first call makes NCCL's communicator: a rank did not come to it, or the bootstrap does not reach it"
            fix = READINGS[Phase.NCCL_BOOTSTRAP].do
        yield _shown(About(Code.INIT_HANG, _subject(first), f"{path}.start", "").fail(
            got, "all ranks past their start", f"{why}{apart}{missing}", remedy=fix), [*first[:FEW], *behind[:FEW]])
    elif behind:
        yield _shown(About(Code.RANK_HANGS, _subject(behind), f"{path}.silent", "").fail(
            f"{behind[0].told}, and nothing after it" + (f"; so {len(behind) - 1} more" if len(behind) > 1 else ""), WANT,
            f"{_names(late)} waited for it until the time was over: it hangs, or it died", remedy=ASK), [*behind[:FEW], *first[:FEW]])
    else:
        yield _shown(About(Code.RUN_TIMEOUT, _subject(first), f"{path}.ended", "").fail(
            got, WANT, READINGS[Phase.DATA].means + missing, remedy=READINGS[Phase.DATA].do), first[:FEW])


def _gone(silent: Sequence[Said], others: Sequence[Said], gone: Sequence[Finding], path: str) -> Finding:
    """Ranks that say nothing more, while others tell that connections to them were closed."""
    got = f"{silent[0].told}, and nothing after it" + (f"; so {len(silent) - 1} more" if len(silent) > 1 else "")
    found = _shown(About(Code.RANK_DIED, _subject(silent), f"{path}.silent", "").fail(
        got, WANT, f"{_names(others)} tells that its connection was closed: {_names(silent)} ended without a word, as a process does that "
        "is killed", remedy=ASK), silent[:FEW])
    shown = (*found.lines, *(q for f in gone for q in f.lines), *_shown(found, others[:FEW]).lines)
    return replace(found, lines=tuple(dict.fromkeys(shown))[:MOST_LINES])


def _open(said: Sequence[Said], silent: Sequence[Said], path: str) -> Finding:
    got = "; ".join(s.told for s in silent[:FEW]) + (f"; and {len(silent) - FEW} more" if len(silent) > FEW else "")
    return _shown(About(Code.NO_RESULT, _subject(said), f"{path}.ended", "").fail(
        got, WANT, "it still runs, was killed, or this is not all that it printed", status=Status.UNKNOWN,
        remedy="paste the output of every rank, as it stands when the run is over"), silent[:FEW])
