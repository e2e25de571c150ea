"""SSH keys of a lab: one for the user, one per node. Made here, never taken from the machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fabrictool.lab.errors import LabError


def make_key(path: Path, comment: str) -> None:
    """A new ed25519 pair at `path` and `path`.pub; an old pair is replaced."""
    for old in (path, public(path)):
        old.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], capture_output=True,
                          text=True, timeout=30, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"ssh-keygen: {done.stderr.strip()}")


def public(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def known_hosts_line(port: int, key: Path) -> str:
    """As the user's ssh sees the node: 127.0.0.1 at the forwarded port."""
    kind, data = public(key).read_text().split()[:2]
    return f"[127.0.0.1]:{port} {kind} {data}\n"
