"""Laying out a node's disk before it boots: the upper layer of its root file system.

Written from outside, into the overlay's own language: a folder marked opaque hides the machine's, a 0/0 character device hides a
file. So a node sees the machine's programs and libraries, and nothing else of it.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from fabrictool.lab import accounts, factory, keys
from fabrictool.lab.nodeside import syscalls
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import LabPlan, NodePlan
from fabrictool.lab.toolbox import FOLDERS, IP, absent, present

SIZE = "1g"  # a limit, not a reservation: the tmpfs holds only what the node writes
# What a node shares with this machine, read-only in effect: programs and libraries (and an /etc that factory.py overlays).
SHARED_TOPS = frozenset({"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "nix"})


def mount(disk: Path) -> None:
    """A fresh, empty disk."""
    disk.mkdir(parents=True, exist_ok=True)
    syscalls.mount("fabrictool-lab", str(disk), "tmpfs", syscalls.MS_NODEV, f"mode=755,size={SIZE}")


def _folder(up: Path, path: str, mode: int, opaque: bool, owner: int = 0) -> Path:
    """Make it and its parents; parents that the machine has too get the machine's mode."""
    here = up
    for part in Path(path).parts[1:]:
        here = here / part
        if not here.exists():
            here.mkdir()
            lower = Path("/", here.relative_to(up))
            if lower.is_dir():
                os.chmod(here, stat.S_IMODE(lower.stat().st_mode))
    os.chmod(here, mode)
    os.chown(here, owner, owner)
    if opaque:
        os.setxattr(here, "trusted.overlay.opaque", b"y")
    return here


def _real_parent(path: str) -> str:
    """The path with this machine's links in its folder resolved (/bin -> /usr/bin): the overlay knows real folders only."""
    return f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}"


def _write(up: Path, path: str, file: factory.File) -> None:
    target = up / path.lstrip("/")
    if not target.parent.exists():
        _folder(up, str(Path(path).parent), 0o755, False)
    target.unlink(missing_ok=True)
    target.write_text(file.text)
    os.chmod(target, file.mode)
    if file.user:
        os.chown(target, accounts.UID, accounts.UID)


def _whiteout(up: Path, path: str) -> None:
    target = up / path.lstrip("/")
    if target.exists() or target.is_symlink():
        return
    if not target.parent.exists():
        _folder(up, str(Path(path).parent), 0o755, False)
    os.mknod(target, stat.S_IFCHR, os.makedev(0, 0))


def _ssh(layout: Layout, plan: LabPlan) -> factory.Ssh:
    hosts = {n.name: keys.public(layout.node(n.name).host_key).read_text() for n in plan.nodes}
    return factory.Ssh(keys.public(layout.user_key).read_text(), layout.cluster_key.read_text(),
                       keys.public(layout.cluster_key).read_text(), hosts)


def fill(layout: Layout, plan: LabPlan, node: NodePlan, password_hash: str) -> None:
    """The disk of a node as delivered."""
    here = layout.node(node.name)
    up = here.disk / "up"
    shutil.rmtree(up, ignore_errors=True)
    up.mkdir(mode=0o755)
    for path, mode in factory.OWN_FOLDERS.items():
        _folder(up, path, mode, True)
    for path, mode in factory.PLAIN_FOLDERS.items():
        _folder(up, path, mode, False, accounts.UID if path.startswith("/home/") else 0)
    for link, target in (("var/run", "/run"), ("var/lock", "/run/lock")):
        (up / link).symlink_to(target)
    found = factory.files(plan, node, _ssh(layout, plan))
    found |= accounts.files(Path("/etc/passwd").read_text(), Path("/etc/group").read_text(), password_hash)
    found |= {_real_parent(path): factory.File(text, 0o755) for path, text in present(plan.profile.tools).items()}
    found |= {os.path.realpath(path): factory.File(IP, 0o755) for f in FOLDERS if os.path.exists(path := f"{f}/ip")}
    for path, file in found.items():
        _write(up, path, file)
    for path, target in factory.venv()[1].items():
        _folder(up, os.path.dirname(path), 0o755, False)
        (up / path.lstrip("/")).symlink_to(target)
    write_host_key(here.root, up)
    gone = [_real_parent(path) for path in absent(plan.profile.tools) if not path.startswith("/usr/local/")]
    for path in (*factory.NOT_THERE, *gone, *(f"/{n}" for n in os.listdir("/") if n not in SHARED_TOPS)):
        _whiteout(up, path)


def write_host_key(root: Path, up: Path) -> None:
    """The node's key from the run folder onto its disk."""
    for name, mode in (("ssh_host_ed25519_key", 0o600), ("ssh_host_ed25519_key.pub", 0o644)):
        _write(up, f"/etc/ssh/{name}", factory.File((root / name).read_text(), mode))
