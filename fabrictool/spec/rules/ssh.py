"""`ssh`: words that are safe in a command line and an ssh_config, host keys, and how root is reached."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabrictool.spec.problems import Problem, error, shown, warning
from fabrictool.spec.rules.view import Rule, View
from fabrictool.spec.schema import Sudo

USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?")
LONGEST = 255  # characters of a host name (RFC 1035: 255 octets); no user name is longer
HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")
HOP = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.\\-]*@)?"  # user@
                 r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*(?::[0-9]{1,5})?|[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,})")  # host, host:port, IPv6


def words(v: View) -> Iterator[Problem]:
    """Names and paths that end up in an ssh_config."""
    ssh = v.spec.ssh
    for field, value, shape in (("user", ssh.user, USER), ("host", ssh.host, HOST)):
        if value is None:
            continue
        if len(value) > LONGEST:
            yield error(v.at("ssh", field), f"the SSH {field} has {len(value)} characters: at most {LONGEST}")
        elif not shape.fullmatch(value):
            yield error(v.at("ssh", field), f"{shown(value)} is no SSH {field}")
    for hop in (ssh.jump or "").split(",") if ssh.jump is not None else ():
        if not HOP.fullmatch(hop) or any(len(part) > LONGEST for part in hop.split("@")):
            yield error(v.at("ssh", "jump"), f"{shown(hop)} is no jump host", "",
                        "write `bastion`, `user@bastion:22`, or several with commas and no blanks")
    for field, path in (("key", ssh.key), ("known_hosts", ssh.known_hosts), ("config", ssh.config)):
        if path is not None and (not path or any(not c.isprintable() for c in path)):
            yield error(v.at("ssh", field), f"{shown(path)} is no path")
        elif path is not None and (path.startswith("-") or (field == "key" and re.search(r"\s", path))):
            yield error(v.at("ssh", field), f"{shown(path)}: a path that begins with a dash or holds blanks",
                        "an ssh_config or a command line would read it as something else", "name it otherwise, such as ./FILE")


def jump_to_itself(v: View) -> Iterator[Problem]:
    """A jump host that would be reached through itself."""
    target = v.spec.ssh.host or (v.spec.name if v.count == 1 else None)
    for hop in (v.spec.ssh.jump or "").split(","):
        if target and hop.strip().rpartition("@")[2] == target:
            yield error(v.at("ssh", "jump"), f"{shown(target)} would be reached through itself", "",
                        "write `ssh: {jump: null}` for this node")


def host_keys(v: View) -> Iterator[Problem]:
    """Host keys of a fleet belong beside its spec."""
    if v.spec.ssh.known_hosts is None:
        yield warning(v.key("ssh"), "ssh has no known_hosts",
                      "host keys are then looked up in each admin's own file: a new admin has none",
                      "add `known_hosts: ./known_hosts` (verify the keys out of band)")


def root(v: View) -> Iterator[Problem]:
    """`sudo: root` logs in as root."""
    ssh = v.spec.ssh
    if ssh.sudo is Sudo.ROOT and ssh.user not in (None, "root"):
        yield error(v.at("ssh", "sudo"), f"sudo: root logs in as root, but user is {shown(ssh.user)}", "",
                    "write `user: root`, or sudo: ask or nopasswd")
    elif ssh.user == "root" and ssh.sudo is not Sudo.ROOT:
        yield warning(v.at("ssh", "sudo"), f"user root with sudo: {ssh.sudo}", "root needs no sudo", "write `sudo: root`")


RULES = (
    Rule(words, (("ssh",),)),
    Rule(jump_to_itself, (("ssh", "jump"), ("ssh", "host"))),
    Rule(host_keys, (("ssh", "known_hosts"),)),
    Rule(root, (("ssh", "sudo"), ("ssh", "user"))),
)
