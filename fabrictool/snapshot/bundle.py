"""Bundles: the snapshots of a fleet in one file, for `--from` and for a ticket. Raw sections only: no verdicts, and no spec.

    meta.json                        format, tool version, time, digest of the spec, names of the nodes
    nodes/NAME/index.json            how each section ended (exit status, milliseconds, flags) and which files hold it
    recordings/PROBE/probe.json      what a probe says of its run; its takes lie in PROBE/MOMENT/NODE/ in the same way
    nodes/NAME/SECTION[@ITEM].txt    stdout, byte for byte but for scrubbed secrets; SECTION[@ITEM].err.txt: stderr where there is any

A person may unpack it, edit a text, pack it again (`tar -czf new.tar.gz meta.json nodes`) and judge that.
The spec stays outside: what is wanted is the YAML's to say, and `spec_digest` tells whether it is the same one.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as checked

from fabrictool.snapshot import untar
from fabrictool.snapshot.model import Snapshot
from fabrictool.snapshot.recorded import recording, recording_files
from fabrictool.snapshot.recording import Recording
from fabrictool.snapshot.saved import NODE_NAME, STRICT, checked_json, node, node_files, to_json
from fabrictool.snapshot.untar import BundleError

__all__ = ["Bundle", "BundleError", "Meta", "read", "write"]

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Meta:
    """`taken`: the workstation's UTC time, ISO 8601. `spec_digest`: of the spec that the nodes were read for."""

    tool_version: str
    taken: str
    spec_digest: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle holds; `snapshots` by node name, `recordings` by the probe's."""

    meta: Meta
    snapshots: Mapping[str, Snapshot]
    recordings: Mapping[str, Recording] = field(default_factory=dict)


@checked(frozen=True, slots=True, config=STRICT)
class _MetaFile:
    format: int
    tool_version: str
    taken: str
    spec_digest: str
    nodes: tuple[str, ...]
    probes: tuple[str, ...] = ()


def write(path: Path, snapshots: Iterable[Snapshot], meta: Meta, recordings: Iterable[Recording] = (), *, force: bool = False) -> None:
    """Write a bundle, mode 0600, whole or not at all; secrets are scrubbed here. The same input gives the same bytes.

    Raises BundleError for an existing file (unless `force`) or a snapshot that cannot be saved, OSError where the disk refuses.
    """
    if path.exists() and not path.is_file():
        raise BundleError(f"{path}: is a device, a pipe or a folder, and would be replaced: name a plain file")
    files: dict[str, bytes] = {}
    names: list[str] = []
    for snap in sorted(snapshots, key=lambda s: s.node):
        if not NODE_NAME.fullmatch(snap.node) or snap.node in names:
            raise BundleError(f"{snap.node[:80]!r}: {'twice' if snap.node in names else 'no name for a node in a bundle'}")
        names.append(snap.node)
        files |= node_files(snap, f"nodes/{snap.node}")
    probes = {r.probe: r for r in recordings}
    for _, made in sorted(probes.items()):
        files |= recording_files(made)
    head = _MetaFile(FORMAT, meta.tool_version, meta.taken, meta.spec_digest, tuple(names), tuple(sorted(probes)))
    files["meta.json"] = to_json(asdict(head))
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
    meta = checked_json(TypeAdapter(_MetaFile), files.pop("meta.json"), path, "meta.json")
    if meta.format != FORMAT:
        raise BundleError(f"{path}: bundle format {meta.format}, and this fabrictool reads {FORMAT}: use the one that wrote it"
                          f" ({meta.tool_version[:40]!r})")
    snapshots: dict[str, Snapshot] = {}
    for name in meta.nodes:
        if not NODE_NAME.fullmatch(name) or name in snapshots:
            raise BundleError(f"{path}: meta.json: node {name[:80]!r}: {'twice' if name in snapshots else 'not a name'}")
        snapshots[name] = node(path, f"nodes/{name}", name, files)
    recordings: dict[str, Recording] = {}
    for probe in meta.probes:
        if not NODE_NAME.fullmatch(probe) or probe in recordings:
            raise BundleError(f"{path}: meta.json: probe {probe[:80]!r}: {'twice' if probe in recordings else 'not a name'}")
        recordings[probe] = recording(path, probe, files)
    if files:
        raise BundleError(f"{path}: {min(files)[:200]}: in no index: remove it, or list it")
    return Bundle(Meta(meta.tool_version, meta.taken, meta.spec_digest), snapshots, recordings)


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
