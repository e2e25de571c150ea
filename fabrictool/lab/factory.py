"""A node's files as delivered. Pure: from the plan to texts. Everything a node's behaviour may hang on is written here, so that the
machine's own /etc makes no difference."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.lab.paths import INSIDE
from fabrictool.lab.plan import Cable, LabPlan, NodePlan, Owner

USER = "admin"
# Folders of which a node has its own, with nothing of the machine's in them.
OWN_FOLDERS: Mapping[str, int] = {
    "/root": 0o700, "/home": 0o755, "/opt": 0o755, "/srv": 0o755, "/mnt": 0o755, "/media": 0o755, "/boot": 0o755, "/var": 0o755,
    "/tmp": 0o1777, "/run": 0o755, "/proc": 0o555, "/sys": 0o555, "/dev": 0o755, "/usr/local": 0o755, "/usr/lib/systemd/system": 0o755,
    "/usr/lib/udev/rules.d": 0o755, "/usr/lib/netplan": 0o755, "/usr/lib/systemd/network": 0o755,
    "/etc/netplan": 0o755, "/etc/NetworkManager": 0o755, "/etc/systemd": 0o755, "/etc/sudoers.d": 0o750, "/etc/udev": 0o755,
    "/etc/profile.d": 0o755, "/etc/network": 0o755, "/etc/ssh": 0o755, "/etc/cloud": 0o755, "/etc/docker": 0o755,
    "/etc/infiniband": 0o755, "/etc/modprobe.d": 0o755, "/etc/security/limits.d": 0o755, "/etc/sysctl.d": 0o755, "/etc/cron.d": 0o755,
    "/etc/cron.daily": 0o755, "/etc/cron.hourly": 0o755, "/etc/init.d": 0o755, "/etc/default": 0o755, "/etc/environment.d": 0o755,
    "/etc/networkd-dispatcher": 0o755,
}
PLAIN_FOLDERS: Mapping[str, int] = {
    "/var/lib": 0o755, "/var/log": 0o755, "/var/cache": 0o755, "/var/spool": 0o755, "/var/tmp": 0o1777, "/var/mail": 0o2775,
    "/var/lib/sudo": 0o700, "/var/empty": 0o755, "/usr/local/bin": 0o755, "/usr/local/sbin": 0o755, "/usr/local/lib": 0o755,
    "/usr/local/etc": 0o755, "/etc/systemd/system": 0o755, "/etc/systemd/network": 0o755, "/etc/udev/rules.d": 0o755,
    "/etc/network/interfaces.d": 0o755, f"/home/{USER}": 0o750, f"/home/{USER}/.ssh": 0o700, "/root/.ssh": 0o700,
    "/etc/NetworkManager/system-connections": 0o700, "/etc/NetworkManager/conf.d": 0o755, "/etc/cloud/templates": 0o755,
    INSIDE: 0o755, f"{INSIDE}/lib": 0o755, f"{INSIDE}/python": 0o755, f"{INSIDE}/node": 0o755,
}
# Files of the machine that a delivered node does not have.
NOT_THERE = ("/etc/nccl.conf", "/etc/rc.local", "/etc/environment", "/etc/motd",
             "/etc/resolv.conf", "/etc/crontab", "/etc/ld.so.preload")

SSHD = f"""Port 22
ListenAddress 0.0.0.0
ListenAddress ::
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/sshd.pid
LogLevel VERBOSE
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 500:30:1000
MaxSessions 200
KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org
PrintMotd no
AcceptEnv LANG LC_*
AllowUsers root {USER}
Subsystem sftp internal-sftp
"""

SUDOERS = """Defaults env_reset
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
root ALL=(ALL:ALL) ALL
%sudo ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
"""

PROFILE = """PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
for f in /etc/profile.d/*.sh; do [ ! -r "$f" ] || . "$f"; done
unset f
"""

BASHRC = """case $- in *i*) ;; *) return ;; esac
PS1='\\u@\\h:\\w\\$ '
"""


@dataclass(frozen=True)
class File:
    text: str
    mode: int = 0o644
    user: bool = False  # belongs to the login user


def netplan_text(plan: LabPlan, node: NodePlan) -> dict[str, File]:
    """/etc/netplan as installers of such nodes leave it."""
    owner = plan.profile.owner
    if owner is Owner.NONE:
        return {}
    if owner is Owner.NETWORK_MANAGER:
        body = "".join(f"    {c.interface}:\n      dhcp4: false\n      addresses: [{c.address}]\n" for c in node.fabric)
        return {
            "/etc/netplan/01-network-manager-all.yaml": File("network:\n  version: 2\n  renderer: NetworkManager\n", 0o600),
            "/etc/netplan/40-cx7.yaml": File(f"network:\n  version: 2\n  ethernets:\n{body}", 0o600),
        }
    m = node.management
    head = "network:\n  version: 2\n  renderer: networkd\n  ethernets:\n"
    body = "".join(f"    {c.interface}:\n      match: {{macaddress: \"{c.mac}\"}}\n      set-name: {c.interface}\n"
                   f"      dhcp4: false\n      addresses: [{c.address}]\n" for c in node.fabric)
    return {
        "/etc/netplan/50-cloud-init.yaml": File(f"{head}    {m.interface}:\n      addresses: [{m.address}]\n", 0o600),
        "/etc/netplan/60-fabric.yaml": File(head + body, 0o600),
    }


def _management_profile(m: Cable, node: NodePlan) -> str:
    return (f"[connection]\nid=Wired connection 1\nuuid=6b0f0000-0000-4000-8000-{node.number:012x}\ntype=ethernet\n"
            f"interface-name={m.interface}\n\n[ethernet]\n\n[ipv4]\nmethod=manual\naddress1={m.address}\n\n[ipv6]\nmethod=auto\n")


def hosts_text(plan: LabPlan, node: NodePlan) -> str:
    """With the 127.0.1.1 line of Debian's and Ubuntu's installers. h20 nodes know their peers by management addresses."""
    lines = ["127.0.0.1 localhost", f"127.0.1.1 {node.name}", "", "::1 ip6-localhost ip6-loopback", "ff02::1 ip6-allnodes"]
    if plan.profile.owner is Owner.NETWORKD:
        lines += [f"{n.management.address.partition('/')[0]} {n.name}" for n in plan.nodes if n is not node]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Ssh:
    """Keys of a lab: `user`: public, of who drives it; `cluster` and `cluster_public`: with which nodes reach each other, as a cluster's
    users have it set up; `host`: the public key of each node."""

    user: str
    cluster: str
    cluster_public: str
    host: Mapping[str, str]


def known_hosts(plan: LabPlan, ssh: Ssh) -> str:
    """Every node by its name and all of its addresses."""
    lines = []
    for n in plan.nodes:
        names = ",".join([n.name, *(c.address.partition("/")[0] for c in n.cables)])
        lines.append(f"{names} {' '.join(ssh.host[n.name].split()[:2])}\n")
    return "".join(lines)


VENV = "/opt/lab-venv"


def venv() -> tuple[dict[str, File], dict[str, str]]:
    """An environment of the node's own Python with a stand-in of PyTorch in it: its files, and its links. `bin/python` is a script because
    the interpreter behind it may need to be told where its library is."""
    number = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = (f"#!/bin/sh\n# The lab's own Python, with a stand-in of PyTorch.\nLD_LIBRARY_PATH={INSIDE}/python/lib"
              f"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} exec {VENV}/bin/python{number} \"$@\"\n")
    found = {f"{VENV}/pyvenv.cfg": File(f"home = {INSIDE}/python/bin\ninclude-system-site-packages = false\nversion = {number}\n"),
             f"{VENV}/bin/python": File(python, 0o755), f"{VENV}/bin/python3": File(python, 0o755)}
    return found, {f"{VENV}/bin/python{number}": f"{INSIDE}/python/bin/python{number}",
                   f"{VENV}/lib/python{number}/site-packages/torch": f"{INSIDE}/lib/fabrictool/lab/nodeside/pytorch/torch"}


def logins(plan: LabPlan, ssh: Ssh) -> dict[str, File]:
    """What root and the user need to log in here, and from here on the other nodes."""
    found = {"/etc/ssh/ssh_known_hosts": File(known_hosts(plan, ssh))}
    for home, user in (("/root", False), (f"/home/{USER}", True)):
        found |= {f"{home}/.ssh/authorized_keys": File(ssh.user + ssh.cluster_public, 0o600, user),
                  f"{home}/.ssh/id_ed25519": File(ssh.cluster, 0o600, user),
                  f"{home}/.ssh/id_ed25519.pub": File(ssh.cluster_public, 0o644, user)}
    return found


def files(plan: LabPlan, node: NodePlan, ssh: Ssh) -> dict[str, File]:
    """Path -> file."""
    management = node.management
    found = {
        "/etc/hostname": File(f"{node.name}\n"),
        "/etc/hosts": File(hosts_text(plan, node)),
        "/etc/machine-id": File(f"{plan.name.encode().hex():0<24.24}{node.number:08x}\n", 0o444),
        "/etc/nsswitch.conf": File("passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"),
        "/etc/resolv.conf": File("# no name server: a lab node asks nobody\n"),
        "/etc/sudoers": File(SUDOERS, 0o440),
        f"/etc/sudoers.d/90-{USER}": File(f"{USER} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440),
        "/etc/ssh/sshd_config": File(SSHD),
        "/etc/profile": File(PROFILE),
        "/etc/bash.bashrc": File(""),
        "/root/.bashrc": File(BASHRC),
        f"/home/{USER}/.bashrc": File(BASHRC, user=True),
        f"/home/{USER}/.profile": File("[ -z \"$BASH_VERSION\" ] || . ~/.bashrc\n", user=True),
        "/var/log/lab-journal": File(""),
        **netplan_text(plan, node),
        **logins(plan, ssh),
        **venv()[0],
    }
    if plan.profile.owner is Owner.NETWORK_MANAGER:
        found["/etc/NetworkManager/system-connections/Wired connection 1.nmconnection"] = File(
            _management_profile(management, node), 0o600)
    return found
