"""Docker's containers with their images (section `system.containers`), those that ended too."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections

_SHA = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Box:
    """`image`: as it was asked for; `image_id`: sha256 of the image; `running` as docker says."""

    id: str
    name: str
    image: str
    image_id: str
    running: bool


@dataclass(frozen=True, slots=True)
class Boxes:
    """`digests`: image id -> registry digests (sha256:...), none for an image that was built or loaded here."""

    found: tuple[Box, ...] = ()
    digests: Mapping[str, frozenset[str]] | Unreadable = field(default_factory=dict)
    partial: bool = False

    def named(self, glob: str) -> tuple[Box, ...]:
        return tuple(b for b in self.found if fnmatchcase(b.name, glob))


def read(snap: Snapshot) -> Boxes | Unreadable:
    raw = snap.raw(sections.CONTAINERS.name)
    if isinstance(raw, Unreadable):
        return raw
    text = raw.out.replace("\r\n", "\n")
    if not text.endswith("\nend\n"):
        return Unreadable(Reason.CUT, f"{sections.CONTAINERS.name}: the end is missing")
    try:
        return _parse(text.split("\n")[:-2])
    except (ValueError, IndexError) as error:
        return Unreadable(Reason.GARBLED, f"{sections.CONTAINERS.name}: {error}"[:200])


def _parse(lines: list[str]) -> Boxes | Unreadable:
    boxes: list[Box] = []
    digests: dict[str, frozenset[str]] = {}
    failed: Unreadable | None = None
    partial = False
    state, _, rest = lines[0].removeprefix("docker ").partition(" ")
    if not lines[0].startswith("docker ") or state not in ("ok", "absent", "failed"):
        raise ValueError(f"nothing said about docker: {lines[0][:60]!r}")
    if state == "failed":
        return failure("docker", rest)
    for line in lines[1:]:
        kind, _, rest = line.partition(" ")
        if kind == "c":
            boxes.append(_box(rest))
        elif kind == "i":
            image, _, names = rest.partition(" ")
            found = json.loads(names)
            if not _SHA.fullmatch(image) or not (found is None or isinstance(found, list)):
                raise ValueError(f"an image is not understood: {line[:80]!r}")
            digests[image] = frozenset(m[0] for n in found or () if isinstance(n, str) and (m := _SHA.search(n)))
        elif kind == "I":
            failed = failure("docker image inspect", rest)
        elif kind == "more":
            partial = True
        else:
            raise ValueError(f"a line is not understood: {line[:60]!r}")
    return Boxes(tuple(boxes), failed or digests, partial)


def failure(what: str, rest: str) -> Unreadable:
    """`RC MESSAGE` of a docker command."""
    rc, _, message = rest.partition(" ")
    reason = {"124": Reason.TIMEOUT, "127": Reason.TOOL_MISSING}.get(rc, Reason.FAILED)
    if re.search(r"permission denied", message, re.I):
        reason = Reason.NEEDS_ROOT
    return Unreadable(reason, f"{what}: exit status {rc}: {message}"[:240])


def _box(rest: str) -> Box:
    pid, box, tail = rest.split(" ", 2)
    words: list[str] = []
    at, decoder = 0, json.JSONDecoder()
    while at < len(tail):
        value, at = decoder.raw_decode(tail, at)
        if not isinstance(value, str):
            raise ValueError(f"a text expected: {tail[:60]!r}")
        words.append(value)
        at += len(tail[at:]) - len(tail[at:].lstrip(" "))
    name, image, image_id, status = words
    if not pid.isdigit() or not re.fullmatch(r"[0-9a-f]{12,64}", box):
        raise ValueError(f"a container is not understood: {rest[:60]!r}")
    return Box(box, name.lstrip("/"), image, image_id if _SHA.fullmatch(image_id) else "", status in ("running", "paused", "restarting"))
