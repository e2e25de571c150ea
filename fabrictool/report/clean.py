"""Making text of nodes safe to show: no control character, no direction override, no stray byte reaches a terminal or a file."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable

from fabrictool.model import Step, WriteFile

# Cc control, Cf format (bidi overrides, zero width), Cs surrogates (bytes that were not UTF-8), Zl Zp line ends, Co Cn others.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Cn"})
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_PRINTABLE_ASCII = re.compile(r"[ -~]*")


def _escape(ch: str) -> str:
    point = ord(ch)
    if 0xDC80 <= point <= 0xDCFF:  # surrogateescape: the byte itself
        return f"\\x{point - 0xDC00:02x}"
    if point < 0x100:
        return _SHORT.get(ch) or f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def clean(text: str) -> str:
    """`text` on one line, with everything that could move a cursor or hide something written as an escape."""
    if _PRINTABLE_ASCII.fullmatch(text):
        return text
    return "".join(_escape(ch) if unicodedata.category(ch) in _UNSAFE else ch for ch in text)


def no_surrogates(text: str) -> str:
    """For JSON: bytes that were not UTF-8 as `\\xNN`, all else as it is."""
    return "".join(_escape(ch) if "\ud800" <= ch <= "\udfff" else ch for ch in text)


def excerpt(text: str, limit: int) -> str:
    """At most `limit` characters; says how many are left out. Node output can be megabytes."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} more characters)"


def _word(word: str) -> str:
    """One shell word. With control characters in it: bash's $'...', which says exactly the same bytes and is safe to show."""
    if clean(word) == word:
        return shlex.quote(word)
    raw = word.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\x{b:02x}" for b in raw) + "'"


def argv_line(argv: Iterable[str]) -> str:
    """The command exactly as it runs, quoted for a shell."""
    return " ".join(_word(w) for w in argv)


def step_line(step: Step) -> str:
    """A step on one line."""
    if isinstance(step, WriteFile):
        size = len(step.text.encode("utf-8", "surrogateescape"))
        return f"write {_word(step.path)} (mode {step.mode:04o}, {size} bytes)"
    return argv_line(step.argv)


def scrubbed(text: str) -> str:
    """Without secrets. The same rule as for bundles."""
    from fabrictool.snapshot import scrub

    return scrub.text(text)
