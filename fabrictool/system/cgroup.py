"""Whose a control group is: read from its path, as Docker, containerd, CRI-O, podman, Kubernetes and systemd spell it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CONTAINER = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")
_POD = re.compile(r"[-/]pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?=[./]|$)")
_UNIT = re.compile(r"/([^/]{1,256}\.(?:service|scope))(?=/|$)")
_LONGEST = 2048


@dataclass(frozen=True, slots=True)
class Owner:
    """`container`: 64 hex digits; `pod`: the uid of a Kubernetes pod, with dashes; `unit`: the innermost systemd service or scope.
    Empty where the path does not tell."""

    path: str
    container: str = ""
    pod: str = ""
    unit: str = ""

    def __str__(self) -> str:
        """For people."""
        if self.container:
            return f"container {self.container[:12]}" + (f" of pod {self.pod}" if self.pod else "")
        if self.pod:
            return f"pod {self.pod}"
        return self.unit or (f"cgroup {self.path}" if self.path not in ("", "/") else "no cgroup of its own")


def owner(path: str) -> Owner:
    """`/system.slice/docker-0f..9a.scope` and the like. Nested containers: the innermost one."""
    path = path[:_LONGEST]
    boxes, pods, units = _CONTAINER.findall(path), _POD.findall(path), _UNIT.findall(path)
    pod = re.sub("_", "-", pods[-1]) if pods else ""
    unit = "" if boxes else units[-1] if units else ""
    return Owner(path, boxes[-1] if boxes else "", pod, unit)
