"""Building a lab, and clearing away what a failed build leaves."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fabrictool.lab import accounts, down, fabric, forward_control, inventory, keys, library, node
from fabrictool.lab.errors import LabError
from fabrictool.lab.handle import Lab
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import LabPlan, NodePlan, lab_plan
from fabrictool.lab.profiles import profile as profile_of
from fabrictool.lab.record import Record

NEEDS = {"ip": "iproute2", "nsenter": "util-linux", "mount": "mount", "ssh-keygen": "openssh-client", "/usr/sbin/sshd": "openssh-server",
         "sudo": "sudo", "cat": "coreutils"}


def missing() -> list[str]:
    """What this machine lacks for a lab, each as a sentence."""
    found = []
    if os.uname().sysname != "Linux":
        return [f"Linux is needed, this is {os.uname().sysname}"]
    if os.geteuid() != 0:
        found.append("root is needed, to make namespaces, veth links and overlay mounts: run it with sudo")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    packages = sorted({package for tool, package in NEEDS.items() if shutil.which(tool, path=path) is None})
    if packages:
        found.append(f"these packages are missing: apt-get install {' '.join(packages)}")
    return found


def need_root(what: str) -> None:
    if os.geteuid() != 0:
        raise LabError(f"root is needed to {what}: run it with sudo")


@contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """One command at a time per lab. LabError when another one is at work."""
    layout.root.parent.mkdir(parents=True, exist_ok=True)
    with open(layout.lock, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LabError(f"another command is at work on lab {layout.name}: wait for it") from error
        yield


def _build(layout: Layout, plan: LabPlan, say: Callable[[str], None]) -> Record:
    record = Record(plan)
    record.save(layout)
    library.install(layout)
    keys.make_key(layout.user_key, f"fabrictool lab {plan.name}")
    keys.make_key(layout.cluster_key, f"cluster {plan.name}")
    password = secrets.token_hex(8)
    (layout.keys / "password").write_text(password + "\n")
    (layout.keys / "password").chmod(0o600)
    hashed = accounts.hashed(password)
    (layout.keys / "password.hash").write_text(hashed)
    layout.keys.chmod(0o700)
    say(f"switch: {len(plan.bridges)} bridges")
    fabric.build_switch(layout, plan)
    say(f"nodes: {plan.nodes[0].name} .. {plan.nodes[-1].name}")

    def one(n: NodePlan) -> None:
        node.prepare(layout, plan, n, hashed)
        node.start(layout, n)

    # Namespaces are made by forking, which goes badly beside running threads: first all of them, then the rest at once.
    for n in plan.nodes:
        fabric.build_node(layout, plan, n)
    # Every node's disk holds every node's host key.
    node.each(plan.nodes, lambda n: keys.make_key(layout.node(n.name).host_key, f"lab {plan.name} {n.name}"))
    node.each(plan.nodes, one)
    say("ports on 127.0.0.1")
    record.forwarder, record.ports = forward_control.start(layout, plan, {})
    record.save(layout)
    inventory.write(layout, plan, record.ports)
    _give_to_caller(layout)
    record.complete = True
    record.save(layout)
    return record


def _give_to_caller(layout: Layout) -> None:
    """Under sudo: what the calling user needs to reach the nodes becomes the user's."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if uid.isdigit() and gid.isdigit():
        names = ("keys", "keys/id_ed25519", "keys/id_ed25519.pub", "keys/password", "lab.yaml", "lab.py", "ssh_config", "known_hosts")
        for name in names:
            os.chown(layout.root / name, int(uid), int(gid))


def up(name: str = "lab", nodes: int = 4, profile: str = "spark", folder: Path | None = None,
       say: Callable[[str], None] = lambda _: None) -> Lab:
    """A running lab. LabError says what is missing, or why it failed; then nothing of it is left."""
    lacking = missing()
    if lacking:
        raise LabError("no lab can be built here: " + "; ".join(lacking))
    layout = Layout.of(name, folder)
    plan = lab_plan(name, profile_of(profile), nodes)
    with locked(layout):
        if layout.root.exists():
            raise LabError(f"lab {name!r} is there already ({layout.root}): `fabrictool lab down --name {name}`, or another --name")
        layout.root.mkdir(parents=True, mode=0o755)
        try:
            _build(layout, plan, say)
        except BaseException as error:
            down.clear(layout)
            if isinstance(error, OSError):
                raise LabError(f"the lab could not be built: {error}. Its nodes need namespaces, veth and overlay mounts "
                               "(in a container: --privileged)") from error
            raise
    return Lab(layout)
