"""Reading what is to be diagnosed: files, folders, stdin. Within limits, and never a device that would not end."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.exits import Exit, Stop
from fabrictool.snapshot.sniff import MAX_BYTES, Input, Refused, decode

MAX_FILES = 2000  # of a folder: one NCCL log for each rank of a large run
MAX_DEPTH = 8
MAX_TOTAL = 256 * 2**20  # bytes of all files, before anything is unpacked


@dataclass
class Taken:
    """What was read. `notes`: what was not, and why."""

    inputs: list[Input] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, name: str, data: bytes) -> None:
        self.size += len(data)
        got = decode(name, data)
        if isinstance(got, Refused):
            self.notes.append(f"{got.name}: skipped: {got.why}")
        else:
            if not data:
                self.notes.append(f"{got.name}: empty")
            self.inputs.append(got)
            self.notes += got.notes


def take(names: Sequence[str]) -> Taken:
    """Files, folders and `-`, each in its turn; a folder's files in the order of their paths. Raises Stop (64) for a name that is not
    there or cannot be read."""
    taken = Taken()
    for name in dict.fromkeys(names):
        if name == "-":
            taken.add("stdin", sys.stdin.buffer.read(MAX_BYTES + 1))
            continue
        if not name.strip():  # "$LOG" of an unset variable: Path("") is the folder at hand, with all that lies in it
            raise Stop(Exit.USAGE, "an empty name: name a file or a folder (`.` for this one), or - for stdin")
        path = Path(name)
        if taken.size >= MAX_TOTAL:
            taken.notes.append(f"{name}: not read: what came before it is {taken.size >> 20} MiB already")
            continue
        try:
            if path.is_dir():
                _folder(path, taken)
            else:
                with path.open("rb") as opened:
                    taken.add(name, opened.read(MAX_BYTES + 1))
        except OSError as error:
            raise Stop(Exit.USAGE, f"{name}: cannot be read: {error.strerror or error}") from error
    return taken


def _folder(path: Path, taken: Taken) -> None:
    count = 0
    for file in _files(path, taken):
        if count >= MAX_FILES or taken.size >= MAX_TOTAL:
            taken.notes.append(f"{path}: only the first {count} files were read: name the ones that matter")
            return
        count += 1
        try:
            with file.open("rb") as opened:
                taken.add(os.fspath(file), opened.read(MAX_BYTES + 1))
        except OSError as error:
            taken.notes.append(f"{file}: skipped: {error.strerror or error}")
    if not count:
        taken.notes.append(f"{path}: no file in it")


def _files(path: Path, taken: Taken) -> Iterator[Path]:
    """Plain files below a folder. Links to folders are not followed: they may lead in circles."""
    base = len(path.parts)
    for folder, below, names in os.walk(path):
        below[:] = sorted(d for d in below if not d.startswith("."))
        if len(Path(folder).parts) - base >= MAX_DEPTH and below:
            taken.notes.append(f"{folder}: deeper folders were not read")
            below.clear()
        for name in sorted(names):
            file = Path(folder) / name
            try:
                plain = stat.S_ISREG(file.stat().st_mode)
            except OSError:
                plain = False
            if plain:
                yield file
            else:
                taken.notes.append(f"{file}: skipped: no plain file")
