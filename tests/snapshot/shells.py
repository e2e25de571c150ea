"""Running the real collector on this machine, under each shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabrictool.snapshot import Section, Snapshot, collector, frame

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHELLS = {"dash": ("dash",), "bash": ("bash",), "bash-posix": ("bash", "--posix"), "busybox": ("busybox", "sh")}
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

every_shell = pytest.mark.parametrize("shell", [
    pytest.param(argv, id=name, marks=() if shutil.which(argv[0]) else pytest.mark.skip(f"{argv[0]} is not installed"))
    for name, argv in SHELLS.items()
])
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which needs root")


def raw(shell: Sequence[str], program: str, env: dict[str, str] | None = None, as_user: Sequence[str] = ()) -> bytes:
    """What the program prints when it arrives on the shell's standard input."""
    done = subprocess.run([*as_user, *shell, "-s"], input=program.encode(), capture_output=True, timeout=120, check=False,
                          env={"PATH": "/usr/bin:/bin", **(env or {})})
    return done.stdout


def collect(shell: Sequence[str], sections: Sequence[Section], *, env: dict[str, str] | None = None, as_user: Sequence[str] = (),
            lanes: int = 2, total_s: int = 60, sys: str = "/nonesuch", peers: Sequence[str] = (), tools: Path | None = None) -> Snapshot:
    """A snapshot of this machine. `tools`: the only folder on the collector's PATH."""
    program = collector.script(sections, peers=peers, lanes=lanes, total_s=total_s, sys=sys, proc="/proc")
    if tools:
        assert program.count(PATH) == 2
        program = program.replace(PATH, str(tools))
    return frame.parse("n1", raw(shell, program, env, as_user), "2026-01-01T00:00:00+00:00")


def tool_folder(folder: Path, *names: str, busybox: Sequence[str] = ()) -> Path:
    """A folder with links to these tools of this machine, and to busybox under these names."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name, path=PATH)
        assert found, name
        (folder / name).symlink_to(found)
    for name in busybox:
        (folder / name).symlink_to(str(shutil.which("busybox", path=PATH)))
    return folder
