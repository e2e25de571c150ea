"""Reading a tar.gz that may be hostile into memory: only plain files at plain paths, within limits."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

MAX_FILE = 32 * 2**20  # bytes of one file
MAX_TOTAL = 512 * 2**20  # bytes unpacked, tar headers included: 512 nodes have about 150 MB
MAX_FILES = 200_000

_PATH = re.compile(r"[A-Za-z0-9_%@:+=,~-][A-Za-z0-9_.%@:+=,~-]*(/[A-Za-z0-9_%@:+=,~-][A-Za-z0-9_.%@:+=,~-]*){0,4}")


class BundleError(Exception):
    """Not a bundle that can be read or written; the message says what, where and what to do."""


class _Limited(io.RawIOBase):
    """A stream that refuses to give more than `MAX_TOTAL` bytes, so that no header can make a reader take more."""

    def __init__(self, inner: gzip.GzipFile) -> None:
        self.inner = inner
        self.left = MAX_TOTAL

    def read(self, size: int = -1) -> bytes:
        data = self.inner.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise BundleError(f"unpacks to more than {MAX_TOTAL // 2**20} MiB")
        return data


def files(path: Path) -> dict[str, bytes]:
    """path -> bytes of every file in a tar.gz. Raises BundleError for anything but files and folders, OSError for the disk."""
    with path.open("rb") as raw:
        try:
            with gzip.GzipFile(fileobj=raw) as unzipped:
                return _members(unzipped)
        except BundleError as e:
            raise BundleError(f"{path}: {e}") from None
        except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError) as e:
            raise BundleError(f"{path}: not a whole tar.gz file: {e}: copy it again, or take a new snapshot") from e


def _members(unzipped: gzip.GzipFile) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    stream = _Limited(unzipped)
    with tarfile.open(fileobj=stream, mode="r|", bufsize=65_536) as tar:
        for count, member in enumerate(tar):
            if count >= MAX_FILES:
                raise BundleError(f"more than {MAX_FILES} files")
            shown = repr(member.name[:200])
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():  # holes would unpack from nothing, past every limit
                raise BundleError(f"{shown}: a link, device or sparse file, not a plain one: refused")
            name = member.name.removeprefix("./")
            if len(name) > 600 or not _PATH.fullmatch(name):
                raise BundleError(f"{shown}: no path of a bundle: refused")
            if name in found:
                raise BundleError(f"{shown}: twice")
            if member.size > MAX_FILE:
                raise BundleError(f"{shown}: more than {MAX_FILE // 2**20} MiB")
            body = tar.extractfile(member)
            data = body.read() if body else b""
            if len(data) != member.size:
                raise BundleError(f"{shown}: cut short")
            found[name] = data
    while stream.read(65_536):  # to the end: only then does gzip check its sum
        pass
    return found


def within_limits(made: Mapping[str, bytes]) -> None:
    """Raises BundleError for what `files` would refuse."""
    for name, data in made.items():
        if len(data) > MAX_FILE:
            raise BundleError(f"{name}: more than {MAX_FILE // 2**20} MiB")
    if len(made) >= MAX_FILES or sum(len(d) + 1536 for d in made.values()) > MAX_TOTAL:
        raise BundleError(f"more than {MAX_FILES} files or {MAX_TOTAL // 2**20} MiB: choose fewer nodes with -l")
