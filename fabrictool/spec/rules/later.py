"""Checkpoints, kernel caches: checked already, although nothing acts on them yet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabrictool.spec.problems import Problem, error, shown, warning
from fabrictool.spec.rules.view import Rule, View

COMMIT = re.compile(r"[0-9a-f]{40}")
PLACEHOLDER_COMMIT = "COMMIT40"  # of the examples: valid, and nothing can be verified against it
SOURCE = re.compile(r"[a-z][a-z0-9+]*:\S+")


def checkpoints(v: View) -> Iterator[Problem]:
    """Where files come from, which revision, and where they go."""
    for name, c in v.spec.checkpoints.items():
        path = ("checkpoints", name)
        if c.revision == PLACEHOLDER_COMMIT:
            yield warning(v.at(*path, "revision"), f"revision {PLACEHOLDER_COMMIT} is a placeholder",
                          "no file can be verified against it",
                          "write the commit, 40 hex digits")
        elif not COMMIT.fullmatch(c.revision):
            yield error(v.at(*path, "revision"), f"a revision is a commit of 40 hex digits, not {shown(c.revision)}",
                        "branches and tags move: nodes would hold different files")
        if not SOURCE.fullmatch(c.source):
            yield error(v.at(*path, "source"), f"a source is KIND:PLACE, not {shown(c.source)}", "", "write dir:/path")
        elif c.source.startswith("dir:") and not _absolute(c.source[4:]):
            yield error(v.at(*path, "source"), f"{shown(c.source)}: the path has to be absolute", "", "write dir:/path")
        if not _absolute(c.target):
            yield error(v.at(*path, "target"), f"a target is an absolute path, not {shown(c.target)}")


def sizes(v: View) -> Iterator[Problem]:
    """Sizes say their unit: a bare number has meant bytes, bits and MiB."""
    for path in (("collective", "size"), ("collective", "control", "max_bytes_per_node"),
                 *(("checkpoints", name, "limits", "bytes_per_s") for name in v.spec.checkpoints)):
        value = v.value(*path)
        if isinstance(value, int):
            yield error(v.at(*path), f"{path[-1]} {value} has no unit", "", "write 256MiB, 1GiB, 2GB (B for bytes)")


def kernel_caches(v: View) -> Iterator[Problem]:
    """Both ends of the mount."""
    for name, k in v.spec.kernel_caches.items():
        for field, value in (("host_path", k.host_path), ("mounted_at", k.mounted_at)):
            if not _absolute(value):
                yield error(v.at("kernel_caches", name, field), f"{field} is an absolute path, not {shown(value)}")


def _absolute(path: str) -> bool:
    return path.startswith("/") and path.isprintable() and ".." not in path.split("/")


RULES = (
    Rule(checkpoints, (("checkpoints",),)),
    Rule(sizes, (("collective",), ("checkpoints",))),
    Rule(kernel_caches, (("kernel_caches",),)),
)
