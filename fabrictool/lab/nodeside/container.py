"""A lab container: a real process with its own root folder, host name and environment, so that /proc/PID/root and
/proc/PID/environ of it are real. No image is unpacked: it sees the node's programs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabrictool.lab.nodeside import syscalls

HOME = Path("/var/lib/docker/lab")
STOP_S = 3.0
# $1 root, $2 host name ("" = the node's), $3 file of mounts (SOURCE TARGET MODE, one a line), then env words, "--", command. Ends as the
# command itself: same process id. The image is the node's own programs, with a Python that has PyTorch in /usr/local.
ENTER = """
set -e
root=$1 name=$2 mounts=$3; shift 3
for d in bin sbin lib lib64; do
  if [ -L "/$d" ]; then ln -sfn "$(readlink "/$d")" "$root/$d"
  elif [ -d "/$d" ]; then mkdir -p "$root/$d"; mount --bind "/$d" "$root/$d"; fi
done
mount --bind /usr "$root/usr"
mount -t tmpfs -o mode=755,size=1m local "$root/usr/local"
mkdir "$root/usr/local/bin"
for f in /usr/local/bin/all_reduce_perf* /opt/lab-venv/bin/python /opt/lab-venv/bin/python3; do
  [ ! -f "$f" ] || cp "$f" "$root/usr/local/bin/"
done
mount -t proc proc "$root/proc"
mount --bind /sys "$root/sys"
mount -t tmpfs -o nosuid,mode=755,size=64k dev "$root/dev"
for n in null zero full random urandom tty; do : >"$root/dev/$n"; mount --bind "/dev/$n" "$root/dev/$n"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount --bind /dev/shm "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
while read -r source target mode; do
  at=$root$target
  if [ -d "$source" ]; then mkdir -p "$at"; else mkdir -p "$(dirname "$at")"; [ -e "$at" ] || : >"$at"; fi
  mount --bind "$source" "$at"
  [ "$mode" != ro ] || mount -o remount,bind,ro "$at"
done <"$mounts"
[ -z "$name" ] || hostname "$name" 2>/dev/null || printf %s "$name" >/proc/sys/kernel/hostname 2>/dev/null || :
exec chroot "$root" /usr/bin/env -i "$@"
"""
# What every image of a lab needs of the node to be what it stands for.
OWN = ("/opt/fabrictool-lab/lib", "/opt/fabrictool-lab/python", "/opt/lab-venv")
SERVICE = "/run/lab-hardware"


@dataclass
class Container:
    """As it is kept in the node's state."""

    name: str
    pid: int
    image: str
    id: str = ""
    created: str = ""
    hostname: str = ""
    network: str = "host"
    root: str = ""
    env: dict[str, str] = field(default_factory=dict)
    cmd: list[str] = field(default_factory=list)
    mounts: list[list[str]] = field(default_factory=list)  # source, target, ro or rw
    devices: list[str] = field(default_factory=list)
    workdir: str = "/"

    @property
    def running(self) -> bool:
        return self.pid > 0 and os.path.isdir(f"/proc/{self.pid}/fd")

    def kept(self) -> dict[str, object]:
        return asdict(self)


def of(raw: Mapping[str, Any]) -> Container:
    """From the state. Name, process and image are enough: the rest is filled in."""
    c = Container(**{k: v for k, v in raw.items() if k in Container.__dataclass_fields__})
    c.id = c.id or hashlib.sha256(f"{c.name} {c.pid}".encode()).hexdigest()
    c.hostname = c.hostname or os.uname().nodename
    if not c.created:
        seen = os.stat(f"/proc/{c.pid}").st_mtime if c.running else 0
        c.created = _rfc3339(seen)
    return c


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def show_cgroup(pid: int, path: str) -> None:
    """A lab node has no cgroups of its own: what /proc/PID/cgroup would say is laid over it. Goes away with the process."""
    text = Path("/run/lab-cgroup")
    text.mkdir(exist_ok=True)
    (text / str(pid)).write_text(f"0::{path}\n")
    with contextlib.suppress(OSError):  # it has ended already
        syscalls.bind(str(text / str(pid)), f"/proc/{pid}/cgroup")


def hosts_file(c: Container) -> str:
    """As dockerd makes it: with the host's network a copy of the host's file, else its own name at its bridge address."""
    if c.network == "host":
        return Path("/etc/hosts").read_text()
    return f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n172.17.0.2\t{c.hostname}\n"


def image_id(name: str) -> str:
    """The same on every node of every lab."""
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def log_of(c: Container, make: bool = False) -> Path:
    """What its first process prints."""
    if make:
        (HOME / c.id).mkdir(parents=True, exist_ok=True)
    return HOME / c.id / "log"


def start(c: Container) -> Container:
    """Run it in the background. OSError when it cannot be."""
    with open(log_of(c, True), "ab") as log:
        child = launch(c, log.fileno(), log.fileno())
    _until_it_runs(child.pid, c.cmd)
    show_cgroup(child.pid, f"/system.slice/docker-{c.id}.scope")
    return c


def launch(c: Container, out: int, err: int) -> subprocess.Popen[bytes]:
    """Its first process, with these descriptors."""
    root = HOME / c.id / "rootfs"
    for name in ("etc", "usr", "proc", "dev", "sys", "tmp", "root", "run", "var", "opt"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in (("hosts", hosts_file(c)), ("hostname", f"{c.hostname}\n"), ("resolv.conf", ""),
                       ("passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("nsswitch.conf", "hosts: files\n")):
        if not (root / "etc" / name).exists():
            (root / "etc" / name).write_text(text)
    mounts = HOME / c.id / "mounts"
    chosen = [*([p, p, "ro"] for p in OWN if os.path.isdir(p)), *([[SERVICE, SERVICE, "rw"]] if os.path.exists(SERVICE) else []),
              *([d, d, "rw"] for d in c.devices), *c.mounts]
    mounts.write_text("".join(" ".join(words) + "\n" for words in chosen))
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": c.hostname, "HOME": "/root", **c.env}
    words = [f"{k}={v}" for k, v in env.items()]
    child = subprocess.Popen(
        ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", ENTER, "sh", str(root),
         "" if c.network == "host" else c.hostname, str(mounts), f"--chdir={c.workdir}", *words, *c.cmd],
        stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, cwd="/")
    c.pid, c.root = child.pid, str(root)
    return child


def _until_it_runs(pid: int, cmd: list[str]) -> None:
    """The helpers before it have the same process id: wait until the program itself is what runs."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return
        if words[:-1] == [word.encode("utf-8", "surrogateescape") for word in cmd]:
            return
        time.sleep(0.005)


def new(name: str, image: str, env: dict[str, str], cmd: list[str], network: str, hostname: str = "") -> Container:
    ident = secrets.token_hex(32)
    host = os.uname().nodename if network == "host" and not hostname else hostname or ident[:12]
    return Container(name or f"lab_{ident[:6]}", 0, image, ident, _rfc3339(time.time()), host, network, "", env,
                     cmd or ["sleep", "infinity"])


def stop(c: Container) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not c.running:
            break
        try:
            os.killpg(c.pid, number)
        except OSError:
            break
        deadline = time.monotonic() + STOP_S
        while c.running and time.monotonic() < deadline:
            time.sleep(0.01)
    c.pid = 0


def remove(c: Container) -> None:
    stop(c)
    shutil.rmtree(HOME / c.id, ignore_errors=True)
