"""Text of several writers as pieces of one: without tags, prefixes, colours, and without the log lines of NCCL that land inside it.

A piece is what one writer put down in one go. A line is one piece, unless a launcher's tag or a log line stands in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

HOST_CHARACTERS = 255  # RFC 1035
LONGEST = 16_384  # characters; NCCL's longest line (Trees of 64 channels) has about 4,000

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]")
# Open MPI 4 `[1,0]<stdout>:`, 5 `[prterun-node-17@1,0]<stdout>:` and its detailed form; also without what follows the bracket.
_RANK = r"\[(?:[^\]\s@]{1,120}@)?([0-9]{1,6},[0-9]{1,6})\](?:\[[^\]\s]{1,120}\])?(?:<std(?:out|err|diag)>:?)?"
_TAG = re.compile(rf"{_RANK}|\[([0-9]{{1,6}})\]<std(?:out|err)>:")
_STREAM = re.compile("|".join((
    _RANK,
    r"\[([0-9]{1,6})\](?:<std(?:out|err)>:|(?=[ \t]))",  # Hydra -prepend-rank, prterun --output rank
    r"[ ]{0,6}([0-9]{1,6}:)(?=[ \t]|$)",  # srun -l
    r"(\[pod/[^\]\s]{1,253}\])[ ]",  # kubectl logs --prefix
    r"([A-Za-z0-9][A-Za-z0-9_.-]{0,80}) +\| ",  # docker compose logs
)))
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 0-9][0-9]"
_PREFIX = re.compile("|".join((
    rf"\[?[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?\]?(?:[ \t](?:stdout|stderr) [FP])?[ \t]",
    rf"{_MONTH} {_CLOCK} [A-Za-z0-9_.-]{{1,64}} [A-Za-z0-9_.@/-]{{1,64}}(?:\[[0-9]{{1,10}}\])?: ",  # journalctl, syslog
    rf"(?:[A-Z][a-z]{{2}} )?{_MONTH} {_CLOCK}(?: [0-9]{{4}})?(?:[ \t]|(?=[\[<]|$))",  # ts, mpirun --timestamp-output
    rf"\[?{_CLOCK}\]?[ \t]",
    r"<std(?:out|err)>:",
    r"[0-9]{1,7}:(?=#|[A-Za-z])",  # grep -n
    r"> ",
)))
_STAMP = re.compile(r"\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?:\.[0-9]{1,9})?\] $")
_LOG = re.compile(r":[0-9]{1,10}:[0-9]{1,10} (?:\[-?[0-9]{1,4}\] )?(?:\S{1,200} (?:\([^)\s]{1,100}\) )?)?"
                  r"NCCL (?:INFO|WARN|TRACE|CALL|ABORT|VERSION|ERROR)\b")
_IN_HOST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_WHOLE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?|N/A")
_DEVICE = re.compile(r"# +Rank .{0,60}? on +([A-Za-z0-9_.-]{1,255}) +device ")


@dataclass(frozen=True, slots=True)
class Piece:
    """`line`: 1-based. `stream`: what tells its writer from others ("" = no tag). `log`: a log line of NCCL followed and was taken off
    (alone: nothing is left). `torn`: where the log line began cannot be told, so the end of `text` is not to be trusted."""

    line: int
    stream: str
    text: str
    log: bool = False
    torn: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """Every piece, in order. Lines that are longer than `LONGEST` are left out."""
    known = frozenset(_hosts(text))
    for number, raw in enumerate(text.split("\n"), 1):
        if len(raw) > LONGEST:
            continue
        line = raw.rstrip("\r")
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        stream, rest = _unprefixed(line)
        start = 0
        for tag in _TAG.finditer(rest):
            yield _unlogged(number, stream, rest[start:tag.start()], known)
            stream, start = tag[1] or tag[2], tag.end()
        yield _unlogged(number, stream, rest[start:], known)


def _unprefixed(line: str) -> tuple[str, str]:
    """The writer's tag, and the line without what launchers, log readers and people put before it."""
    stream = ""
    for _ in range(5):  # as many as kubectl, a time, mpirun and two more would put
        if not line or (line[0] in "# \t" and not line.lstrip(" ")[:1].isdigit()):
            break
        m = _STREAM.match(line)
        if m and m.end():
            stream = stream + next(g for g in m.groups() if g)
            line = line[m.end():]
            continue
        m = _PREFIX.match(line)
        if not m:
            break
        line = line[m.end():]
    return stream, line


def _hosts(text: str) -> Iterator[str]:
    """Hosts in the list of devices, and of log lines that begin a line: there nothing can be glued to them."""
    for line in text.split("\n"):
        if len(line) > LONGEST:
            continue
        if " NCCL " in line:
            _, rest = _unprefixed(_ANSI.sub("", line) if "\x1b" in line else line)
            m = _LOG.search(rest)
            if m and 0 < m.start() <= HOST_CHARACTERS and set(rest[:m.start()]) <= _IN_HOST:
                yield rest[:m.start()]
        elif "Rank " in line:
            device = _DEVICE.search(line)
            if device:
                yield device[1].partition(".")[0]


def _unlogged(number: int, stream: str, text: str, known: frozenset[str]) -> Piece:
    m = _LOG.search(text) if " NCCL " in text else None
    if m is None:
        return Piece(number, stream, text)
    at = m.start()
    while at > 0 and m.start() - at < HOST_CHARACTERS and text[at - 1] in _IN_HOST:
        at -= 1
    before, word = text[:at], text[at:m.start()]
    stamp = _STAMP.search(before)
    if stamp:
        return Piece(number, stream, before[:stamp.start()], log=True)
    if not before.strip():
        # Alone on its line, or glued to the only word: a row's later writes have four words, so a lone one is a host.
        return Piece(number, stream, "", log=True)
    kept = _left_of_host(word, known)
    return Piece(number, stream, before + (kept or ""), log=True, torn=kept is None)


def _left_of_host(word: str, known: frozenset[str]) -> str | None:
    """`-1node-a` -> `-1`: what a row printed right before a log line. None = no reading, or more than one: a host may begin with a
    digit, so only hosts that the text names elsewhere count."""
    readings = {left for h in known if word.endswith(h) and (not (left := word[:-len(h)]) or _WHOLE.fullmatch(left))}
    return readings.pop() if len(readings) == 1 else None
