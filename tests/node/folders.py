"""A run's folder, made for real by stage.sh, and taken away by sweep.sh."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabrictool.probes import stage
from fabrictool.probes.launch import File
from tests.node.nodes import NO_SYSTEMD, PATH, new_run, script


@dataclass(frozen=True)
class Folder:
    run: str
    path: Path
    out: str
    source: str


def staged(shell: str, run: str, *, alive_s: int = 300, added: Mapping[str, str] | None = None, consumers: Sequence[str] = (),
           files: Sequence[File] = (), path: str = PATH, **env: str) -> subprocess.CompletedProcess[str]:
    """Send the program as the engine does."""
    text = stage.program(run, alive_s, files, added or {"run1": ""}, consumers).replace("/run/systemd/system", NO_SYSTEMD)
    return subprocess.run([*shell.split(), "-s"], input=text, capture_output=True, text=True, timeout=60, check=False,
                          env={"PATH": path, "LC_ALL": "C", **env})


@contextmanager
def folder(shell: str = "dash", *, alive_s: int = 300, added: Mapping[str, str] | None = None, consumers: Sequence[str] = (),
           files: Sequence[File] = (), path: str = PATH, **env: str) -> Iterator[Folder]:
    """What runs below it is ended with it."""
    run = new_run()
    done = staged(shell, run, alive_s=alive_s, added=added, consumers=consumers, files=files, path=path, **env)
    try:
        got = stage.read(done.stdout)
        assert isinstance(got, stage.Staged), (got, done.stdout, done.stderr)
        yield Folder(run, Path(got.folder), done.stdout, got.source)
    finally:
        script("dash", "sweep.sh", run, "close")
        for left in (f"/run/fabrictool/{run}", f"/tmp/fabrictool-{run}"):
            assert not os.path.exists(left), shutil.rmtree(left)
