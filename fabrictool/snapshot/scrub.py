"""Secrets out of text, before it is saved or shown. Pure; used by bundles and by reports.

A value goes when its *name* says that it is secret (`HF_TOKEN=`, `"api_key": "`, `psk=`, `--password `), when its *place* does
(a URL's user:password@, an Authorization header, a PEM private key), or when its *form* does (AKIA..., ghp_..., a JWT).
Names are read in words: `MONKEY`, `TOKENIZERS_PARALLELISM` and `max_num_batched_tokens` are none. A line without a secret is never
changed, because digests of files are evidence. Doing it twice changes nothing more.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fabrictool.snapshot import secrets
from fabrictool.snapshot.model import Captured, Snapshot
from fabrictool.snapshot.secrets import MARK

__all__ = ["MARK", "captured", "snapshot", "text"]

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile(r"\s*(?:[A-Za-z0-9+/=]*|[A-Za-z-]+: .*|__scrubbed__)\s*")
_FILE = re.compile(rb"@ file (\S+) (\d{1,12}) (/[^\n]*)\n")


def text(value: str) -> str:
    """`value` without secrets; the same string when it has none. Line ends, and bytes that are not UTF-8, stay as they are."""
    out: list[str] = []
    in_key = False
    for line in value.split("\n"):
        if in_key:
            in_key = not _END.search(line) and bool(_KEY_LINE.fullmatch(line))
            if in_key:
                body = line.strip()
                out.append(line.replace(body, MARK, 1) if body else line)
                continue
        line = _key_on_line(line)
        begin = _BEGIN.search(line)
        in_key = bool(begin and not line[begin.end():].strip())
        out.append(secrets.line(line))
    return "\n".join(out)


def captured(got: Captured) -> Captured:
    """A section without secrets; in a `files` section the sizes follow."""
    return replace(got, out=_files(got.out) if got.out.startswith("@ ") else text(got.out), err=text(got.err))


def snapshot(got: Snapshot) -> Snapshot:
    """A snapshot without secrets."""
    return replace(got, sections={key: captured(c) for key, c in got.sections.items()})


def _key_on_line(line: str) -> str:
    """A private key on one line: JSON, with its line ends as `\\n`."""
    begin = _BEGIN.search(line)
    if not begin:
        return line
    end = _END.search(line, begin.end())
    stop = end.start() if end else len(line.rstrip())
    return line if line[begin.end():stop] in ("", MARK) else line[:begin.end()] + MARK + line[stop:]


def _files(out: str) -> str:
    """The stream of a `files` section (model.parse_files). One that is cut short stays cut short."""
    data = out.encode("utf-8", "surrogateescape")
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        head = _FILE.match(data, at)
        if head is None:
            end = data.find(b"\n", at) + 1 or len(data)
            parts.append(_bytes(data[at:end]))
            at = end
            continue
        size = int(head[2])
        body = data[head.end():head.end() + size]
        clean = _bytes(body)
        if len(body) < size:
            return b"".join([*parts, head[0], clean[:size - 1]]).decode("utf-8", "surrogateescape")
        parts += [head[0] if clean == body else b"@ file %s %d %s\n" % (head[1], len(clean), head[3]), clean]
        at = head.end() + size
    return b"".join(parts).decode("utf-8", "surrogateescape")


def _bytes(data: bytes) -> bytes:
    return text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
