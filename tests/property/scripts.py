"""What the long scripts among the sections say of a simulated node, from its files and its state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from fabrictool.snapshot import Captured
from tests.property.sim import Sim

BOOTED = 1_700_000_000
VARIABLE = re.compile(r"(NCCL_|GLOO_|UCX_)\w+|TP_SOCKET_IFNAME|MASTER_ADDR|VLLM_HOST_IP|SGLANG_HOST_IP|HOST_IP|CUTE_DSL_ARCH")
WORD = re.compile(r"""(?:[^\s"';&|()\\]|\\.|"(?:\\.|[^"\\])*"|'[^']*')+""")
OURS = ("/etc/nccl.conf", "/etc/fabrictool/nccl.env", "/etc/profile.d/fabrictool.sh")


def holder(sim: Sim, address: str) -> str:
    return next(n.name for n in sim.nics.values() if any(a.split("/")[0] == address for a in n.addresses))


def resolved(sim: Sim, peers: tuple[str, ...]) -> Captured:
    """peers.sh: getent over /etc/hosts alone (the nodes have no name server)."""
    out = f"self {sim.state.name}\n"
    for name in dict.fromkeys((sim.state.name, *peers)):
        found: dict[str, str] = {}
        for line in (sim.root.read("/etc/hosts") or "").split("\n"):
            words = line.partition("#")[0].split()
            if name in words[1:]:
                found.setdefault(words[0], words[1])
        out += f"r {0 if found else 2} {name}\n" + "".join(f"a {a} {c}\n" for a, c in found.items())
    return Captured(0, f"{out}end\n")


def cloud(sim: Sim, peers: tuple[str, ...]) -> Captured:
    root = sim.root
    if not root.at("/etc/cloud").is_dir():
        return Captured(0, "absent\nend\n")
    out = ""
    for pattern in ("/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d/*.cfg", "/var/lib/cloud/instance/cloud-config.txt"):
        for path in root.expand(pattern):
            said = re.findall(r"^manage_etc_hosts\s*:\s*([A-Za-z\"']*)", root.read(path) or "", re.M)
            out += f"set {said[-1] or '-'} {path}\n" if said else ""
    for path in root.expand("/etc/cloud/templates/hosts.*.tmpl"):
        out += f"template {path}\n" if root.read(path) is not None else ""
    return Captured(0, f"{out}end\n")


def consumers(sim: Sim, peers: tuple[str, ...]) -> Captured:
    """Nothing runs, and docker is not installed."""
    there = [p for p in (*OURS, *sim.root.expand("/etc/systemd/system/*.d/50-fabrictool.conf")) if sim.root.read(p) is not None]
    return Captured(0, "".join(f"m {BOOTED + 100} {p}\n" for p in there) + f"boot {BOOTED}\ndocker absent 0 -\nend\n")


def places(sim: Sim, peers: tuple[str, ...]) -> Captured:
    return Captured(0, "".join(_places(sim)) + "end\n")


def _places(sim: Sim) -> Iterator[str]:
    kinds = (("conf", "/root/.nccl.conf"), ("pam", "/etc/environment"), ("shell", "/etc/profile"), ("shell", "/etc/profile.d/*.sh"),
             ("unit", "/etc/systemd/system/*.service"), ("unit", "/etc/systemd/system/*.service.d/*.conf"))
    for style, pattern in kinds:
        for path in sim.root.expand(pattern):
            text = sim.root.read(path)
            if text is None or (style == "unit" and not VARIABLE.search(text)):
                continue
            yield f"@ {style} {path}\n"
            for number, line in enumerate(text.split("\n"), 1):
                yield from (f"a {number} {word}\n" for word in _assignments(style, line))


def _assignments(style: str, line: str) -> Iterator[str]:
    if style in ("conf", "pam"):
        key = re.sub(r"^\s*(export\s+)?", "", line.partition("=")[0]).strip()
        if "=" in line and VARIABLE.fullmatch(key):
            yield line
        return
    if not line.lstrip().startswith(("#", ";")):
        for word in WORD.findall(re.sub(r"^\s*Environment\s*=\s*", "", line)):
            if VARIABLE.fullmatch(word.lstrip("\"'").partition("=")[0]) and "=" in word:
                yield word


def processes(sim: Sim, peers: tuple[str, ...]) -> Captured:
    return Captured(0, "/proc/1/comm:systemd\n" + ("/proc/900/comm:lldpad\n" if sim.state.lldpad else ""))


def writers(sim: Sim, peers: tuple[str, ...]) -> Captured:
    """Lines that set QoS, in the places that the tests put files into."""
    out, count = "", 0
    for pattern in ("/etc/systemd/system/*.service", "/etc/rc.local", "/etc/udev/rules.d/*.rules", "/etc/fabrictool/qos.sh"):
        for path in sim.root.expand(pattern):
            text = sim.root.read(path)
            count += text is not None
            out += "".join(f"{path}:{n}:{line}\n" for n, line in enumerate((text or "").split("\n"), 1)
                           if re.search(r"mlnx_qos|ethtool +-A ", line))
    return Captured(0, f"{out}# files read: {count}\n")


def units(sim: Sim, peers: tuple[str, ...]) -> Captured:
    """is-enabled of our units, then the links that start something."""
    if sim.state.tools.get("systemctl") == "hangs":
        return Captured(124, "")
    version = sim.ask("systemctl", "--version")
    out = f"systemctl says {(version.out + version.err).split(chr(10))[0]}\n"
    for path in sim.root.expand("/etc/systemd/system/fabrictool-qos-*.service"):
        if sim.root.read(path) is not None:
            unit = path.rsplit("/", 1)[1]
            got = sim.ask("systemctl", "is-enabled", unit)
            out += f"{unit} is-enabled {(got.out + got.err).split(chr(10))[0]}\n"
    for path in (p for d in ("wants", "requires") for p in sim.root.expand(f"/etc/systemd/system/*.{d}/*")):
        if sim.root.at(path).is_symlink():
            out += f"{path.rsplit('/', 1)[1]} wanted-by {path.rsplit('/', 1)[0]}\n"
    return Captured(0, f"{out}# end of units\n")


SCRIPTS: Mapping[str, Callable[[Sim, tuple[str, ...]], Captured]] = {
    "names.resolved": resolved, "names.cloud": cloud, "consumers": consumers, "env.places": places,
    "qos.processes": processes, "qos.writers": writers, "qos.units": units,
}
