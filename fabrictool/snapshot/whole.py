"""Telling a whole `files` section from one that was cut between two files.

A section that ends with `FILES_END`, which any Linux has, and whose answer lacks it, is incomplete: a file that is not in it may
well be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot.model import BROKEN, FileText, Snapshot

FILES_END = "/proc/sys/kernel/ostype"

Files = Mapping[str, Observed[FileText]] | Unreadable


def whole_files(snap: Snapshot, name: str) -> Files:
    """path -> file of a `files` section whose last path is `FILES_END`. Look a path up with `pick`."""
    got = snap.files(name)
    if isinstance(got, Unreadable):
        return got
    if FILES_END not in got or BROKEN in got:
        return Unreadable(Reason.CUT, f"{name}: the end is missing")
    return {path: file for path, file in got.items() if path != FILES_END}


def pick(files: Files, path: str) -> Observed[FileText]:
    """One file. Absent only where the node could have seen it (see Snapshot.file)."""
    if isinstance(files, Unreadable):
        return files
    if path in files:
        return files[path]
    for glob, seen in files.items():
        if isinstance(seen, Unreadable) and ("*" in glob or "?" in glob) and fnmatchcase(path, glob):
            return Unreadable(seen.reason, f"{path}: {glob} could not be listed")
    return Absent(path)


def pinned(file: Observed[FileText]) -> str:
    """Why the file cannot be replaced, and what a person can do; "" where it can. rename(2): EBUSY on a mount point."""
    if not isinstance(file, Value) or not file.value.mounted:
        return ""
    return (f"{file.value.path} is a mount point of its own (bind-mounted), and cannot be replaced: change it where it comes from "
            f"(`findmnt {file.value.path}`), or unmount it; then run again")
