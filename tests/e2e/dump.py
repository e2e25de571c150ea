"""Everything that a node's configuration is, as lines of text that two labs have in common when they are in the same state.

Taken from outside of the tool under test: the registers of the lab's state model, the kernel's interfaces, the files by `tar`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
from dataclasses import asdict

from fabrictool.lab.handle import Lab

Dump = tuple[str, ...]

RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
FOLDERS = ("etc", "run", "var/lib/fabrictool", "root", "home")
# Different in any two labs (keys, password hash), or of processes that come and go.
OWN = re.compile(r"etc/ssh/ssh_(host_|known_hosts$)|etc/g?shadow$|etc/machine-id$|.*/\.ssh/(authorized_keys|id_ed25519(\.pub)?)$"
                 r"|run/sshd\.pid$|run/sudo(/|$)"
                 r"|run/lab-(tools|hardware)$|home/admin/\.sudo_as_admin_successful$|.*\.cache(/|$)")
LONG = 4000  # characters; longer files stand as their digest


def dump(lab: Lab, node: str) -> Dump:
    """One line for each register, interface, file, folder and link. Run ids and the lab's name are replaced."""
    lines = [*_registers(lab, node), *_interfaces(lab, node), *_files(lab, node)]
    return tuple(sorted(RUN_ID.sub("RUN", line).replace(lab.layout.name, "LAB") for line in lines))


def dumps(lab: Lab) -> dict[str, Dump]:
    return {node: dump(lab, node) for node in lab.nodes}


def ctimes(lab: Lab, node: str) -> Dump:
    """When each inode under /etc was last changed in any way, content, mode or name."""
    done = lab.exec(node, ["find", "/etc", "-printf", "%p %i %C@\n"])
    assert done.ok, done.err
    return tuple(sorted(done.out.splitlines()))


def only_in(one: Dump, two: Dump) -> tuple[str, ...]:
    """Lines of `one` that `two` lacks."""
    return tuple(sorted(set(one) - set(two)))


def text_of(dump: Dump, path: str) -> str:
    """The line of a file; "" if there is none."""
    return next((line for line in dump if line.startswith(f"file {path} ")), "")


def _registers(lab: Lab, node: str) -> list[str]:
    state = asdict(lab.state(node))
    functions = state.pop("functions")
    state["kernel_log"] = [text for _, text in state["kernel_log"]]  # the lines begin at the boot: two labs do not boot at one time
    lines = [f"register {name}.{key} = {json.dumps(value)}" for name, fn in functions.items() for key, value in fn.items()]
    return lines + [f"node {key} = {json.dumps(value, sort_keys=True)}" for key, value in state.items()]


def _interfaces(lab: Lab, node: str) -> list[str]:
    done = lab.exec(node, ["ip", "-j", "addr"])
    assert done.ok, done.err
    lines = []
    for i in json.loads(done.out):
        addresses = sorted(f"{a['local']}/{a['prefixlen']}" for a in i["addr_info"])
        lines.append(f"interface {i['ifname']} {i['address']} mtu {i['mtu']} {i['operstate']} {' '.join(addresses)}")
    routes = lab.exec(node, ["ip", "route"])
    assert routes.ok, routes.err
    return [*lines, *(f"route {' '.join(line.split())}" for line in routes.out.splitlines())]


def _files(lab: Lab, node: str) -> list[str]:
    there = " ".join(f"$([ -e /{f} ] && echo {f})" for f in FOLDERS)
    done = lab.exec(node, ["sh", "-c", f"cd / && tar -c --sort=name {there} 2>/dev/null | base64"])
    assert done.ok, done.err
    lines = []
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(done.out))) as archive:
        for member in archive:
            if OWN.match(member.name):
                continue
            kind = "file" if member.isfile() else "link" if member.issym() else "folder" if member.isdir() else "other"
            handle = archive.extractfile(member) if member.isfile() else None
            content = handle.read() if handle else member.linkname.encode()
            text = content.decode("utf-8", "backslashreplace")
            shown = repr(text) if len(text) <= LONG else f"sha256 {hashlib.sha256(content).hexdigest()}"
            lines.append(f"{kind} /{member.name} {member.mode:04o} {member.uid}:{member.gid} {shown}")
    assert any(line.startswith("file /etc/hosts ") for line in lines), "the archive holds no /etc/hosts"
    return lines
