"""Lines of a kernel log in every form in which they are met, as (when, message). Never raises; what is no kernel line is left out.

    [12345.678901] TEXT                       dmesg; with `<6>`, `[T123]` (CONFIG_PRINTK_CALLER) or `kern  :info  :` (-x) before TEXT
    [12345.678] TEXT                          the same, shortened by whoever passed it on
    [12345.678901 <    0.000012>] TEXT        dmesg -d; also with -T
    [  +0.000012] TEXT, [Aug 1 10:00] TEXT    dmesg -H and -e: when the line before came, and the minute where it changes
    [Sat Aug  1 10:00:00 2026] TEXT           dmesg -T
    2026-08-01T10:00:00,123456+02:00 TEXT     dmesg --time-format iso
    2026-08-01T10:00:00+0200 HOST kernel: TEXT     journalctl -o short-iso; with a fraction: short-iso-precise, rsyslog
    Aug 01 10:00:00 HOST kernel: TEXT         journalctl, syslog
    {"MESSAGE": "TEXT", ...}                  journalctl -o json
    6,1234,5678901,-;TEXT                     /dev/kmsg
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime

LONGEST = 4096  # characters of a line: the kernel's own records end at 1024 (LOG_LINE_MAX), journald's at 48 KiB
MOST = 200_000  # lines

_ANSI = re.compile(r"\x1b\[[0-9;]{0,16}m")
_DMESG_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d),(\d{1,9})([+-]\d\d:?\d\d|Z) ?")
_LOG_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)? (?=\S)")
_SYSLOG = re.compile(r"(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})? (?=\S)")
_OWNER = re.compile(r"(?:\S{1,255} )?([^\s:\[\]]{1,64})(?:\[\d{1,10}\])?: ?")
_SINCE = r"(?: <[ +]{0,9}\d{1,9}\.\d{1,9}>)?"
_UPTIME = re.compile(rf"(?:<\d{{1,3}}>)?\[ {{0,8}}(\d{{1,10}}\.\d{{1,9}}){_SINCE}\] ?(?:\[ {{0,8}}[TC]?\d{{1,10}}\] ?)?")
_DATED = re.compile(rf"\[(?:[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d \d{{4}}{_SINCE}"
                    r"|[A-Z][a-z]{2} {0,2}\d{1,2} \d\d:\d\d| {0,9}\+\d{1,9}\.\d{1,9})\] ?")
_DECODED = re.compile(r"([a-z0-9]{3,8}) {0,6}:(?:emerg|alert|crit|err|warn|notice|info|debug) {0,6}: ?")
_KMSG = re.compile(r"\d{1,4},\d{1,12},(\d{1,18}),[^;\s]{1,64};")


@dataclass(frozen=True, slots=True)
class Line:
    """`number`: from 1, in the text as given. `at`: seconds since 1970 as the log says it (None: it says no date and zone); `up`: seconds
    after boot. `raw`: the line itself, for evidence."""

    number: int
    text: str
    at: float | None = None
    up: float | None = None
    raw: str = ""


def lines(text: str) -> tuple[Line, ...]:
    """The kernel's lines. A line without any stamp counts only where no line has one: beside stamped ones it is a program's."""
    found: list[Line] = []
    plain: list[Line] = []
    for number, raw in enumerate(text.split("\n")[:MOST], 1):
        row = raw.rstrip("\r")
        if not row.strip() or len(row) > 16 * LONGEST:
            continue
        row = _ANSI.sub("", row) if "\x1b" in row else row
        got = _json(number, row) if row.startswith("{") else _stamped(number, row)
        if isinstance(got, Line):
            found.append(got)
        elif got is None:
            plain.append(Line(number, row[:LONGEST], raw=row[:LONGEST]))
    return tuple(found or plain)


def _stamped(number: int, row: str) -> Line | bool | None:
    """None: no stamp. False: stamped, and not the kernel's."""
    raw = row[:LONGEST]
    decoded = _DECODED.match(row)
    if decoded:
        if decoded[1] != "kern":
            return False
        row = row[decoded.end():]
    at: float | None = None
    iso = _DMESG_ISO.match(row)
    if iso:
        return Line(number, row[iso.end():][:LONGEST], _seconds(iso[1], iso[2], iso[3]), raw=raw)
    for head in (_LOG_ISO, _SYSLOG):
        m = head.match(row)
        if m:
            owner = _OWNER.match(row, m.end())
            if owner is None or owner[1] != "kernel":
                return False
            if head is _LOG_ISO and m[3]:
                at = _seconds(m[1], m[2] or "0", m[3])
            rest = row[owner.end():]
            return Line(number, _after_uptime(rest)[0], at, _after_uptime(rest)[1], raw)
    m = _DATED.match(row)
    if m:
        return Line(number, row[m.end():][:LONGEST], raw=raw)
    m = _KMSG.match(row)
    if m:
        return Line(number, row[m.end():][:LONGEST], up=int(m[1]) / 1e6, raw=raw)
    rest, up = _after_uptime(row)
    if up is not None:
        return Line(number, rest, up=up, raw=raw)
    return Line(number, row[:LONGEST], raw=raw) if decoded else None


def _after_uptime(row: str) -> tuple[str, float | None]:
    m = _UPTIME.match(row)
    return (row[m.end():][:LONGEST], float(m[1])) if m else (row[:LONGEST], None)


def _seconds(stamp: str, fraction: str, zone: str) -> float | None:
    """A date that no calendar has is none."""
    zone = "+00:00" if zone == "Z" else zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
    try:
        return datetime.fromisoformat(f"{stamp.replace(' ', 'T')}{zone}").timestamp() + float(f"0.{fraction}")
    except (ValueError, OverflowError):
        return None


def _json(number: int, row: str) -> Line | bool:
    """One object of `journalctl -o json`. A message with bytes that are no text comes as a list of numbers."""
    try:
        got = json.loads(row)
    except (ValueError, RecursionError):
        return False
    if not isinstance(got, dict):
        return False
    message = got.get("MESSAGE")
    if isinstance(message, list):
        small = [n for n in message[:LONGEST] if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 256]
        message = bytes(small).decode("utf-8", "surrogateescape")
    if not isinstance(message, str) or "kernel" not in (got.get("_TRANSPORT"), got.get("SYSLOG_IDENTIFIER")):
        return False
    if got.get("_TRANSPORT", "kernel") != "kernel":
        return False  # a program that calls itself kernel
    return Line(number, message[:LONGEST], _micro(got.get("__REALTIME_TIMESTAMP")), _micro(got.get("_SOURCE_MONOTONIC_TIMESTAMP")),
                message[:LONGEST])


def _micro(value: object) -> float | None:
    text = str(value)
    return int(text) / 1e6 if text.isascii() and text.isdigit() and len(text) <= 18 else None
