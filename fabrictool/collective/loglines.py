"""The grammar of NCCL's log lines: text of any writers -> messages, each with the process that said it.

    [STAMP]? HOST:PID:TID [DEV] NCCL INFO MESSAGE
    [STAMP]? HOST:PID:TID [DEV] FILE:LINE ((FUNC))? NCCL WARN MESSAGE

What stands before the host (tags of mpirun, srun, kubectl; a result row of nccl-tests) does not matter, and one line may hold several
messages. What cannot be read is `DAMAGED`: it proves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fabrictool.collective.linemodel import Level, LogLine, ProcessKey

LONGEST = 16_384  # characters; NCCL's own buffer for a line holds 1,024, its list of trees some thousand
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]")
_TAG = re.compile(r"\[(?:[^\]\s@]{1,120}@)?[0-9]{1,6},[0-9]{1,6}\](?:\[[^\]\s]{1,120}\])?<std(?:out|err|diag)>:?")
_HEAD = re.compile(
    r"(?<![A-Za-z0-9_.-])(?P<host>[A-Za-z0-9_.-]{1,128}):(?P<pid>[0-9]{1,10}):(?P<tid>[0-9]{1,10}) \[(?P<cuda>-?[0-9]{1,4})\] "
    r"(?:(?P<where>[^\s:]{1,200}:[0-9]{1,6}) (?:\((?P<func>[^()]{0,120})\) )?)?NCCL (?P<level>INFO|WARN|TRACE|ABORT)(?: |$)")
_HEADLESS = re.compile(r"\s*(?:(?P<where>[A-Za-z0-9_/.-]{1,100}\.(?:cc|cu|h):[0-9]{1,6}) )?NCCL (?P<level>INFO|WARN) ")
_STAMP = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?)\] ?$")
_VERSION = re.compile(r"(?:^|\s)R?NCCL version ([0-9][0-9A-Za-z.+_-]{0,40})\s*$")
_LOOKS = re.compile(r"NCCL (?:INFO|WARN) |:[0-9]{3,10}:[0-9]{3,10} \[-?[0-9]{1,4}\] |(?:->|\[send\]|\[receive\]).{0,60} via ")
GLUED = 16  # characters: no longer number is printed before a host name
_ROW = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?")  # what a result row may have printed right before a host name


@dataclass(slots=True)
class _Found:
    """A message with where in its line it began, before hosts are settled."""

    line: LogLine
    host: str
    pid: int


def lines(text: str, node: str = "", source: str = "") -> tuple[LogLine, ...]:
    """Every line of `text`, in order. `node`: whose log it is ("" = the host that each line names); `source`: a name for people."""
    found = list(_all(text, node, source))
    return tuple(_settled(found, node))


def _all(text: str, node: str, source: str) -> Iterator[_Found]:
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if not line.strip():
            continue
        if len(line) > LONGEST:
            yield _other(number, source, node, Level.DAMAGED, line[:200])
            continue
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        if "<std" in line:
            line = _TAG.sub("", line)
        yield from _messages(number, source, node, line)


def _other(number: int, source: str, node: str, level: Level, text: str) -> _Found:
    return _Found(LogLine(number, source, ProcessKey(node, "", -1), level, text.strip()), "", -1)


def _messages(number: int, source: str, node: str, line: str) -> Iterator[_Found]:
    heads = list(_HEAD.finditer(line)) if " NCCL " in line else []
    before = line[:heads[0].start()] if heads else line
    stamp = _STAMP.search(before)
    rest = (before[:stamp.start()] if stamp else before) if heads else before
    if rest.strip():
        yield _plain(number, source, node, rest, whole=not heads)
    for i, m in enumerate(heads):
        end = heads[i + 1].start() if i + 1 < len(heads) else len(line)
        message = line[m.end():end]
        later = _STAMP.search(message) if i + 1 < len(heads) else None
        said = message[:later.start()] if later else message
        yield _Found(LogLine(number, source, ProcessKey(node or m["host"], m["host"], int(m["pid"])), Level(m["level"]), said.rstrip(),
                             int(m["cuda"]), m["where"] or "", m["func"] or "", stamp[1] if stamp else ""), m["host"], int(m["pid"]))
        stamp = later


def _plain(number: int, source: str, node: str, text: str, whole: bool) -> _Found:
    """Text without a readable head: another program's, a message whose head was cut off, or a damaged line."""
    version = _VERSION.search(text) if whole else None
    if version and "NCCL INFO" not in text:
        return _other(number, source, node, Level.VERSION, version[1])
    # With anything before it, the head is broken rather than cut off: then the message is nobody's.
    m = _HEADLESS.match(text) if whole else None
    if m:
        return _Found(LogLine(number, source, ProcessKey(node, "", -1), Level(m["level"]), text[m.end():].rstrip(), None,
                              m["where"] or ""), "", -1)
    return _other(number, source, node, Level.DAMAGED if whole and _LOOKS.search(text) else Level.OTHER, text)


def _settled(found: Iterable[_Found], node: str) -> Iterator[LogLine]:
    """Hosts without what another writer had glued to them: `-1vm:1974` is process 1974 of vm when vm has one."""
    known = list(found)
    count = Counter((f.host, f.pid) for f in known if f.pid >= 0)
    for f in known:
        host = f.host
        for at in range(1, min(len(f.host), GLUED)):
            rest = f.host[at:]
            if count.get((rest, f.pid), 0) >= count[f.host, f.pid] and _ROW.fullmatch(f.host[:at]):
                host = rest
                break
        yield f.line if host == f.host else replace(f.line, process=ProcessKey(node or host, host, f.pid))
