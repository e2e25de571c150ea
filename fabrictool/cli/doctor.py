"""`fabrictool doctor`: looks at this workstation, not at the nodes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import click

from fabrictool.exits import Exit
from fabrictool.model import Status

MIN_PYTHON = (3, 11)
LIMIT_S = 5  # one command of the doctor
LAB_TOOLS = (("sshd", "openssh-server"), ("ip", "iproute2"), ("ping", "iputils-ping"), ("ps", "procps"),
             ("unshare", "util-linux"))  # tool, Debian package


@dataclass(frozen=True, slots=True)
class Item:
    """One line: what was looked at, what was seen, and what to do about it."""

    status: Status
    what: str
    seen: str
    do: str = ""


def which(name: str) -> str | None:
    """Where the tool is, also in the sbin folders that are not on a user's PATH."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin")))


def answer(argv: Sequence[str]) -> tuple[int, str]:
    """(exit status, first line of what it said); 127 = not there, 124 = no answer in time."""
    try:
        done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    except FileNotFoundError:
        return 127, "not found"
    except (subprocess.TimeoutExpired, OSError) as error:
        return 124, type(error).__name__
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()
    return done.returncode, lines[0][:120] if lines else ""


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Item:
    seen = ".".join(map(str, version))
    if version[:2] >= MIN_PYTHON:
        return Item(Status.PASS, "Python", seen)
    return Item(Status.FAIL, "Python", seen, f"fabrictool needs Python {MIN_PYTHON[0]}.{MIN_PYTHON[1]} or newer")


def pinned(name: str, version: str | None, least: tuple[int, int], below: tuple[int, int]) -> Item:
    """A library whose behaviour fabrictool relies on: `least` <= version < `below`."""
    want = f"{least[0]}.{least[1]} or newer, below {below[0]}.{below[1]}"
    if version is None:
        return Item(Status.FAIL, name, "not installed", f"install fabrictool again: it brings {name} {want}")
    numbers = tuple(int(p) if p.isdigit() else 0 for p in version.split(".")[:2])
    if least <= numbers < below:
        return Item(Status.PASS, name, version)
    return Item(Status.FAIL, name, version, f"fabrictool needs {want}: install it in an environment of its own")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def keys(home: Path, agent: tuple[int, str]) -> Item:
    """A key to log in with: in the agent, or a private key that only its owner can read."""
    rc, said = agent
    if rc == 0:
        return Item(Status.PASS, "SSH keys", f"in the agent: {said}")
    found = sorted(p for p in (home / ".ssh").glob("id_*") if p.suffix != ".pub" and p.is_file())
    if not found:
        return Item(Status.WARN, "SSH keys", "none in the agent and none in ~/.ssh",
                    "ssh-keygen -t ed25519, or name a key in the spec (ssh.key)")
    loose = [p.name for p in found if stat.S_IMODE(p.stat().st_mode) & 0o077]
    if loose:
        return Item(Status.WARN, "SSH keys", f"others can read {', '.join(loose)}", f"chmod 600 ~/.ssh/{loose[0]}")
    return Item(Status.PASS, "SSH keys", ", ".join(p.name for p in found))


def known_hosts(home: Path) -> Item:
    path = home / ".ssh" / "known_hosts"
    if path.is_file() and os.access(path, os.R_OK):
        return Item(Status.PASS, "known_hosts", str(path))
    return Item(Status.WARN, "known_hosts", f"{path} is not there or cannot be read",
                "log in once by ssh and compare the key, or name a file in the spec (ssh.known_hosts)")


def clock(said: tuple[int, str]) -> Item:
    """Whether the clock is kept by NTP: reports and bundles are dated by it. `said`: timedatectl's answer."""
    rc, text = said
    if rc == 0 and text == "yes":
        return Item(Status.PASS, "clock", "synchronised")
    if rc == 0 and text == "no":
        return Item(Status.WARN, "clock", "not synchronised", "switch on NTP: reports are dated by this clock")
    return Item(Status.WARN, "clock", f"not known ({text or 'no answer'})", "see that this machine's clock is right")


def run_folder(path: Path) -> Item:
    """Where labs live on this machine."""
    nearest = next(p for p in (path, *path.parents) if p.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Item(Status.PASS, "lab: folder", str(path))
    return Item(Status.WARN, "lab: folder", f"{path} cannot be made or written", "run as root, or choose another with --dir")


def lab(platform: str, root: bool, find: Callable[[str], str | None],
        namespaces: Callable[[], tuple[int, str]]) -> Iterator[Item]:
    """What `fabrictool lab` needs; nothing else does, so these only warn."""
    if platform != "linux":
        yield Item(Status.WARN, "lab", f"this is {platform}", "labs need Linux; everything else works here")
        return
    missing = [(tool, package) for tool, package in LAB_TOOLS if find(tool) is None]
    if missing:
        yield Item(Status.WARN, "lab: tools", f"missing: {', '.join(t for t, _ in missing)}",
                   f"apt-get install {' '.join(p for _, p in missing)}")
    else:
        yield Item(Status.PASS, "lab: tools", ", ".join(t for t, _ in LAB_TOOLS))
    if not root:
        yield Item(Status.WARN, "lab: root", "not root", "run the lab commands with sudo")
        return
    rc, said = namespaces()
    if rc == 0:
        yield Item(Status.PASS, "lab: namespaces", "network, mount and host name namespaces can be made")
    else:
        yield Item(Status.WARN, "lab: namespaces", said or f"unshare: exit status {rc}",
                   "a container needs --privileged for it (CAP_SYS_ADMIN, CAP_NET_ADMIN)")


def items() -> Iterator[Item]:
    """Everything, as seen on this machine now."""
    from fabrictool.lab.paths import base

    home = Path.home()
    yield python()
    yield pinned("pyinfra", _version("pyinfra"), (3, 10), (4, 0))
    yield pinned("paramiko", _version("paramiko"), (4, 0), (5, 0))
    rc, said = answer(["ssh", "-V"])
    missing = Item(Status.WARN, "ssh", said, "install openssh-client: `lab ssh` and jump hosts need it")
    yield Item(Status.PASS, "ssh", said) if rc == 0 else missing
    yield keys(home, answer(["ssh-add", "-l"]))
    yield known_hosts(home)
    yield clock(answer(["timedatectl", "show", "-p", "NTPSynchronized", "--value"]))
    yield from lab(sys.platform, os.geteuid() == 0, which, lambda: answer(["unshare", "--net", "--mount", "--uts", "true"]))
    yield run_folder(base())


@click.command("doctor")
def command() -> Exit:
    """Look at this workstation: Python, libraries, SSH, keys, clock, and what a lab needs.

    Exit 1 when something is in the way of every command; warnings are 0.
    """
    from fabrictool.report.page import Page
    from fabrictool.report.totals import STYLE

    page = Page(sys.stdout)
    failed = False
    for item in items():
        word = "ok" if item.status is Status.PASS else str(item.status)
        page.line((f"{word:<5} ", STYLE[item.status]), (f"{item.what:<16} ", "bold"), item.seen)
        if item.do:
            page.field("do", item.do)
        failed = failed or item.status is Status.FAIL
    return Exit.FAILED if failed else Exit.OK
