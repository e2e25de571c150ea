"""Faults of names, environment, and of the way into a node."""

from __future__ import annotations

import re

from fabrictool.lab.errors import LabError
from fabrictool.lab.fault_kit import (
    Apply,
    Fault,
    LabLike,
    Scope,
    blind,
    first,
    fixed,
    rewrite,
    sh,
    stuck,
    unseen,
    warned,
)

HOSTS = "/etc/hosts"
NCCL_CONF = "/etc/nccl.conf"
DOCKER_ENV = "/etc/fabrictool/nccl.env"
USER = "admin"
APPLY_FIRST = "apply the spec first"


# --- names --------------------------------------------------------------------------------------------------------------------

def loopback(lab: LabLike, node: str, function: str) -> None:
    """The installer's 127.0.1.1 line is back, before any other of the node's own name."""
    def change(text: str) -> str:
        lines = [ln for ln in text.splitlines() if node not in ln.partition("#")[0].split()[1:]]
        return "\n".join([f"127.0.1.1 {node}", *lines, ""])
    rewrite(lab, node, HOSTS, change, APPLY_FIRST)


def other_address(lab: LabLike, node: str, function: str) -> None:
    """A peer's name leads to another address than everywhere else."""
    def change(text: str) -> str:
        out, done = [], False
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            peer = len(words) > 1 and node not in words[1:] and re.fullmatch(r"\d+\.\d+\.\d+\.\d+", words[0])
            if peer and not done and not words[0].startswith("127."):
                line, done = line.replace(words[0], "10.99.0.99", 1), True
            out.append(line)
        return "\n".join([*out, ""])
    rewrite(lab, node, HOSTS, change, "the hosts file names no peer yet: " + APPLY_FIRST)


def template(lab: LabLike, node: str, function: str) -> None:
    """cloud-init manages /etc/hosts and would write the loopback line again at the next boot."""
    lab.write_file(node, "/etc/cloud/cloud.cfg", "users:\n  - default\nmanage_etc_hosts: true\n")
    lab.write_file(node, "/etc/cloud/templates/hosts.debian.tmpl",
                   "## template:jinja\n127.0.1.1 {{fqdn}} {{hostname}}\n127.0.0.1 localhost\n::1 localhost ip6-localhost\n")


# --- environment --------------------------------------------------------------------------------------------------------------

def setting(name: str, value: str) -> Apply:
    """Somebody's line in /etc/nccl.conf: it replaces the one of that name."""
    def apply(lab: LabLike, node: str, function: str) -> None:
        rewrite(lab, node, _env_file(lab, node), lambda text: replaced(text, name, value), APPLY_FIRST)
    return apply


def replaced(text: str, name: str, value: str) -> str:
    """An environment file with another value."""
    return "\n".join([*(ln for ln in text.splitlines() if not ln.startswith(f"{name}=")), f"{name}={value}", ""])


def _env_file(lab: LabLike, node: str) -> str:
    """The file that the node's spec has written: nccl.conf, else the container's file."""
    return next((p for p in (NCCL_CONF, DOCKER_ENV) if lab.read_file(node, p) is not None), NCCL_CONF)


def stale_consumer(lab: LabLike, node: str, function: str) -> None:
    """A running container that was started with other values: a real process with a real environment."""
    name = "sglang-main" if "gpu" in node else "vllm-main"
    out = sh(lab, node, 'env -i PATH=/usr/bin:/bin NCCL_IB_TC=96 NCCL_SOCKET_IFNAME="$1" sleep 1000000 </dev/null >/dev/null 2>&1 &\n'
                        "echo $!", first(lab, node, function).interface)
    if not out.strip().isdigit():
        raise LabError(f"{node}: the container's process did not start: {out.strip()[:100]}")
    with lab.edit_state(node) as state:
        state.containers.append({"name": name, "pid": int(out), "image": "example/serve:1"})


def own_file(lab: LabLike, node: str, function: str) -> None:
    """Root's own file has precedence over the system's."""
    lab.write_file(node, "/root/.nccl.conf", "NCCL_IB_TC=0\n")


# --- the way in ---------------------------------------------------------------------------------------------------------------

def sudo_password(lab: LabLike, node: str, function: str) -> None:
    lab.write_file(node, f"/etc/sudoers.d/90-{USER}", f"{USER} ALL=(ALL:ALL) ALL\n", 0o440)


def before_prompt(line: str) -> Apply:
    """A line in the shell's start file, above the test for an interactive shell."""
    def apply(lab: LabLike, node: str, function: str) -> None:
        for home in (f"/home/{USER}", "/root"):
            lab.write_file(node, f"{home}/.bashrc", line + "\n" + (lab.read_file(node, f"{home}/.bashrc") or ""))
    return apply


def readonly_etc(lab: LabLike, node: str, function: str) -> None:
    sh(lab, node, "mount --bind /etc /etc && mount -o remount,bind,ro /etc")


def hidden(tool: str) -> Apply:
    return lambda lab, node, function: lab.hide_tool(node, tool)


NAMES: tuple[Fault, ...] = (
    Fault("hosts-loopback", "the node's own name leads to 127.0.1.1", loopback, fixed("NAME_LOOPBACK")),
    Fault("hosts-differ", "a peer's name leads to another address on this node", other_address, fixed("NAME_DIFFERS")),
    Fault("cloud-init-hosts", "a template would write the loopback line again at the next boot", template, fixed("NAME_TEMPLATE")),
)

ENV: tuple[Fault, ...] = (
    Fault("env-edited", "the traffic class in the NCCL file was changed by hand", setting("NCCL_IB_TC", "96"),
          fixed("ENV_FILE_DRIFT")),
    Fault("env-ghost-if", "the NCCL file names an interface that the node does not have", setting("NCCL_SOCKET_IFNAME", "enp99s0f0np0"),
          fixed("ENV_FILE_DRIFT", "ENV_NO_SUCH_INTERFACE")),
    Fault("gid-pinned", "the NCCL file pins a GID index", setting("NCCL_IB_GID_INDEX", "3"), stuck("GID_PINNED")),
    Fault("debug-left-on", "the NCCL file still asks for debug output", setting("NCCL_DEBUG", "INFO"),
          warned("ENV_DEBUG_LEFT_ON")),
    Fault("own-env-file", "root's own NCCL file overrides the system's", own_file, stuck("ENV_OVERRIDE"), profiles=("spark", "plain")),
    Fault("stale-consumer", "a container still runs with the old environment", stale_consumer,
          stuck("ENV_OVERRIDE", "ENV_RESTART_NEEDED"),
          Scope.FUNCTION, profiles=("spark", "h20")),
)

ACCESS: tuple[Fault, ...] = (
    Fault("sudo-password", "sudo asks for a password", sudo_password, blind("NEEDS_ROOT")),
    Fault("needs-root", "the login user may not become root: there is no sudo", hidden("sudo"), blind("NEEDS_ROOT")),
    Fault("bashrc-slow", "the shell's start file takes 5 seconds", before_prompt("sleep 5"), unseen()),
    Fault("bashrc-noisy", "the shell's start file prints text", before_prompt("echo 'Welcome! Have a lot of fun ...'; printf '\\377\\n'"),
          unseen()),
    Fault("disk-full", "the disk is full", lambda lab, node, function: lab.disk_full(node, True), unseen()),
    Fault("etc-readonly", "/etc is mounted read-only", readonly_etc, unseen()),
    Fault("no-python", "the node has no Python", hidden("python3"), unseen()),
    Fault("hostkey-changed", "the node's SSH host key is another one", lambda lab, node, function: lab.new_host_key(node),
          blind("HOST_KEY_CHANGED")),
    Fault("unreachable", "sshd does not run", lambda lab, node, function: lab.sshd(node, False), blind("UNREACHABLE")),
    Fault("port-closed", "nothing listens at the node's SSH address", lambda lab, node, function: lab.forward(node, "closed"),
          blind("UNREACHABLE")),
    Fault("banner-hangs", "the SSH port accepts and says nothing", lambda lab, node, function: lab.forward(node, "hang-before-banner"),
          blind("UNREACHABLE")),
    Fault("login-hangs", "the SSH login never ends", lambda lab, node, function: lab.forward(node, "hang-in-login"),
          blind("UNREACHABLE")),
)
