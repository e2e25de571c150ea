"""Answers to the spec's content probes (section `system.contents`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Snapshot
from fabrictool.spec.system import HOST, ContentSpec
from fabrictool.system import sections
from fabrictool.system.containers import failure


@dataclass(frozen=True, slots=True)
class Content:
    """`sha256` of the file, or whether the text is in it; exactly one of them."""

    sha256: str = ""
    has_text: bool | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """probe key -> where (a container's name, or host) -> what was found there. `docker`: why containers could not be asked.
    `nowhere`: keys of probes that no running container's name fits."""

    found: Mapping[str, Mapping[str, Observed[Content]]]
    nowhere: frozenset[str] = frozenset()
    docker: Unreadable | None = None

    def of(self, probe: ContentSpec) -> Mapping[str, Observed[Content]] | Unreadable:
        """Where the file was looked for. Unreadable: nowhere, and why."""
        key = sections.key(probe)
        if key in self.found:
            return self.found[key]
        if probe.container != HOST and self.docker is not None:
            return self.docker
        if key in self.nowhere:
            return Unreadable(Reason.BLOCKED, f"no container called {probe.container} runs here")
        return Unreadable(Reason.NOT_COLLECTED, f"{probe.path} in {probe.container}: not looked at in this snapshot")


_REASONS = {"denied": Reason.NEEDS_ROOT, "failed": Reason.FAILED, "slow": Reason.TIMEOUT}


def read(snap: Snapshot) -> Answers | Unreadable:
    raw = snap.raw(sections.CONTENTS)
    if isinstance(raw, Unreadable):
        return raw
    text = raw.out.replace("\r\n", "\n")
    if not text.endswith("\nend\n"):
        return Unreadable(Reason.CUT, f"{sections.CONTENTS}: the end is missing")
    found: dict[str, dict[str, Observed[Content]]] = {}
    nowhere: set[str] = set()
    docker: Unreadable | None = None
    for line in text.split("\n")[:-2]:
        words = line.split(" ")
        if words[0] == "docker":
            docker = failure("docker", " ".join(words[2:])) if words[1:2] == ["failed"] else None
        elif words[0] == "n" and len(words) == 2:
            nowhere.add(words[1])
        elif words[0] == "k" and len(words) == 5:
            found.setdefault(words[1], {})[words[2]] = _content(words[2], words[3], words[4])
        else:
            return Unreadable(Reason.GARBLED, f"{sections.CONTENTS}: {line[:60]!r}")
    return Answers(found, frozenset(nowhere), docker)


def _content(where: str, how: str, said: str) -> Observed[Content]:
    if how == "sha256" and re.fullmatch(r"[0-9a-f]{64}", said):
        return Value(Content(sha256=said))
    if how == "text" and said in ("0", "1"):
        return Value(Content(has_text=said == "1"))
    if how == "absent":
        return Absent(f"the file in {where}")
    return Unreadable(_REASONS.get(how, Reason.GARBLED), f"the file in {where}: {how if how in _REASONS else 'not understood'}")
