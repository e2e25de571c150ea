"""A node's files in a folder of this machine, and the views that sections give of them. Nothing here is shared with the rooms: a
section's globs are read out of its own shell text, expanded here, and printed as the text's own commands print them."""

from __future__ import annotations

import functools
import glob
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

KERNEL = {"/proc/sys/kernel/ostype": "Linux\n"}
SECRET = re.compile(r"psk|password|secret|private|wep-key|\bpin\b|\bkey\s*:")  # what the sections blank: the tests have none


class Root:
    """The tree below `top`. Paths are the node's own, absolute."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def clear(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir(parents=True)

    def at(self, path: str) -> Path:
        return Path(f"{self.top}{path}")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        target = self.at(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
        target.chmod(mode)

    def read(self, path: str) -> str | None:
        target = self.at(path)
        return target.read_bytes().decode("utf-8", "surrogateescape") if target.is_file() else None

    def mode(self, path: str) -> int:
        return self.at(path).stat().st_mode & 0o7777

    def link(self, path: str, target: str) -> None:
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).symlink_to(target)

    def expand(self, pattern: str) -> list[str]:
        """As a POSIX shell does: sorted; a pattern that fits nothing stays as it is."""
        if not set(pattern) & set("*?"):
            return [pattern]
        found = sorted(glob.glob(f"{self.top}{pattern}"))
        return [f[len(str(self.top)):] for f in found] or [pattern]

    def everything(self) -> dict[str, tuple[str, int]]:
        """Path -> (text or link target, mode) of all below /etc, /usr and /var; /run is not kept over a boot."""
        out: dict[str, tuple[str, int]] = {}
        for folder, _, names in os.walk(self.top):
            for name in names:
                path = os.path.join(folder, name)
                mine = path[len(str(self.top)):]
                if mine.startswith("/run/"):
                    continue
                if os.path.islink(path):
                    out[mine] = (os.readlink(path).removeprefix(str(self.top)), 0)
                else:
                    out[mine] = (self.read(mine) or "", self.mode(mine))
        return out


@functools.cache
def globs_of(shell: str, item: str) -> tuple[str, ...] | None:
    """The words of the section's `for p in ...` or `grep -sH ''`; None for other texts."""
    found = re.search(r"^for p in (.*?); do", shell, re.M) or re.match(r"grep -sH '' (.*) </dev/null; true$", shell)
    return tuple(shlex.split(found[1].replace('"$1"', item))) if found else None


def show_files(root: Root, globs: tuple[str, ...], as_root: bool) -> str:
    """`@ file MODE BYTES PATH`, the bytes, a newline. All files are root's: without root only those that all may read."""
    out = ""
    for path in (p for g in globs for p in root.expand(g)):
        text, mode = KERNEL.get(path), 0o444
        if text is None and root.at(path).is_symlink() and not root.at(path).exists():
            out += f"@ dangling - - {path}\n"
            continue
        if text is None:
            text = root.read(path)
            if text is None:
                continue
            mode = root.mode(path)
            if not (as_root or mode & 0o004):
                out += f"@ denied - - {path}\n"
                continue
        out += f"@ file {mode:o}:0 {len(text.encode('utf-8', 'surrogateescape'))} {path}\n{text}\n"
    return out


def show_blanked(root: Root, globs: tuple[str, ...], as_root: bool) -> str:
    text = show_files(root, globs, as_root)
    assert not SECRET.search(text), "these files hold nothing that sed would blank"
    return text


@functools.cache
def matcher(globs: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all: `*` and `?` never cross a slash, and no name that begins with a dot fits."""
    words = ("".join("[^/]*" if c == "*" else "[^/]" if c == "?" else re.escape(c) for c in g) for g in globs)
    return re.compile("|".join(words))


def show_sysfs(entries: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    """`grep -sH ''`: every line with its path; an empty file has none. What lies in /proc/sys/kernel comes last, as in all sections."""
    return "".join(_lines(entries, pattern))


def _lines(entries: Mapping[str, str], pattern: re.Pattern[str]) -> Iterator[str]:
    for path, text in (*entries.items(), *KERNEL.items()):
        if text and pattern.fullmatch(path):
            yield from (f"{path}:{line}\n" for line in text.split("\n")[:-1])
