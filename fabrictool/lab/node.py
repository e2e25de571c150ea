"""One node's life: prepare, start, stop, reboot, reset."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictool.lab import disk, fabric, hotplug, keys, library
from fabrictool.lab.errors import LabError
from fabrictool.lab.nodeside import driver, sysfs
from fabrictool.lab.nodeside.state import edit, load, save
from fabrictool.lab.paths import Layout, NodeLayout
from fabrictool.lab.plan import LabPlan, NodePlan, factory_state
from fabrictool.lab.record import Process, Record, process

if TYPE_CHECKING:
    from fabrictool.lab.handle import Lab

BOOT_S = 120
POLL_S = 0.01
PARALLEL = 8


def each(names: Iterable[NodePlan], work: Callable[[NodePlan], None]) -> None:
    """Do it for several nodes at once; the first error is raised when all are done."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        jobs = [pool.submit(work, n) for n in names]
    for job in jobs:
        job.result()


# -- prepare -----------------------------------------------------------------------------------------------------------

def prepare(layout: Layout, plan: LabPlan, node: NodePlan, password_hash: str) -> None:
    """Everything of a node that is there before its first boot: folders, disk, state, logs. All nodes have their host keys already."""
    here = layout.node(node.name)
    for folder in (here.root, here.tree, here.shared, here.sysfs):
        folder.mkdir(parents=True, exist_ok=True)
    disk.mount(here.disk)
    disk.fill(layout, plan, node, password_hash)
    deliver(plan, node, here)


def deliver(plan: LabPlan, node: NodePlan, here: NodeLayout) -> None:
    """Factory state and empty logs. Files that a node's unprivileged user has to append to or lock are open to all."""
    save(here.state, factory_state(plan.profile, node))
    shutil.rmtree(here.sysfs, ignore_errors=True)
    here.sysfs.mkdir()
    (here.shared / "settings.json").write_text(json.dumps({"management": node.management.address.partition("/")[0]}))
    here.sshd_log.write_text("")
    for path in (here.commands, here.state.with_suffix(".lock"), here.shared / "sysfs.lock"):
        path.write_text("")
        path.chmod(0o666)


# -- start and stop ----------------------------------------------------------------------------------------------------

def _pid_file(here: NodeLayout) -> Path:
    return here.root / "pid.json"


def process_of(layout: Layout, node: str) -> Process | None:
    """The node's PID 1 as it was recorded; None if it was never started."""
    try:
        return Process(*json.loads(_pid_file(layout.node(node)).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def pid_of(layout: Layout, record: Record, node: str) -> int:
    """LabError if the node does not run."""
    found = process_of(layout, node)
    if found is None or not found.alive:
        raise LabError(f"lab {layout.name}: {node} does not run: `fabrictool lab down --name {layout.name}`, then `lab up` again")
    return found.pid


def start(layout: Layout, node: NodePlan) -> None:
    """Boot it; returns when its sshd answers and its enabled units have run. LabError with the node's last words."""
    here = layout.node(node.name)
    boots = load(here.state).boots
    boot_id = str(uuid.uuid4())
    (here.shared / "boot_id").write_text(boot_id + "\n")
    here.boot.unlink(missing_ok=True)
    sysfs.write(here.sysfs, load(here.state), {})  # every name has to be there when the overlay is mounted
    here.init_plan.write_text(json.dumps({
        "name": node.name, "netns": str(layout.netns(node.name)), "disk": str(here.disk), "tree": str(here.tree),
        "shared": str(here.shared), "lib": str(layout.lib), "python": sys.base_prefix, "boot_id": boot_id, "boots": boots,
        "functions": len(load(here.state).functions)}))
    script = layout.lib / "fabrictool" / "lab" / "nodeside" / "init.py"
    with open(here.init_log, "wb") as log:
        done = subprocess.run([sys.executable, "-I", "-S", str(script), str(here.init_plan)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=log, timeout=BOOT_S, check=False, cwd="/")
    if done.returncode or not done.stdout.strip():
        raise LabError(f"{node.name} did not start: {_last_words(here)}")
    try:
        born = process(int(done.stdout))
    except LabError as error:
        raise LabError(f"{node.name} did not start: {_last_words(here)}") from error
    _pid_file(here).write_text(json.dumps([born.pid, born.started]))
    _wait(node, here, born, boot_id)


def _wait(node: NodePlan, here: NodeLayout, born: Process, boot_id: str) -> None:
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline:
        if here.boot.exists() and json.loads(here.boot.read_text())["boot_id"] == boot_id:
            return
        if not born.alive:
            raise LabError(f"{node.name} ended while booting: {_last_words(here)}")
        time.sleep(POLL_S)
    raise LabError(f"{node.name} did not come up within {BOOT_S} s: {_last_words(here)}")


def _last_words(here: NodeLayout) -> str:
    log = (here.init_log.read_text(errors="replace") + here.sshd_log.read_text(errors="replace")).strip()
    return "\n".join(log.splitlines()[-12:]) or "no message"


def stop(layout: Layout, node: str) -> None:
    """End its PID 1; the kernel ends everything in its pid namespace with it."""
    found = process_of(layout, node)
    if found is not None:
        found.kill()


# -- reboot, reset -----------------------------------------------------------------------------------------------------

def reboot(lab: Lab, name: str) -> None:
    node, here = lab.plan.node(name), lab.node_layout(name)
    stop(lab.layout, name)
    with edit(here.state) as state:
        driver.reboot(state)
        state.containers.clear()
        state.profiles.clear()
        state.boots += 1
    fabric.configure(lab.layout, node)
    start(lab.layout, node)


def reset(lab: Lab, names: Iterable[str]) -> None:
    """Back to the factory: disk, state, logs, cables, ports. Keys and addresses stay."""
    def factory(node: NodePlan, here: NodeLayout) -> None:
        disk.fill(lab.layout, lab.plan, node, lab.password_hash())
        deliver(lab.plan, node, here)

    afresh(lab, names, factory)


def afresh(lab: Lab, names: Iterable[str], lay_out: Callable[[NodePlan, NodeLayout], None]) -> None:
    """Stop nodes, mend what is around them (key, cables, switch ports), lay their disk and state out anew, boot."""
    library.refresh(lab.layout)

    def one(node: NodePlan) -> None:
        here = lab.node_layout(node.name)
        stop(lab.layout, node.name)
        old_host_key(lab, node.name, restart=False)
        disk_full(lab, node.name, False)
        lay_out(node, here)
        hotplug.plug_back(lab.layout, lab.plan, node)
        fabric.factory_ports(lab.layout, lab.plan, node)
        fabric.configure(lab.layout, node)
        start(lab.layout, node)
        lab.forward(node.name, "ok")

    each([lab.plan.node(n) for n in names], one)


# -- what faults need --------------------------------------------------------------------------------------------------

# Until it is gone: a connection made meanwhile would still be served.
STOP_SSHD = """[ -e /run/sshd.pid ] || exit 0
p=$(cat /run/sshd.pid) n=0
kill "$p"
while kill -0 "$p" 2>/dev/null && [ "$n" -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
rm -f /run/sshd.pid
"""


def sshd(lab: Lab, name: str, running: bool) -> None:
    if running:
        done = lab.exec(name, ["/bin/sh", "-c", '[ -e /run/sshd.pid ] && kill -0 "$(cat /run/sshd.pid)" 2>/dev/null || '
                               "exec /usr/sbin/sshd -E /opt/fabrictool-lab/node/sshd.log"])
    else:
        done = lab.exec(name, ["/bin/sh", "-c", STOP_SSHD])
    if not done.ok:
        raise LabError(f"{name}: sshd: {done.err.strip()}")


def new_host_key(lab: Lab, name: str) -> None:
    here = lab.node_layout(name)
    kept = here.host_key.with_name("old_host_key")
    if not kept.exists():
        here.host_key.rename(kept)
        keys.public(here.host_key).rename(keys.public(kept))
    keys.make_key(here.host_key, f"lab {lab.plan.name} {name}")
    _install_host_key(lab, name)


def old_host_key(lab: Lab, name: str, restart: bool = True) -> None:
    here = lab.node_layout(name)
    kept = here.host_key.with_name("old_host_key")
    if kept.exists():
        keys.public(kept).replace(keys.public(here.host_key))
        kept.replace(here.host_key)
        if restart:
            _install_host_key(lab, name)


def _install_host_key(lab: Lab, name: str) -> None:
    here = lab.node_layout(name)
    sshd(lab, name, False)
    lab.write_file(name, "/etc/ssh/ssh_host_ed25519_key", here.host_key.read_text(), 0o600)
    lab.write_file(name, "/etc/ssh/ssh_host_ed25519_key.pub", keys.public(here.host_key).read_text())
    sshd(lab, name, True)


def disk_full(lab: Lab, name: str, full: bool) -> None:
    """By the size of the tmpfs: full means no more than what is on it now."""
    where = lab.node_layout(name).disk
    size = disk.SIZE
    if full:
        seen = os.statvfs(where)
        size = str((seen.f_blocks - seen.f_bfree) * seen.f_frsize)
    done = subprocess.run(["mount", "-o", f"remount,size={size}", str(where)], capture_output=True, text=True, timeout=10, check=False)
    if done.returncode:
        raise LabError(f"{name}: {done.stderr.strip()}")
