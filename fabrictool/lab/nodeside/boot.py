"""A node's PID 1, once init.py has built the root: boots as far as a node without systemd boots (network, sshd, devices appear,
enabled units run), and then keeps watch. `boot.py BOOTS BOOT_ID`, run by the node's own copy of the interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

SHARED = Path("/opt/fabrictool-lab/node")
sys.path.insert(0, "/opt/fabrictool-lab/lib")

from fabrictool.lab.nodeside import hardware, journal, live, netconf, server, services, sysfs, udev  # noqa: E402  the path has to be set first
from fabrictool.lab.nodeside.state import edit  # noqa: E402

SSHD_WAIT_S = 20
UNIT_WAIT_S = 60
RTMGRP = 0x1 | 0x10 | 0x100  # links, IPv4 addresses, IPv6 addresses (linux/rtnetlink.h)
SETTLE_S = 0.05


def persistent_mtus() -> None:
    """Running MTUs as the owner's persistent configuration has them; an interface that nobody configures keeps its 1500."""
    links = live.read()
    for name, mtu in netconf.boot_mtus({n: l.mac for n, l in links.items()}).items():
        subprocess.run(["ip", "link", "set", name, "mtu", str(mtu)], check=False, timeout=10)


def start_sshd(address: str) -> None:
    """The real sshd, on the management address only. Raises if it does not come to listen."""
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    subprocess.run(["/usr/sbin/sshd", "-E", "/opt/fabrictool-lab/node/sshd.log"], check=True, timeout=SSHD_WAIT_S)
    deadline = time.monotonic() + SSHD_WAIT_S
    while True:
        try:
            socket.create_connection((address, 22), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def run(shared: Path, boots: int, boot_id: str) -> None:
    """Everything between power on and `boot.json`."""
    settings = json.loads((shared / "settings.json").read_text())
    with contextlib.suppress(netconf.NetplanError):  # a node with a broken netplan file boots too, without what is in it
        netconf.generate()
    persistent_mtus()
    with edit(shared / "state.json") as node:
        node.kernel_log = journal.boot(node, time.time())
    sysfs.refresh(shared, live.read)
    os.makedirs("/run/lock", mode=0o1777, exist_ok=True)
    os.makedirs("/run/systemd/system", exist_ok=True)  # by which programs know that systemd runs
    server.start(shared)
    hardware.start(shared)
    start_sshd(settings["management"])
    failed = [*udev.add_all(UNIT_WAIT_S), *services.start_enabled(UNIT_WAIT_S)]
    sysfs.refresh(shared, live.read)
    done = shared / "boot.json.new"
    done.write_text(json.dumps({"boots": boots, "boot_id": boot_id, "failed": failed}))
    done.replace(shared / "boot.json")


def watch(shared: Path) -> None:
    """PID 1's life: reap, and show links and addresses that change in sysfs (port state, rate, GIDs)."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    news.bind((0, RTMGRP))
    news.setblocking(False)
    while True:
        ready, _, _ = select.select([news.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
        _reap()
        if news.fileno() in ready:
            time.sleep(SETTLE_S)
            _drain(news)
            # PID 1 must not end because `ip` or the disk failed once: the next event tries again.
            with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
                sysfs.refresh(shared, live.read)


def _drain(news: socket.socket) -> None:
    while True:
        try:
            news.recv(65536)
        except BlockingIOError:
            return
        except OSError:  # overrun: something changed, which is all that is asked
            return


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def main(boots: int, boot_id: str) -> int:
    try:
        run(SHARED, boots, boot_id)
        watch(SHARED)
    except BaseException:  # noqa: BLE001  PID 1's last words; the lab reads them from init.log
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
