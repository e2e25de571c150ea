"""A node's PID 1: builds the node's own root out of this machine's, boots it, and then reaps.

`init.py PLAN.json` moves into the node's network namespace, makes mount, uts, ipc and pid namespaces, prints the process id of
the node's PID 1 and ends; that process goes on here. All mounts below are in the node's own mount namespace, so they end with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import stat
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from fabrictool.lab.nodeside import syscalls as sc

INSIDE = "opt/fabrictool-lab"
# Folders whose separate file systems (a /usr of its own) belong to the node's root too.
PARTS = ("/usr", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/nix")
UVERBS, RDMA_CM = (231, 192), (10, 58)  # major and first minor number
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


@dataclass(frozen=True)
class InitPlan:
    """What the lab tells a node's init. Paths are this machine's."""

    name: str
    netns: str
    disk: str  # a tmpfs, with up/ and work/ (and more of them for PARTS)
    tree: str
    shared: str
    lib: str
    python: str  # the interpreter's prefix
    boot_id: str
    boots: int
    functions: int  # RDMA devices


def overlay(target: str, lower: str, upper: str, work: str) -> None:
    os.makedirs(upper, exist_ok=True)
    os.makedirs(work, exist_ok=True)
    sc.mount("overlay", target, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}")


def separate_parts() -> list[str]:
    """Mount points at or below PARTS, outermost first."""
    with open("/proc/self/mountinfo") as mounts:
        points = {line.split()[4] for line in mounts}
    return sorted(p for p in points if any(p == part or p.startswith(part + "/") for part in PARTS) and os.path.isdir(p))


def rdma_devices(dev: str, functions: int) -> None:
    """What ib_uverbs and rdma_cm make. Device numbers of the real ones; nothing is behind them."""
    os.mkdir(f"{dev}/infiniband")
    for name, minor in (("rdma_cm", None), *((f"uverbs{n}", UVERBS[1] + n) for n in range(functions))):
        path = f"{dev}/infiniband/{name}"
        os.mknod(path, stat.S_IFCHR, os.makedev(*(RDMA_CM if minor is None else (UVERBS[0], minor))))
        os.chmod(path, 0o666)


def devices(root: str, functions: int) -> None:
    """An own, small /dev with own terminals."""
    dev = f"{root}/dev"
    sc.mount("dev", dev, "tmpfs", sc.MS_NOSUID, "mode=755,size=64k")
    for name in DEVICES:
        Path(dev, name).touch()
        sc.bind(f"/dev/{name}", f"{dev}/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{dev}/{name}")
    sc.mount("devpts", f"{dev}/pts", "devpts", sc.MS_NOSUID | sc.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5")
    sc.mount("shm", f"{dev}/shm", "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "mode=1777")
    rdma_devices(dev, functions)
    for link, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
        os.symlink(target, f"{dev}/{link}")


def kernel_views(root: str, plan: InitPlan) -> None:
    """/proc and /sys. The machine's sysctls are read-only (those of the node's network are its own); boot_id is the node's."""
    proc, sysfs = f"{root}/proc", f"{root}/sys"
    sc.mount("proc", proc, "proc", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    sc.bind(f"{proc}/sys/net", f"{proc}/sys/net")
    net = os.open(f"{proc}/sys/net", os.O_RDONLY)
    sc.bind(f"{proc}/sys", f"{proc}/sys", readonly=True)
    sc.bind(f"/proc/self/fd/{net}", f"{proc}/sys/net")
    os.close(net)
    if os.path.exists(f"{proc}/sysrq-trigger"):
        sc.bind(f"{proc}/sysrq-trigger", f"{proc}/sysrq-trigger", readonly=True)
    sc.bind(f"{plan.shared}/boot_id", f"{proc}/sys/kernel/random/boot_id", readonly=True)
    sc.mount("sysfs", sysfs, "sysfs", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    sc.mount("overlay", sysfs, "overlay", 0, f"lowerdir={plan.shared}/sys:{sysfs}")
    for ecn in sorted(Path(plan.shared, "sys/devices/virtual/net").glob("*/ecn")):
        sc.bind(str(ecn), f"{sysfs}/{ecn.relative_to(f'{plan.shared}/sys')}")


def build_root(plan: InitPlan) -> None:
    """Mount the node's root at `tree` and move into it."""
    root = plan.tree
    sc.mount("", "/", "", sc.MS_REC | sc.MS_PRIVATE)
    overlay(root, "/", f"{plan.disk}/up", f"{plan.disk}/work")
    for part in separate_parts():
        key = part.strip("/").replace("/", "-")
        os.makedirs(root + part, exist_ok=True)
        overlay(root + part, part, f"{plan.disk}/part-{key}/up", f"{plan.disk}/part-{key}/work")
    devices(root, plan.functions)
    for name, mode in (("run", "755"), ("tmp", "1777")):
        sc.mount(name, f"{root}/{name}", "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, f"mode={mode},size=256m")
    kernel_views(root, plan)
    for name, source, readonly in (("lib", plan.lib, True), ("python", plan.python, True), ("node", plan.shared, False)):
        os.makedirs(f"{root}/{INSIDE}/{name}", exist_ok=True)
        sc.bind(source, f"{root}/{INSIDE}/{name}", readonly)
    os.makedirs(f"{root}/run/old", exist_ok=True)
    sc.pivot_root(root, f"{root}/run/old")
    os.chdir("/")
    sc.umount("/run/old")
    os.rmdir("/run/old")


def pid_one(plan: InitPlan) -> None:
    """The node's first process. Goes on as boot.py: nothing of this machine's paths is left in it. Raises OSError."""
    build_root(plan)
    socket.sethostname(plan.name)
    with contextlib.suppress(ValueError, OSError):  # as RDMA nodes are delivered; not where this machine's root may not raise it
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sc.drop_machine_capabilities()
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
           "LD_LIBRARY_PATH": f"/{INSIDE}/python/lib"}
    python = f"/{INSIDE}/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    os.execve(python, [python, "-I", "-S", f"/{INSIDE}/lib/fabrictool/lab/nodeside/boot.py", str(plan.boots), plan.boot_id], env)


def main(path: str) -> int:
    plan = InitPlan(**json.loads(Path(path).read_text()))
    fd = os.open(plan.netns, os.O_RDONLY)
    sc.setns(fd, sc.CLONE_NEWNET)
    os.close(fd)
    sc.unshare(sc.CLONE_NEWNS | sc.CLONE_NEWUTS | sc.CLONE_NEWIPC | sc.CLONE_NEWPID)
    child = os.fork()
    if child:
        print(child, flush=True)
        return 0
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.close(null)
    try:
        pid_one(plan)
    except BaseException:  # noqa: BLE001  PID 1's last words; the lab reads them from init.log
        traceback.print_exc()
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
