"""One snapshot as files of a bundle, and back."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import scrub
from fabrictool.snapshot.model import Captured, Snapshot
from fabrictool.snapshot.untar import BundleError

NODE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}")  # spec/schema.py; so no path of its own
STRICT = ConfigDict(extra="forbid", strict=True)
T = TypeVar("T")


@checked(frozen=True, slots=True, config=STRICT)
class _Section:
    """`key` is percent-encoded where it is not plain text. `err` = "" where stderr was empty."""

    key: str
    out: str
    err: str
    rc: Annotated[int, Field(ge=0, le=255)]
    ms: Annotated[int, Field(ge=0)]
    cut: bool
    denied: bool
    err_cut: bool


@checked(frozen=True, slots=True, config=STRICT)
class Failure:
    reason: Reason
    why: str


@checked(frozen=True, slots=True, config=STRICT)
class _NodeFile:
    node: str
    taken: str
    ssh: str
    uid: int | None
    notes: tuple[str, ...]
    error: Failure | None
    sections: tuple[_Section, ...]


def node_files(snap: Snapshot, folder: str) -> dict[str, bytes]:
    """path -> bytes of a snapshot that is saved in `folder`. Secrets are scrubbed here."""
    snap = scrub.snapshot(snap)
    files: dict[str, bytes] = {}
    entries = []
    for number, (key, got) in enumerate(snap.sections.items()):
        section, bracket, item = key.partition("[")
        stem = _plain(section, "") + (f"@{_plain(item.removesuffix(']'), '')}" if bracket else "")
        taken = {f"{folder}/{stem}.txt", f"{folder}/{stem}.err.txt"} & files.keys()
        if not 0 < len(stem) <= 200 or stem.startswith(".") or taken:
            stem = f"+{number}"  # `+` is in no other stem
        out, err = f"{stem}.txt", f"{stem}.err.txt" if got.err else ""
        for file, text in ((out, got.out), (err, got.err)):
            if file:
                files[f"{folder}/{file}"] = text.encode("utf-8", "surrogateescape")
        entries.append(_Section(_plain(key, " []@:,+=()"), out, err, got.rc, got.ms, got.cut, got.denied, got.err_cut))
    error = Failure(snap.error.reason, utf8(scrub.text(snap.error.why))) if snap.error else None
    index = _NodeFile(snap.node, snap.taken, utf8(snap.ssh), snap.uid, tuple(map(utf8, snap.notes)), error, tuple(entries))
    files[f"{folder}/index.json"] = to_json(asdict(index))
    return files


def node(path: Path, folder: str, name: str, files: dict[str, bytes]) -> Snapshot:
    """The node's snapshot in `folder`; what it uses is taken out of `files`. Raises BundleError, in which `path` is named."""

    def take(file: str) -> bytes:
        try:
            return files.pop(f"{folder}/{file}")
        except KeyError:
            raise BundleError(f"{path}: {folder}/{file[:200]}: missing, or used twice") from None

    index = checked_json(TypeAdapter(_NodeFile), take("index.json"), path, f"{folder}/index.json")
    if index.node != name:
        raise BundleError(f"{path}: {folder}/index.json is about {index.node[:80]!r}")
    sections: dict[str, Captured] = {}
    for entry in index.sections:
        key = unquote_to_bytes(entry.key).decode("utf-8", "surrogateescape")
        if key in sections:
            raise BundleError(f"{path}: {folder}/index.json: section {key[:80]!r} twice")
        out, err = take(entry.out), take(entry.err) if entry.err else b""
        sections[key] = Captured(entry.rc, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"), entry.ms,
                                 entry.cut, entry.denied, entry.err_cut)
    error = Unreadable(index.error.reason, index.error.why) if index.error else None
    return Snapshot(name, sections, error, index.taken, index.ssh, index.uid, index.notes)


def checked_json(adapter: TypeAdapter[T], text: bytes, path: Path, file: str) -> T:
    """`text` as what the adapter describes; anything else is a BundleError that names the place in it."""
    try:
        return adapter.validate_json(text)
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{path}: {file}: {f'{where[:80]}: ' if where else ''}{first['msg']}") from None


def _plain(text: str, safe: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), safe)


def utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def to_json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")
