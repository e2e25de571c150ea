"""The spec as a pyinfra inventory. Our own engine takes the same list.

An inventory file has three lines, so that plain pyinfra takes it too:

    from fabrictool.spec.inventory import hosts

    nodes = hosts(__file__)
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from fabrictool.spec import sshconfig
from fabrictool.spec.problems import Mark, SpecError, error
from fabrictool.spec.resolve import Site, load_site
from fabrictool.spec.schema import NODE, NodeSpec, SshSpec, Sudo
from fabrictool.spec.select import select

__all__ = ["host_data", "hosts", "load_site", "select"]

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
Hosts = list[tuple[str, dict[str, Json]]]


def hosts(py_file: str, spec: str | None = None) -> Hosts:
    """pyinfra hosts for the YAML beside `py_file` (pass `__file__`), or for `spec`, a path relative to it.

    Raises:
        SpecError: the spec has errors. Under pyinfra it is a PyinfraError as well, which pyinfra prints without a traceback.
    """
    path = Path(py_file)
    try:
        site = load_site(path.parent / spec if spec else path)
        return [(n.name, dict(host_data(site, n))) for n in site.nodes]
    except SpecError as e:
        raise _for_pyinfra(e) from None


def _for_pyinfra(e: SpecError) -> SpecError:
    """The same error as a subclass of pyinfra's own, if pyinfra is what runs us. The spec itself imports no pyinfra."""
    base = getattr(sys.modules.get("pyinfra.api.exceptions"), "PyinfraError", None)
    if base is None:
        return e
    both = type("SpecError", (SpecError, base), {"__module__": SpecError.__module__, "message": f"the spec cannot be used\n{e}"})
    made: SpecError = both(e.problems)
    return made


def host_data(site: Site, node: NodeSpec) -> Mapping[str, Json]:
    """pyinfra's data of one host: `fabric` (the NodeSpec as JSON) and the SSH settings that the spec gives. Paths are absolute.

    Where the spec says nothing, ~/.ssh/config and pyinfra's own defaults decide. Host keys are always checked.

    Raises:
        SpecError: the jump host cannot be used.
    """
    ssh, base = node.ssh, site.path.resolve().parent
    wanted: dict[str, Json] = {
        "ssh_hostname": ssh.host,
        "ssh_user": ssh.user or ("root" if ssh.sudo is Sudo.ROOT else None),
        "ssh_port": ssh.port,
        "ssh_key": _path(base, ssh.key),
        "ssh_known_hosts_file": _path(base, ssh.known_hosts),
        "ssh_strict_host_key_checking": "yes",
        "ssh_config_file": _jump(site, node, base) if ssh.jump else _path(base, ssh.config),
    }
    return {"fabric": NODE.dump_python(node, mode="json"), **{k: v for k, v in wanted.items() if v is not None}}


def _path(base: Path, path: str | None) -> str | None:
    """Relative to the spec's folder; ~ is the admin's home."""
    return None if path is None else os.path.abspath(base / os.path.expanduser(path))


def _jump(site: Site, node: NodeSpec, base: Path) -> str:
    ssh = node.ssh
    known_hosts, key = _path(base, ssh.known_hosts), _path(base, ssh.key)
    try:
        if known_hosts and len(known_hosts.split()) != 1:
            raise sshconfig.JumpError(f"known_hosts {known_hosts}: a path with blanks cannot stand in an ssh_config")
        own = sshconfig.own_config(_path(base, ssh.config))
        if sshconfig.lookup_in(own)(ssh.host or node.name).get("proxycommand"):
            raise sshconfig.JumpError(f"{own} has a ProxyCommand for this node, which would win over the jump: remove one")
        return _jump_file(ssh.jump or "", own, known_hosts, key)
    except sshconfig.JumpError as e:
        raise SpecError([error(Mark(os.fspath(site.path)), f"node {node.name}: ssh.jump: {e.why}")]) from None


@lru_cache(maxsize=64)
def _jump_file(jump: str, own: Path, known_hosts: str | None, key: str | None) -> str:
    text = sshconfig.render(sshconfig.chain(jump, sshconfig.lookup_in(own)), own, known_hosts, key)
    return os.fspath(sshconfig.store(text, hashlib.sha256(text.encode()).hexdigest()))


def ssh_target(name: str, ssh: SshSpec) -> str:
    """`admin@192.168.1.11:22 via bastion`: how a node is reached, for people; only what the spec says."""
    user = ssh.user or ("root" if ssh.sudo is Sudo.ROOT else "")
    port = f":{ssh.port}" if ssh.port else ""
    return (f"{user}@" if user else "") + (ssh.host or name) + port + (f" via {ssh.jump}" if ssh.jump else "")
