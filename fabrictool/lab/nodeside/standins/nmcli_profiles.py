"""NetworkManager's Ethernet profiles: which there are, which is active on what, and changing one key of one."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from fabrictool.lab.nodeside import netconf
from fabrictool.lab.nodeside.tool import Link


@dataclass(frozen=True)
class Profile:
    """`path` None: automatic, in memory only."""

    name: str
    uuid: str
    path: Path | None
    mtu: int
    method: str
    device: str
    autoconnect: bool = True


def _uuid(key: netconf.Keyfile) -> str:
    return key.uuid or str(uuid.uuid5(uuid.NAMESPACE_URL, str(key.path)))


def managed(link: Link) -> bool:
    """Not by networkd."""
    return netconf.network_of(link.name, link.mac) is None


def profiles(links: dict[str, Link]) -> list[Profile]:
    """All profiles; the first that fits an interface is active on it."""
    keys = netconf.keyfiles()
    active: dict[Path, str] = {}
    automatic = []
    taken = {k.id for k in keys}
    for link in links.values():
        if not managed(link):
            continue
        fit = next((k for k in keys if k.autoconnect and k.path not in active and k.fits(link.name, link.mac)), None)
        if fit is not None:
            active[fit.path] = link.name
            continue
        number = next(n for n in range(1, 99) if f"Wired connection {n}" not in taken)
        name = f"Wired connection {number}"
        taken.add(name)
        automatic.append(Profile(name, str(uuid.uuid5(uuid.NAMESPACE_URL, link.mac)), None, 0, "auto", link.name))
    return [Profile(k.id, _uuid(k), k.path, k.mtu, k.method, active.get(k.path, ""), k.autoconnect) for k in keys] + automatic


def write(profile: Profile, section: str, key: str, value: str) -> None:
    """One key of the profile's file. An automatic profile becomes a file by being changed, as in NetworkManager."""
    path = profile.path or Path(netconf.KEYFILE_DIRS[0], f"{profile.name}.nmconnection")
    if profile.path is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (f"[connection]\nid={profile.name}\nuuid={profile.uuid}\ntype=ethernet\ninterface-name={profile.device}\n\n"
                "[ethernet]\n\n[ipv4]\nmethod=auto\n")
    else:
        text = path.read_text()
    out: list[str] = []
    inside = done = False
    for line in [*text.splitlines(), "[]"]:
        if line.startswith("["):
            if inside and value and not done:
                at = len(out)
                while at and not out[at - 1].strip():
                    at -= 1
                out.insert(at, f"{key}={value}")
                done = True
            inside = line in (f"[{section}]", f"[802-3-{section}]")
            done = done and not inside
        elif inside and line.split("=")[0].strip() == key:
            if value:
                out.append(f"{key}={value}")
            done = True
            continue
        out.append(line)
    body = "\n".join(out[:-1]) + "\n"
    if value and f"{key}={value}" not in body.splitlines():
        body += f"\n[{section}]\n{key}={value}\n"
    temp = path.with_name(f".{path.name}.new")
    temp.write_text(body)
    os.chmod(temp, 0o600)
    temp.replace(path)
