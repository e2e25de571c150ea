"""The few system calls that Python 3.11 has no function for. All raise OSError with the path concerned."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_CAPBSET_DROP = 24
# Capabilities that would reach through to the machine itself (linux/capability.h): modules, raw I/O, clock, syslog's clearing.
CAPS_OF_THE_MACHINE = {"SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_BOOT": 22, "SYS_TIME": 25, "MKNOD": 27, "SYSLOG": 34}
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "s390x": 217, "riscv64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def setns(fd: int, kind: int) -> None:
    """Move the calling thread into the namespace behind `fd`."""
    _check(_libc.setns(fd, kind), f"setns {kind:#x}")


def unshare(kinds: int) -> None:
    _check(_libc.unshare(kinds), f"unshare {kinds:#x}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _check(_libc.mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None),
           f"mount {kind or source} on {target}")


def bind(source: str, target: str, readonly: bool = False) -> None:
    mount(source, target, "", MS_BIND)
    if readonly:
        mount("", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY)


def umount(target: str) -> None:
    """Detach, also when busy."""
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    number = SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, "pivot_root's number is not known for this machine", os.uname().machine)
    _check(_libc.syscall(ctypes.c_long(number), new.encode(), old.encode()), f"pivot_root {new}")


def drop_machine_capabilities() -> None:
    """Take them from the bounding set: nothing started later can have them."""
    for name, number in CAPS_OF_THE_MACHINE.items():
        _check(_libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), f"drop {name}")
