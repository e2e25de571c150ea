"""The frame in which a snapshot travels, and its reader. The writer is `fabrictool/node/collect.sh`.

Pure ASCII, because one byte that is not UTF-8 silently cuts what pyinfra reads:

    FABRICTOOL-FRAME 1 gzip-b64 | gzip-hex | plain
    PAYLOAD                                         (gzip'ed and encoded, or as it is)
    FABRICTOOL-END 1 CHARACTERS CKSUM|-

The payload is one header, one record per section and item, and an end line:

    fabrictool-snapshot 1 b64|hex|none RECORDS UID SSH|- FLAG
    S NUMBER NAME -|=ITEM|~ENCODED LIMIT -|sudo|denied|stuck|late|held
    E RC MS
    encoded stderr
    O
    encoded stdout
    .
    end RECORDS

A stream is encoded as the header says, or by `od -t x1`: then every line of it begins with a space, which base64 does not know.

Whatever is missing, doubled or not understood makes the whole snapshot unreadable: a part is never taken for the whole.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot.model import Captured, Snapshot

FORMAT = "1"
MAX_TEXT = 96 * 2**20  # characters of a frame
MAX_BODY = 64 * 2**20  # characters of the payload once unpacked
ERR_BYTES = 65_536  # stderr's limit in collect.sh

_HEAD = re.compile(r"^FABRICTOOL-FRAME (\d{1,9}) (\S{1,20})$", re.M)
_END = re.compile(r"^FABRICTOOL-END (\d{1,9}) (\d{1,12}) (\d{1,10}|-)$", re.M)
_TOP = re.compile(r"fabrictool-snapshot (\d{1,9}) (b64|hex|none) (\d{1,9}) (\d{1,10}|-) (\S+) (-|no-timeout|plain-timeout)")
_RECORD = re.compile(r"S (\d{1,9}) ([A-Za-z0-9][A-Za-z0-9_.-]*) (-|=[A-Za-z0-9_.-]+|~\S*) (\d{1,12}) (-|sudo|denied|stuck|late|held)")
_ANSWER = re.compile(r"E (\d{1,3}) (\d{1,12})")
_REFUSED = re.compile(r"^(sudo: .*(password|terminal) is required|Sorry, user .* (may not|is not allowed))", re.M)

_NOTES = {
    "no-timeout": "the node has neither `timeout` nor busybox: its commands ran without time limits",
    "plain-timeout": "the node's `timeout` is not GNU's: a command's children may outlive its time limit",
}
_WHY = {
    "stuck": "it needs root, and `sudo -n` gave no answer in 9 s; see what that reads at its start: /etc/hosts, sudoers, DNS or LDAP",
    "late": "not begun: other sections had used up the snapshot's time",
    "held": "could not be ended, or something that it started kept its output open",
}


class _Bad(Exception):
    """The frame is not whole; the message says where."""

    def __init__(self, why: str, reason: Reason = Reason.GARBLED) -> None:
        super().__init__(why)
        self.seen = Unreadable(reason, f"snapshot: {why}")


def parse(node: str, text: str | bytes, taken: str) -> Snapshot:
    """The snapshot in what the collector printed; lines before its frame (banners, .bashrc) do not matter. Never raises.

    `taken`: the workstation's UTC time, ISO 8601. Anything short of a whole frame gives a snapshot with `error`.
    """
    try:
        return replace(_body(node, _payload(text)), taken=taken)
    except _Bad as e:
        return Snapshot(node, error=e.seen, taken=taken)


def _payload(text: str | bytes) -> str:
    """The payload as text, unpacked and checked."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if len(text) > MAX_TEXT:
        raise _Bad(f"more than {MAX_TEXT} characters", Reason.CUT)
    text = text.replace("\r\n", "\n")
    heads = list(_HEAD.finditer(text))
    if not heads:
        raise _no_frame(text)
    if len(heads) > 1:
        raise _Bad("two frames in one answer")
    head = heads[0]
    ends = list(_END.finditer(text, head.end()))
    if not ends:
        raise _Bad("cut short: no end marker", Reason.CUT)
    if len(ends) > 1:
        raise _Bad("two end markers in one answer")
    end = ends[0]
    for version in (head[1], end[1]):
        if version != FORMAT:
            raise _Bad(f"frame format {version}, and this fabrictool reads {FORMAT}")
    packed = text[head.end() + 1:end.start() - 1]
    if len(packed) != int(end[2]):
        raise _Bad(f"{len(packed)} characters where {end[2]} were sent: something else wrote into the answer")
    if head[2] == "plain":
        if end[3] != "-" and int(end[3]) != cksum((packed + "\n").encode("utf-8", "surrogateescape")):
            raise _Bad("its checksum is wrong")
        return packed
    if head[2] not in ("gzip-b64", "gzip-hex"):
        raise _Bad(f"unknown packing {head[2]!r}")
    return _unpack(_decode(packed.split("\n"), head[2].removeprefix("gzip-")))


def _no_frame(text: str) -> _Bad:
    lines = [ln.strip() for ln in text.splitlines() if ln.strip()]
    if not lines:
        return _Bad("no answer", Reason.EMPTY)
    if "FABRICTOOL-FRAME 1 gzip-hex".startswith(lines[-1]) or lines[-1].startswith("FABRICTOOL-FRAME"):
        return _Bad("cut short in its first line", Reason.CUT)
    said = "".join(c if c.isprintable() else "?" for c in lines[-1][:200])
    return _Bad(f"no frame in the answer; its last line: {said}")


def _unpack(data: bytes) -> str:
    """gunzip, at most `MAX_BODY` bytes."""
    gz = zlib.decompressobj(wbits=31)
    try:
        body = gz.decompress(data, MAX_BODY + 1)
    except zlib.error as e:
        raise _Bad(f"does not unpack: {e}") from None
    if len(body) > MAX_BODY:
        raise _Bad(f"unpacks to more than {MAX_BODY} bytes", Reason.CUT)
    if not gz.eof or gz.unused_data:
        raise _Bad("does not unpack: not one whole gzip member")
    try:
        return body.decode("ascii").removesuffix("\n")
    except UnicodeDecodeError:
        raise _Bad("its payload is not ASCII") from None


def _decode(lines: list[str], form: str) -> bytes:
    """Encoded lines -> bytes. Strict: a foreign character is an error."""
    packed = "".join(lines)
    try:
        if form == "hex" or packed.startswith(" "):
            return bytes.fromhex(packed.replace(" ", ""))
        return base64.b64decode(packed, validate=True)
    except (ValueError, binascii.Error) as e:
        raise _Bad(f"not {form}: {e}") from None


def _body(node: str, body: str) -> Snapshot:
    lines = iter(body.split("\n"))
    top = _TOP.fullmatch(_next(lines))
    if not top:
        raise _Bad("its first record is not a header")
    if top[1] != FORMAT:
        raise _Bad(f"payload format {top[1]}, and this fabrictool reads {FORMAT}")
    form, count = top[2], int(top[3])
    if form == "none":
        raise _Bad("the node has no `head -c`, or none of base64, od and busybox", Reason.TOOL_MISSING)
    found: dict[int, tuple[str, Captured]] = {}
    for line in lines:
        if line == f"end {count}":
            break
        number, key, captured = _record(line, lines, form)
        if number in found:
            raise _Bad(f"record {number} twice")
        found[number] = (key, captured)
    else:
        raise _Bad("no end line")
    if any(True for _ in lines):
        raise _Bad("more lines after its end line")
    missing = [str(n) for n in range(count) if n not in found]
    if missing or len(found) != count:
        raise _Bad(f"{len(found)} of {count} records; missing: {', '.join(missing[:5])}")
    sections = {key: captured for _, (key, captured) in sorted(found.items())}
    if len(sections) != count:
        raise _Bad("a section twice")
    ssh = "" if top[5] == "-" else _text(_decode([top[5]], form))
    return Snapshot(node, sections, ssh=ssh, uid=None if top[4] == "-" else int(top[4]),
                    notes=(_NOTES[top[6]],) if top[6] in _NOTES else ())


def _record(line: str, lines: Iterator[str], form: str) -> tuple[int, str, Captured]:
    """One record that starts with `line` -> its number, key and content."""
    start = _RECORD.fullmatch(line)
    if not start:
        raise _Bad(f"a record was expected, not {line[:60]!r}")
    answer = _ANSWER.fullmatch(_next(lines))
    if not answer or int(answer[1]) > 255:
        raise _Bad(f"record {start[1]} has no exit status")
    err = _decode(_until("O", lines), form)
    out = _decode(_until(".", lines), form)
    item, limit, flag, rc = start[3], int(start[4]), start[5], int(answer[1])
    if item.startswith("~"):
        item = _text(_decode([item[1:]], form))
        if not item:
            raise _Bad(f"record {start[1]} has an empty item")
    else:
        item = item.removeprefix("=") if item != "-" else ""
    told = _WHY.get(flag) or _text(err[:ERR_BYTES])
    denied = flag == "denied" or (flag == "sudo" and rc == 1 and not out and bool(_REFUSED.search(told)))
    captured = Captured(rc, _text(out[:limit]), told, int(answer[2]), len(out) > limit, denied, len(err) > ERR_BYTES)
    return int(start[1]), f"{start[2]}[{item}]" if item else start[2], captured


def _until(mark: str, lines: Iterator[str]) -> list[str]:
    got: list[str] = []
    for line in lines:
        if line == mark:
            return got
        got.append(line)
    raise _Bad("ends inside a record")


def _next(lines: Iterator[str]) -> str:
    try:
        return next(lines)
    except StopIteration:
        raise _Bad("ends inside a record") from None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _crc_table() -> tuple[int, ...]:
    table = []
    for n in range(256):
        crc = n << 24
        for _ in range(8):
            crc = (crc << 1) ^ (0x04C11DB7 if crc & 0x80000000 else 0)
        table.append(crc & 0xFFFFFFFF)
    return tuple(table)


_TABLE = _crc_table()


def cksum(data: bytes) -> int:
    """The CRC that the POSIX utility `cksum` prints (IEEE 1003.1, cksum: polynomial 0x04C11DB7, then the length, inverted)."""
    crc = 0
    size = len(data)
    for byte in data:
        crc = ((crc << 8) & 0xFFFFFFFF) ^ _TABLE[(crc >> 24) ^ byte]
    while size:
        crc = ((crc << 8) & 0xFFFFFFFF) ^ _TABLE[(crc >> 24) ^ (size & 0xFF)]
        size >>= 8
    return crc ^ 0xFFFFFFFF
