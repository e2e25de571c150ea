"""Labs for tests: built with names of their own, taken down whatever happens."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabrictool.lab import down
from fabrictool.lab.handle import Lab
from fabrictool.lab.paths import Layout
from fabrictool.lab.up import up

LAB_FIXTURES = frozenset({"fleet", "lab"})


def name_for(what: str) -> str:
    """Of this process alone: several workers have labs at the same time."""
    return f"t{os.getpid()}-{what}"[:24]


@contextmanager
def built(what: str, nodes: int = 1, profile: str = "spark", folder: Path | None = None) -> Iterator[Lab]:
    """A lab for a test. Where none can be built, LabError says what is missing and the test fails."""
    name = name_for(what)
    lab = up(name, nodes, profile, folder)
    try:
        yield lab
    finally:
        if lab.layout.root.exists():
            down.clear(Layout.of(name, folder))


def ssh(lab: Lab, node: str, command: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
    """Through the lab's own ssh_config, as a user of the lab would."""
    argv = ["ssh", "-F", str(lab.layout.root / "ssh_config"), *(["-l", user] if user else []), "-o", "ConnectTimeout=10", node, command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)


def ping(lab: Lab, node: str, address: str, size: int) -> bool:
    """One echo of `size` bytes payload that must not be fragmented."""
    return lab.exec(node, ["ping", "-M", "do", "-c", "1", "-W", "2", "-s", str(size), address]).ok
