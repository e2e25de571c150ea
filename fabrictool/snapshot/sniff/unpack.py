"""From bytes to text: gzip within limits, encodings, and what is no text at all."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from fabrictool.snapshot.sniff.model import Input

MAX_BYTES = 32 * 2**20  # of one input, unpacked: an NCCL log of 1,000 ranks is smaller; more is cut, and said
MAX_LINES = 300_000
_GZ = b"\x1f\x8b"
_PACKED = ((b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"PK\x03\x04", "zip"))
_ENVIRON = re.compile(rb"(?:[A-Za-z_][^=\0\n]{0,200}=[^\0]*\0)+")


@dataclass(frozen=True, slots=True)
class Refused:
    """Not text. `why` is one line for people."""

    name: str
    why: str


def decode(name: str, data: bytes) -> Input | Refused:
    """The text of one file. Bytes that are not UTF-8 become surrogate escapes. Never raises."""
    notes: list[str] = []
    for _ in range(2):  # a .gz of a .gz happens
        if not data.startswith(_GZ):
            break
        data, note = _gunzip(data)
        if note:
            notes.append(f"{name}: {note}")
        if not data:
            return Refused(name, note or "an empty gzip file")
    if len(data) > MAX_BYTES:
        data = data[:MAX_BYTES]
        notes.append(f"{name}: only the first {MAX_BYTES // 2**20} MiB were read")
    for magic, what in _PACKED:
        if data.startswith(magic):
            return Refused(name, f"packed with {what}: unpack it first")
    if data[257:262] == b"ustar":
        return Refused(name, "a tar archive: unpack it and name the folder; a bundle of `fabrictool snapshot` goes to check --from")
    text = _text(data)
    if text is None:
        return Refused(name, "no text: it holds binary data")
    if text.count("\n") > MAX_LINES:
        text = "\n".join(text.split("\n", MAX_LINES)[:MAX_LINES])
        notes.append(f"{name}: only the first {MAX_LINES} lines were read")
    return Input(name, text, tuple(notes))


def _gunzip(data: bytes) -> tuple[bytes, str]:
    """At most MAX_BYTES + 1 bytes, whatever the file claims; a damaged end leaves what came before it."""
    out = bytearray()
    rest = data
    while rest.startswith(_GZ):
        unpack = zlib.decompressobj(wbits=31)
        try:
            out += unpack.decompress(rest, MAX_BYTES + 1 - len(out))
        except zlib.error:
            return bytes(out), "a damaged gzip file: nothing after the damage was read"
        if len(out) > MAX_BYTES:
            return bytes(out), ""
        if not unpack.eof:
            return bytes(out), "a gzip file that was cut short: its end is missing"
        rest = unpack.unused_data
    return bytes(out), ""


def _text(data: bytes) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # Windows tools write UTF-16
        return data.decode("utf-16", "replace")
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if b"\0" in data:
        if _ENVIRON.fullmatch(data if data.endswith(b"\0") else data + b"\0"):  # /proc/PID/environ
            data = data.replace(b"\0", b"\n")
        elif data.count(b"\0") * 1000 > len(data) or b"\0" in data[:1024]:
            return None
        else:
            data = data.replace(b"\0", b"")  # a log file after a crash has holes
    return data.decode("utf-8", "surrogateescape")
