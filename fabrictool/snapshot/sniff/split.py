"""From lines to pieces: several tools in one paste, logs that interleave, and what is none of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fabrictool.snapshot.sniff import jsontext, prompt
from fabrictool.snapshot.sniff.clean import FENCE
from fabrictool.snapshot.sniff.grammar import INSIDE, LOGS, goes_on, once, start
from fabrictool.snapshot.sniff.model import LOOK, Kind, Line, Piece, Stream


@dataclass(slots=True)
class _Section:
    """Lines between two prompts or fences. `kind`: what the command or the file's name makes one expect."""

    command: str = ""
    host: str = ""
    kind: Kind | None = None
    path: str = ""
    rc: int | None = None
    lines: list[Line] = field(default_factory=list)
    errors: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """`seen`: lines that stand once in one output; `processes`: HOST:PID of NCCL's lines; `over`: a run of nccl-tests has ended."""

    kind: Kind
    lines: list[Line] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    processes: set[str] = field(default_factory=set)
    over: bool = False

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.seen |= {once(self.kind, line.text)} - {""}
        self.processes |= {process(line.text)} - {""}
        self.over |= self.kind is Kind.NCCL_TESTS and line.text.startswith("# Collective test concluded")

    def takes(self, kind: Kind, line: Line) -> bool:
        """Whether a line that begins `kind` still belongs here."""
        if kind is self.kind:
            return once(kind, line.text) not in self.seen
        if kind not in INSIDE.get(self.kind, ()):
            return False
        return not self.over or process(line.text) in self.processes


_NO_TOOL = re.compile(r"(?:command not found|: not found)\s*$")
NEAR = 50  # blocks before a run among which its early log lines may be
_PROCESS = re.compile(r"(?:\[[\d :.+-]{8,40}\] )?([\w.-]{1,80}:\d{1,9}):\d{1,9} ")


def process(line: str) -> str:
    """`HOST:PID` of a line of NCCL's."""
    m = _PROCESS.match(line)
    return m[1] if m else ""


def pieces(stream: Stream) -> Iterator[Piece]:
    """The pieces of one stream, in the order of their first lines."""
    for section in _sections(stream):
        found = list(_blocks(section))
        for n, block in enumerate(sorted(found, key=lambda b: b.lines[0].number)):
            lines = tuple(_trimmed(block.lines))
            if not lines:
                continue
            asked = block.kind is section.kind or len(found) == 1
            yield Piece(block.kind, stream.source, lines, section.command, section.host or stream.host,
                        section.rc if n == len(found) - 1 else None, section.path if asked else "", stream.label,
                        tuple(section.errors) if asked else ())


def _trimmed(lines: Iterable[Line]) -> list[Line]:
    out = list(lines)
    while out and not out[-1].text.strip():
        out.pop()
    while out and not out[0].text.strip():
        out.pop(0)
    return out


def _sections(stream: Stream) -> Iterator[_Section]:
    of_file = prompt.of_path(stream.source)
    now = _Section(kind=of_file, path=stream.source if of_file else "", host=stream.host)
    to_errors = False
    skip = 0
    for at, line in enumerate(stream.lines):
        if skip:
            skip -= 1
            continue
        asked = prompt.prompt(line.text)
        head = prompt.headline(line.text)
        named = prompt.banner([ln.text for ln in stream.lines[at:at + 3]]) if line.text.startswith("--------") else ""
        if named or head is not None:
            yield now
            now, to_errors, skip = _headed(now, head or prompt.Headline(named)), False, 2 if named else 0
        elif asked is not None and start(line.text) is None:
            yield now
            kind, path = prompt.expected(asked.command)
            now, to_errors = _Section(asked.command, asked.host or now.host, kind, path), False
        elif FENCE.fullmatch(line.text[:200]):
            yield now
            now, to_errors = _Section(now.command if not now.lines else "", now.host), False
            now.kind, now.path = prompt.expected(now.command)
        elif (rc := prompt.exit_status(line.text)) is not None:
            now.rc, to_errors = rc, False
        elif line.text.strip() == prompt.STDERR:
            to_errors = True
        else:
            (now.errors if to_errors else now.lines).append(line)
    yield now


def _headed(before: _Section, head: prompt.Headline) -> _Section:
    if head.path:
        kind = prompt.of_path(head.path)
        return _Section(before.command, before.host, kind, head.path if kind else "")
    return _Section(before.command, head.host, before.kind, before.path, head.rc)


def _blocks(section: _Section) -> Iterator[_Open]:
    if not any(line.text.strip() for line in section.lines):
        if section.kind is not None and section.errors:
            yield _Open(section.kind, list(section.errors))
        return
    if section.kind is not None and _only(section, section.kind):
        at = _end(section.kind, section.lines)
        yield from _merged([*_one_kind(section.kind, section.lines[:at]), _Open(Kind.UNKNOWN, section.lines[at:])])
        return
    found = _merged(list(_by_content(section)))
    if section.kind is not None and found and found[0].kind is Kind.UNKNOWN and _NO_TOOL.search(found[0].lines[0].text[:LOOK]):
        found[0].kind = section.kind  # the command's own answer, whatever was pasted after it
    yield from found


def _only(section: _Section, kind: Kind) -> bool:
    """Whether the text is what its command or its file's name makes one expect: nothing in it begins another kind."""
    if kind in (Kind.IP_JSON, Kind.RDMA_LINK, Kind.RDMA_RESOURCE, Kind.RDMA_STATISTIC, Kind.DCB) and \
            any(jsontext.opens(line.text) for line in section.lines):
        return _json_only(section)
    allowed = {None, kind, *INSIDE.get(kind, ())}
    return all(start(line.text) in allowed for line in section.lines)


def _end(kind: Kind, lines: list[Line]) -> int:
    """Where somebody's own words begin: after a blank line, and after all that looks like the tool's."""
    mine = [i for i, ln in enumerate(lines) if ln.text.strip() and (start(ln.text) is not None or goes_on(kind, ln.text))]
    last = mine[-1] if mine else next((i for i, ln in enumerate(lines) if ln.text.strip()), 0)
    blank = next((i for i in range(last, len(lines)) if not lines[i].text.strip()), len(lines))
    return blank if any(ln.text.strip() for ln in lines[blank:]) else len(lines)


def _json_only(section: _Section) -> bool:
    """`[]` and `{}` say nothing of themselves: there the command counts."""
    lines = _trimmed(section.lines)
    return jsontext.end(lines, 0) == len(lines) and jsontext.kind_of("\n".join(ln.text for ln in lines)) in (None, section.kind)


def _one_kind(kind: Kind, lines: list[Line]) -> Iterator[_Open]:
    now = _Open(kind)
    for line in lines:
        if once(kind, line.text) in now.seen:
            yield now
            now = _Open(kind)
        now.add(line)
    yield now


def _by_content(section: _Section) -> Iterator[_Open]:
    """One block after the other; the same block several times where a log goes on after something else."""
    lines = section.lines
    logs: dict[Kind, _Open] = {}
    now = _Open(Kind.UNKNOWN)
    at = 0
    documents = _Documents(section)
    while at < len(lines):
        line = lines[at]
        kind = start(line.text)
        if kind is None and jsontext.opens(line.text) and (until := documents.end(at)):
            yield now
            kind = jsontext.kind_of("\n".join(ln.text for ln in lines[at:until])) or section.kind or Kind.UNKNOWN
            yield _Open(kind, lines[at:until])
            now, at = _Open(Kind.UNKNOWN), until
            continue
        at += 1
        if kind is None:
            if not goes_on(now.kind, line.text):
                yield now
                now = _Open(Kind.UNKNOWN)
        elif not now.takes(kind, line):
            yield now
            now = next((log for log in logs.values() if log.takes(kind, line)), None) or _begun(kind, logs)
        now.add(line)
    yield now


def _begun(kind: Kind, logs: dict[Kind, _Open]) -> _Open:
    made = _Open(kind)
    if kind in LOGS:
        logs[kind] = made
    return made


class _Documents:
    """JSON documents of known tools. What is none is not looked at again for each of its lines, and not more than `TRIES` times to the
    end of the text."""

    TRIES = 5

    def __init__(self, section: _Section) -> None:
        self.section = section
        self.after = 0
        self.tries = 0

    def end(self, at: int) -> int:
        """The end of the document that begins here; 0 if there is none."""
        lines = self.section.lines
        if at < self.after or self.tries >= self.TRIES:
            return 0
        until = jsontext.end(lines, at)
        text = "\n".join(ln.text for ln in lines[at:until])
        if jsontext.kind_of(text) is not None or (text.strip() in ("[]", "{}") and self.section.kind):
            return until
        if until == len(lines):
            self.tries += 1
        else:
            self.after = until
        return 0


def _merged(blocks: Iterable[_Open]) -> list[_Open]:
    """Each block once, none empty. What ranks of an nccl-tests run logged before its first line is part of the run."""
    out: list[_Open] = []
    for block in {id(b): b for b in blocks}.values():
        if block.kind is Kind.NCCL_TESTS:
            early = next((b for b in reversed(out[-NEAR:]) if b.kind is Kind.NCCL_LOG and b.processes & block.processes), None)
            if early is not None:
                out.remove(early)
                block.lines = sorted([*early.lines, *block.lines], key=lambda ln: ln.number)
        out.append(block)
    return [b for b in out if any(ln.text.strip() for ln in b.lines)]
