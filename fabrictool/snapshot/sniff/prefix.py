"""What launchers, log collectors and terminals write before each line, taken off again.

A sure prefix is taken off wherever it stands. Any other is taken off a run of lines only if more of them are understood without it:
`1: lo:` of `ip` and the `1: ` of `srun -l` look alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabrictool.snapshot.sniff import jsontext
from fabrictool.snapshot.sniff.grammar import TIME, start
from fabrictool.snapshot.sniff.model import LOOK, Line, Stream

ROUNDS = 5  # prefixes within prefixes: kubectl, time, mpirun, rank
SAMPLE = 500  # lines of a run that are looked at


@dataclass(frozen=True, slots=True)
class Prefix:
    """`stream` and `host` are groups of the pattern that say whose line it is."""

    pattern: re.Pattern[str]
    sure: bool = False


def _prefix(pattern: str, sure: bool = False) -> Prefix:
    return Prefix(re.compile(pattern), sure)


PREFIXES: tuple[Prefix, ...] = (
    _prefix(r"\[pod/(?P<stream>[^\]\s]{1,250})\] ?", sure=True),  # kubectl logs --prefix
    # mpirun --tag-output, then that of Open MPI 5
    _prefix(r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[\d+,\d+\]<std(?:out|err|diag)>:", sure=True),
    _prefix(rf"\[[\w.-]{{1,99}}@\d+,\d+(?:,\d+)?\](?:\[{TIME}\]|\[[\w.-]{{1,64}}:\d+\])?<std(?:out|err|diag)>: ?", sure=True),
    _prefix(r"\((?:[\w.:-]{1,80} )?(?:rank=\d+,? )?pid=\d+(?:, ip=[\d.]+)?\) ?", sure=True),  # Ray, vLLM
    _prefix(r"\[(?:rank|default)\d{1,5}\]: ?", sure=True),  # torchrun
    # journalctl, syslog
    _prefix(rf"{TIME} (?P<host>[A-Za-z0-9][\w.-]{{0,62}}) (?!kernel\[)[\w./@:+-]{{1,80}}\[\d+\]: ", sure=True),
    _prefix(rf"{TIME} (?P<host>[A-Za-z0-9][\w.-]{{0,62}}) (?!kernel:)[\w./@+-]{{1,80}}: "),
    _prefix(r"(?P<stream>[A-Za-z0-9][\w.-]{0,80}) +\| ?"),  # docker compose
    _prefix(r"(?:> ?)+"),  # a quoted mail or comment
    _prefix(rf"\[?{TIME}\]?:? ?(?:std(?:out|err) [FP] )?"),  # also the log files of containerd and CRI-O
    _prefix(r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?:? "),
    _prefix(r"\[?\d{10}(?:\.\d{1,9})?\]?:? "),  # seconds since 1970
    _prefix(r" {0,5}\d{1,5}: ?"),  # srun -l, grep -n
    _prefix(r"\[\d{1,5}\] ?"),  # MPICH -prepend-rank
    _prefix(r"(?P<host>[A-Za-z0-9][\w.-]{0,62}):(?: |$)"),  # pdsh, clush
    _prefix(r"(?:[\w./-]{1,120}/)?[\w.-]{1,80}\.(?:log|txt|out|err)(?::\d{1,8})?: ?"),  # grep -H
    _prefix(r" *\d{1,6}(?:\t|  )"),  # cat -n, less -N
)


@dataclass(slots=True)
class _Row:
    line: Line
    label: str = ""
    host: str = ""


def unwrapped(source: str, lines: Sequence[Line]) -> tuple[Stream, ...]:
    """The lines without their prefixes, one stream for each pod, service or host that a prefix names, in order of appearance."""
    rows = [_Row(Line(line.number, _logged(line.text))) for line in lines]
    for _ in range(ROUNDS):
        changed = False
        for prefix in PREFIXES:
            changed |= _sure(rows, prefix) if prefix.sure else _guessed(rows, prefix)
        changed |= _dedented(rows)
        if not changed:
            break
    streams: dict[tuple[str, str], list[Line]] = {}
    for row in rows:
        streams.setdefault((row.label, row.host), []).append(row.line)
    return tuple(Stream(source, tuple(found), label, host) for (label, host), found in streams.items())


def _logged(text: str) -> str:
    """Docker's own log files: `{"log":"...\\n","stream":"stdout","time":"..."}`."""
    if not text.startswith('{"log"') or '"stream"' not in text:
        return text
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return text
    said = held.get("log")
    return " ".join(said.rstrip("\r\n").splitlines()) if isinstance(said, str) else text


def _take(row: _Row, m: re.Match[str]) -> None:
    row.line = Line(row.line.number, row.line.text[m.end():])
    named = m.groupdict()
    row.label = named.get("stream") or row.label
    row.host = named.get("host") or row.host


def _sure(rows: list[_Row], prefix: Prefix) -> bool:
    changed = False
    for row in rows:
        m = prefix.pattern.match(row.line.text[:LOOK])
        if m:
            _take(row, m)
            changed = True
    return changed


def _runs(rows: list[_Row], prefix: Prefix) -> Iterator[list[tuple[_Row, re.Match[str]]]]:
    """Neighbouring lines that all have the prefix; blank lines between them do not end a run."""
    run: list[tuple[_Row, re.Match[str]]] = []
    for row in rows:
        m = prefix.pattern.match(row.line.text[:LOOK])
        if m and m.end():
            run.append((row, m))
        elif row.line.text.strip() and run:
            yield run
            run = []
    if run:
        yield run


def _known(text: str) -> bool:
    return start(text) is not None or jsontext.surely(text)


def _guessed(rows: list[_Row], prefix: Prefix) -> bool:
    changed = False
    for run in _runs(rows, prefix):
        step = max(1, len(run) // SAMPLE)
        sample = run[::step]
        with_it = sum(_known(row.line.text) for row, _ in sample)
        without = sum(_known(row.line.text[m.end():]) for row, m in sample)
        if without > with_it:
            for row, m in run:
                _take(row, m)
            changed = True
    return changed


def _dedented(rows: list[_Row]) -> bool:
    """A block that was indented as a whole."""
    changed = False
    indent = Prefix(re.compile(r"[ \t]+(?=\S)"))
    for run in _runs(rows, indent):
        common = min((m[0] for _, m in run), key=len)
        if not all(m[0].startswith(common) for _, m in run):
            continue
        sample = run[::max(1, len(run) // SAMPLE)]
        if sum(_known(r.line.text[len(common):]) for r, _ in sample) > sum(_known(r.line.text) for r, _ in sample):
            for row, _ in run:
                row.line = Line(row.line.number, row.line.text[len(common):])
            changed = True
    return changed
