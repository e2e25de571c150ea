"""From text to lines: terminal colours, carriage returns, odd blanks and Markdown fences taken away."""

from __future__ import annotations

import re

from fabrictool.snapshot.sniff.model import Line

# CSI, OSC (title, hyperlink), charset choice, then any other two-byte escape (ECMA-48).
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[()*+][A-Za-z0-9]|\x1b[ -~]|\x9b[0-?]*[ -/]*[@-~]")
_BARE_COLOUR = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,5}m")  # where a program dropped the escape character itself
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u200b\ufeff]")
FENCE = re.compile(r"\s{0,8}(?:```|~~~)[\w+. -]{0,40}")


def lines(text: str) -> tuple[Line, ...]:
    """All lines, numbered as an editor counts them. A carriage return inside a line starts another one of the same number (progress
    bars), and a file without any newline is split at them."""
    ends = "\r" if "\n" not in text and "\r" in text else "\n"
    out = []
    for number, raw in enumerate(text.split(ends), 1):
        line = raw.rstrip("\r")
        parts = [p for p in line.split("\r") if p.strip()] if "\r" in line else [line]
        out += [Line(number, _plain(part)) for part in parts or [""]]
    if out and not out[-1].text:
        out.pop()
    return tuple(out)


def _plain(line: str) -> str:
    if line.isascii() and line.isprintable() and "[" not in line:
        return line
    if "\x1b" in line or "\x9b" in line:
        line = _ESCAPE.sub("", line)
    if "[0m" in line:
        line = _BARE_COLOUR.sub("", line)
    line = line.replace("\u00a0", " ").replace("\u202f", " ")
    return _CONTROL.sub("", line)
