"""Reading a spec file: bytes to a marked tree, with clear errors for files that are no spec at all."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from fabrictool.spec.compose import compose
from fabrictool.spec.problems import Mark, Problem, SpecError, error
from fabrictool.spec.tree import Map, kind

START = "`fabrictool init FILE` writes a spec to start from"
MAX_BYTES = 1 << 20  # a spec of 4096 nodes, each with its own lines, has a quarter of this


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as read. `tree` is None when nothing can be made of it; then `problems` says why."""

    path: Path
    digest: str  # sha256 of the file's bytes
    tree: Map | None
    problems: tuple[Problem, ...]


def read_file(path: Path) -> bytes:
    """The file's bytes.

    Raises:
        SpecError: it is missing, no regular file, too large, or may not be read.
    """
    mark = Mark(os.fspath(path))
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a directory" if path.is_dir() else "not a regular file"
            raise SpecError([error(mark, f"this is {what}, not a spec", do="name the YAML file itself")])
        with path.open("rb") as f:
            raw = f.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError([error(mark, "there is no such file", do=f"check the name; {START}")]) from None
    except (OSError, ValueError) as e:
        raise SpecError([error(mark, f"cannot be read: {getattr(e, 'strerror', None) or e}")]) from None
    if len(raw) > MAX_BYTES:
        raise SpecError([error(mark, f"larger than {MAX_BYTES // 1024} KiB", "no spec is that large",
                               "check that this is the right file; use ranges such as gpu[001-512]")])
    return raw


def load(path: Path) -> Loaded:
    """The marked tree of a spec file, with every problem that the text itself has.

    Raises:
        SpecError: the file cannot be read at all.
    """
    raw = read_file(path)
    digest = hashlib.sha256(raw).hexdigest()
    name = os.fspath(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line, col = raw.count(b"\n", 0, e.start) + 1, e.start - raw.rfind(b"\n", 0, e.start)
        where = Mark(name, line, col)
        return Loaded(path, digest, None, (error(where, f"not UTF-8: byte 0x{raw[e.start]:02x}", do="save the file as UTF-8"),))
    tree, problems = compose(text, name)
    if isinstance(tree, Map):
        return Loaded(path, digest, tree, tuple(problems))
    if tree is None and not problems:
        problems = [error(Mark(name), "the file is empty", do=START)]
    elif tree is not None:
        problems = [*problems, error(tree.mark, f"a spec is a mapping (key: value), this is {kind(tree)}",
                                     do=START)]
    return Loaded(path, digest, None, tuple(problems))
