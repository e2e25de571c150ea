"""The snapshot of one node, and the only ways to read it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value


@dataclass(frozen=True, slots=True)
class Captured:
    """What one section gave. `rc`: exit status (124/137 = its time limit); `ms`: milliseconds; `cut`: stdout passed its size
    limit; `denied`: needed root and sudo refused, so it never ran; `err_cut`: stderr passed 64 KiB. Bytes that are not UTF-8 are
    kept as surrogate escapes."""

    rc: int
    out: str
    err: str = ""
    ms: int = 0
    cut: bool = False
    denied: bool = False
    err_cut: bool = False

    @property
    def tail(self) -> str:
        """The last telling line, for people."""
        for text in (self.err, self.out):
            lines = [ln.strip() for ln in text.splitlines() if ln.strip()]
            if lines:
                return lines[-1][:200]
        return ""


@dataclass(frozen=True, slots=True)
class FileText:
    """A whole file as it lay on the node. `uid`: its owner's number (None: not told). `mounted`: it is a mount point of its own, as a
    bind mount makes it: then no rename can replace it."""

    path: str
    text: str
    mode: int | None = None
    uid: int | None = None
    mounted: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Raw sections by key: `name`, or `name[item]` for repeated ones. `error` = no sections could be had at all.

    `taken` is the workstation's UTC time (ISO 8601). `ssh` is the node's own `SSH_CONNECTION` ("client port server port").
    `uid`: the login user's number (0 = root). `notes`: what a person should know about how it was collected.
    """

    node: str
    sections: Mapping[str, Captured] = field(default_factory=dict)
    error: Unreadable | None = None
    taken: str = ""
    ssh: str = ""
    uid: int | None = None
    notes: tuple[str, ...] = ()

    def merged(self, newer: Snapshot, asked: Iterable[str] = ()) -> Snapshot:
        """This snapshot with the sections that `newer` has, for a re-read of only some rooms.

        `asked`: names of the sections that `newer` was taken with. All items of such a section are replaced together: an
        interface that is gone is gone. A `newer` that could not be had replaces everything by its error.
        """
        if newer.error or self.error:
            return newer
        again = {key.partition("[")[0] for key in newer.sections} | set(asked)
        kept = {key: got for key, got in self.sections.items() if key.partition("[")[0] not in again}
        return replace(newer, sections={**kept, **newer.sections})

    def raw(self, name: str, item: str = "") -> Captured | Unreadable:
        """The section as captured, whatever its exit status; Unreadable when it never ran to an end of its own."""
        if self.error:
            return self.error
        key = f"{name}[{item}]" if item else name
        got = self.sections.get(key)
        if got is None:
            return Unreadable(Reason.NOT_COLLECTED, f"{key}: not in this snapshot")
        if got.denied:
            return Unreadable(Reason.NEEDS_ROOT, f"{key}: needs root, and sudo asks for a password or refuses")
        if got.rc in (124, 137):
            return Unreadable(Reason.TIMEOUT, f"{key}: no answer within its time limit" + (f" ({got.tail})" if got.tail else ""))
        if got.rc in (126, 127):
            return Unreadable(Reason.TOOL_MISSING, f"{key}: {got.tail or 'not found'}")
        if got.cut:
            return Unreadable(Reason.CUT, f"{key}: more output than its size limit")
        return got

    def text(self, name: str, item: str = "") -> Value[str] | Unreadable:
        """Stdout of a section that exited 0 and said something."""
        got = self.raw(name, item)
        if isinstance(got, Unreadable):
            return got
        key = f"{name}[{item}]" if item else name
        if got.rc != 0:
            return Unreadable(Reason.FAILED, f"{key}: exit status {got.rc}: {got.tail or 'no message'}")
        if not got.out.strip():
            return Unreadable(Reason.EMPTY, f"{key}: empty answer")
        return Value(got.out)

    def items(self, name: str) -> tuple[str, ...]:
        """The items a repeated section was collected for."""
        head = f"{name}["
        return tuple(k[len(head):-1] for k in self.sections if k.startswith(head) and k.endswith("]"))

    def _whole(self, name: str, item: str) -> str | Unreadable:
        """Stdout of a section whose text ends in `true`: any other exit status means that it did not reach its end."""
        got = self.raw(name, item)
        if isinstance(got, Unreadable):
            return got
        if got.rc != 0:
            key = f"{name}[{item}]" if item else name
            return Unreadable(Reason.FAILED, f"{key}: exit status {got.rc}: {got.tail or 'no message'}")
        return got.out

    def sysfs(self, name: str, item: str = "") -> Mapping[str, str] | Unreadable:
        """path -> content of a `sysfs` section; multi-line files keep their newlines. No line = no entry."""
        text = self._whole(name, item)
        if isinstance(text, Unreadable):
            return text
        out: dict[str, str] = {}
        for line in text.replace("\r\n", "\n").split("\n"):
            path, colon, content = line.partition(":")
            if colon and path.startswith("/"):
                out[path] = f"{out[path]}\n{content}" if path in out else content
        return out

    def links(self, name: str, item: str = "") -> Mapping[str, str] | Unreadable:
        """path -> resolved target of a `links` section."""
        text = self._whole(name, item)
        if isinstance(text, Unreadable):
            return text
        pairs = (line.partition(" -> ") for line in text.replace("\r\n", "\n").split("\n"))
        return {path: target for path, arrow, target in pairs if arrow and target}

    def files(self, name: str) -> Mapping[str, Observed[FileText]] | Unreadable:
        """path -> file of a `files` section. A path that is not a key is absent (see `file`); a key may be a glob whose directory
        could not be listed."""
        text = self._whole(name, "")
        return text if isinstance(text, Unreadable) else parse_files(text)

    def file(self, name: str, path: str) -> Observed[FileText]:
        """One file of a `files` section. Absent only when the node could have seen it."""
        got = self.files(name)
        if isinstance(got, Unreadable):
            return got
        if path in got:
            return got[path]
        if BROKEN in got:
            return Unreadable(Reason.CUT, f"{path}: the list of files is broken before it")
        for glob, seen in got.items():
            if isinstance(seen, Unreadable) and ("*" in glob or "?" in glob) and fnmatchcase(path, glob):
                return Unreadable(seen.reason, f"{path}: {glob} could not be listed")
        return Absent(path)


BROKEN = ""  # the key under which `parse_files` says that the stream could not be followed to its end


def parse_files(out: str) -> Mapping[str, Observed[FileText]]:
    """A `files` section: `@ file MODE[:UID][:mount] BYTES PATH`, so many bytes, a newline; or `@ denied|failed|dangling - - PATH`.

    Where the stream breaks, the entry `BROKEN` is unreadable: nothing is known of the files after it.
    """
    data = out.encode("utf-8", "surrogateescape")
    found: dict[str, Observed[FileText]] = {}
    broken = Unreadable(Reason.CUT, "the list of files is broken")
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        head = data[at:max(end, at)].decode("utf-8", "surrogateescape").removesuffix("\r").split(" ", 4)
        if end < 0 or len(head) != 5 or head[0] != "@" or not head[4].startswith("/"):
            found[BROKEN] = broken
            break
        at = end + 1
        kind, mode, size, path = head[1:]
        if kind in ("dangling", "denied", "failed"):
            kinds: dict[str, Observed[FileText]] = {
                "dangling": Absent(f"{path} (a symbolic link to nothing)"),
                "denied": Unreadable(Reason.NEEDS_ROOT, f"{path}: permission denied"),
                "failed": Unreadable(Reason.FAILED, f"{path}: could not be read, or is no plain file"),
            }
            found[path] = kinds[kind]
            continue
        want = int(size) if kind == "file" and size.isascii() and size.isdigit() and len(size) < 13 else -1
        body = data[at:at + want] if want >= 0 else b""
        rest = data[at + want:at + want + 3]
        # A file that shrank while it was read would swallow the next entry.
        if want < 0 or len(body) != want or rest[:1] != b"\n" or rest not in (b"\n", b"\n@ "):
            found[path] = Unreadable(Reason.CUT, f"{path}: cut short")
            found[BROKEN] = broken
            break
        at += want + 1
        found[path] = Value(FileText(path, body.decode("utf-8", "surrogateescape"), *_marks(mode)))
    return found


def _marks(word: str) -> tuple[int | None, int | None, bool]:
    """`644:0:mount` -> mode, owner, whether something is mounted on the file. What the node could not tell is None."""
    mode, *rest = word.split(":")
    octal = int(mode, 8) if re.fullmatch(r"[0-7]{1,6}", mode) else None
    uid = next((int(r) for r in rest if re.fullmatch(r"[0-9]{1,10}", r)), None)
    return octal, uid, "mount" in rest
