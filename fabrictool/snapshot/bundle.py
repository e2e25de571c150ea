"""Bundles: the snapshots of a fleet in one file, for `--from` and for a ticket. Raw sections only: no verdicts, and no spec.

    meta.json                        format, tool version, time, digest of the spec, names of the nodes
    nodes/NAME/index.json            how each section ended (exit status, milliseconds, flags) and which files hold it
    nodes/NAME/SECTION[@ITEM].txt    stdout, byte for byte but for scrubbed secrets; SECTION[@ITEM].err.txt: stderr where there is any

A person may unpack it, edit a text, pack it again (`tar -czf new.tar.gz meta.json nodes`) and judge that.
The spec stays outside: what is wanted is the YAML's to say, and `spec_digest` tells whether it is the same one.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import scrub, untar
from fabrictool.snapshot.model import Captured, Snapshot
from fabrictool.snapshot.untar import BundleError

__all__ = ["Bundle", "BundleError", "Meta", "read", "write"]

FORMAT = 1
_NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}")  # spec/schema.py; so no path of its own
_STRICT = ConfigDict(extra="forbid", strict=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Meta:
    """`taken`: the workstation's UTC time, ISO 8601. `spec_digest`: of the spec that the nodes were read for."""

    tool_version: str
    taken: str
    spec_digest: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle holds; `snapshots` by node name."""

    meta: Meta
    snapshots: Mapping[str, Snapshot]


@checked(frozen=True, slots=True, config=_STRICT)
class _MetaFile:
    format: int
    tool_version: str
    taken: str
    spec_digest: str
    nodes: tuple[str, ...]


@checked(frozen=True, slots=True, config=_STRICT)
class _SectionEntry:
    """`key` is percent-encoded where it is not plain text. `err` = "" where stderr was empty."""

    key: str
    out: str
    err: str
    rc: Annotated[int, Field(ge=0, le=255)]
    ms: Annotated[int, Field(ge=0)]
    cut: bool
    denied: bool
    err_cut: bool


@checked(frozen=True, slots=True, config=_STRICT)
class _Error:
    reason: Reason
    why: str


@checked(frozen=True, slots=True, config=_STRICT)
class _NodeFile:
    node: str
    taken: str
    ssh: str
    uid: int | None
    notes: tuple[str, ...]
    error: _Error | None
    sections: tuple[_SectionEntry, ...]


def write(path: Path, snapshots: Iterable[Snapshot], meta: Meta, *, force: bool = False) -> None:
    """Write a bundle, mode 0600, whole or not at all; secrets are scrubbed here. The same input gives the same bytes.

    Raises BundleError for an existing file (unless `force`) or a snapshot that cannot be saved, OSError where the disk refuses.
    """
    if path.exists() and not path.is_file():
        raise BundleError(f"{path}: is a device, a pipe or a folder, and would be replaced: name a plain file")
    files: dict[str, bytes] = {}
    names: list[str] = []
    for snap in sorted(snapshots, key=lambda s: s.node):
        if not _NODE.fullmatch(snap.node) or snap.node in names:
            raise BundleError(f"{snap.node[:80]!r}: {'twice' if snap.node in names else 'no name for a node in a bundle'}")
        names.append(snap.node)
        files |= _node_files(scrub.snapshot(snap))
    files["meta.json"] = _json(asdict(_MetaFile(FORMAT, meta.tool_version, meta.taken, meta.spec_digest, tuple(names))))
    untar.within_limits(files)
    if not force and path.exists():
        raise BundleError(f"{path}: exists already")
    _put(path, _pack(files), force)


def read(path: Path) -> Bundle:
    """Read a bundle. Raises BundleError (what, where, what to do) for anything that is not a whole one."""
    try:
        files = untar.files(path)
    except OSError as e:
        raise BundleError(f"{path}: cannot be read: {e.strerror or e}") from e
    if "meta.json" not in files:
        raise BundleError(f"{path}: no meta.json at its top: not a bundle, or packed from outside its folder"
                          " (inside it: tar -czf NEW.tar.gz meta.json nodes)")
    meta = _checked(TypeAdapter(_MetaFile), files.pop("meta.json"), path, "meta.json")
    if meta.format != FORMAT:
        raise BundleError(f"{path}: bundle format {meta.format}, and this fabrictool reads {FORMAT}: use the one that wrote it"
                          f" ({meta.tool_version[:40]})")
    snapshots: dict[str, Snapshot] = {}
    for name in meta.nodes:
        if not _NODE.fullmatch(name) or name in snapshots:
            raise BundleError(f"{path}: meta.json: node {name[:80]!r}: {'twice' if name in snapshots else 'not a name'}")
        snapshots[name] = _node(path, name, files)
    if files:
        raise BundleError(f"{path}: {min(files)[:200]}: in no index: remove it, or list it")
    return Bundle(Meta(meta.tool_version, meta.taken, meta.spec_digest), snapshots)


def _node_files(snap: Snapshot) -> dict[str, bytes]:
    folder = f"nodes/{snap.node}"
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
        entries.append(_SectionEntry(_plain(key, " []@:,+=()"), out, err, got.rc, got.ms, got.cut, got.denied, got.err_cut))
    error = _Error(snap.error.reason, _utf8(scrub.text(snap.error.why))) if snap.error else None
    index = _NodeFile(snap.node, snap.taken, _utf8(snap.ssh), snap.uid, tuple(map(_utf8, snap.notes)), error, tuple(entries))
    files[f"{folder}/index.json"] = _json(asdict(index))
    return files


def _node(path: Path, name: str, files: dict[str, bytes]) -> Snapshot:
    """The node's snapshot; what it uses is taken out of `files`."""
    folder = f"nodes/{name}"

    def take(file: str) -> bytes:
        try:
            return files.pop(f"{folder}/{file}")
        except KeyError:
            raise BundleError(f"{path}: {folder}/{file[:200]}: missing, or used twice") from None

    index = _checked(TypeAdapter(_NodeFile), take("index.json"), path, f"{folder}/index.json")
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


def _checked(adapter: TypeAdapter[T], text: bytes, path: Path, file: str) -> T:
    try:
        return adapter.validate_json(text)
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{path}: {file}: {f'{where[:80]}: ' if where else ''}{first['msg']}") from None


def _plain(text: str, safe: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), safe)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")


def _pack(files: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(files[name]), 0o600
            tar.addfile(info, io.BytesIO(files[name]))
    return gzip.compress(raw.getvalue(), 6, mtime=0)


def _put(path: Path, data: bytes, force: bool) -> None:
    """Temp + fsync + rename; without `force` a file that appeared meanwhile wins."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temp = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if force:
            temp.replace(path)
            return
        try:
            os.link(temp, path)
        except FileExistsError:
            raise BundleError(f"{path}: exists already") from None
        except OSError:  # a file system without hard links
            if path.exists():
                raise BundleError(f"{path}: exists already") from None
            temp.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temp.unlink()
