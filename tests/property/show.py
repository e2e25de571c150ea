"""The sections of a snapshot as a simulated node gives them.

Each section's own text decides what is printed: its tool and words, its globs, its loop. Only the long scripts (writers, resolver,
cloud-init, consumers, places) are modelled by what they say of themselves; the test over real SSH holds the whole against the
collector's answers.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from fabrictool.lab.nodeside import sysfs
from fabrictool.lab.nodeside.tool import Answer
from fabrictool.snapshot import Captured, Section, Snapshot
from fabrictool.snapshot.sections import Each
from tests.property import scripts
from tests.property.root import globs_of, matcher, show_blanked, show_files, show_sysfs
from tests.property.sim import GONE, LATE, STANDINS, Sim

NET, RDMA = "/sys/class/net/", "/sys/class/infiniband/"
FOREVER = 4294967295


def sys_tree(sim: Sim) -> tuple[dict[str, str], dict[str, str]]:
    """(path -> text, path -> resolved link), by class paths: the stand-ins' part and the kernel's own."""
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    tree = sysfs.tree(sim.state, sim.links())
    bus = {f.interface: f.bus for f in sim.state.functions.values()} | {n.interface: n.bus for n in sim.state.nics.values()}
    device: dict[str, dict[str, str]] = {}
    for path, entry in tree.items():
        parts = path.split("/")
        if not isinstance(entry, sysfs.File):
            if parts[:2] == ["devices", "lab"] and parts[3:] == ["driver"]:
                links[f"driver of {parts[2]}"] = f"/sys/bus/pci/drivers/{entry.target.rsplit('/', 1)[1]}"
            continue
        text = f"{entry.text}\n" if entry.text else ""
        if parts[:3] == ["devices", "virtual", "net"]:
            files[NET + "/".join(parts[3:])] = text
        elif parts[:2] == ["devices", "lab"] and parts[3] == "infiniband":
            files[RDMA + "/".join(parts[4:])] = text
        elif parts[:2] == ["devices", "lab"] and len(parts) == 4:
            device.setdefault(parts[2], {})[parts[3]] = text
    for name, nic in sim.nics.items():
        files |= {f"{NET}{name}/{k}": v for k, v in {
            "ifindex": f"{nic.index}\n", "mtu": f"{nic.mtu}\n", "operstate": f"{nic.operstate.lower()}\n",
            "carrier_changes": f"{nic.changes}\n", "carrier": f"{int(nic.carrier)}\n" if nic.up else ""}.items()}
        if name in bus:
            files |= {f"{NET}{name}/device/{k}": v for k, v in device[bus[name]].items()}
            links |= {f"{NET}{name}/device": f"/sys/devices/lab/{bus[name]}",
                      f"{NET}{name}/device/driver": links[f"driver of {bus[name]}"]}
    files[f"{NET}lo/ifindex"] = "1\n"
    links |= {f"{RDMA}{f.rdma}/device": f"/sys/devices/lab/{f.bus}" for f in sim.state.functions.values()}
    links["/proc/self/exe"] = "/usr/bin/dash"
    files |= {path: f"{int(on)}\n" for path, on in sim.ecn.items()}
    for name in ("all", *sim.nics):
        files |= {f"/proc/sys/net/ipv4/conf/{name}/{k}": "0\n" for k in ("arp_ignore", "arp_announce", "rp_filter")}
    return files, links


def ip_addr(sim: Sim) -> str:
    """`ip -d -j addr show` of iproute2 6.1."""
    rows: list[dict[str, object]] = [{
        "ifindex": 1, "ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "mtu": 65536, "operstate": "UNKNOWN",
        "link_type": "loopback", "address": "00:00:00:00:00:00", "min_mtu": 0, "max_mtu": 0,
        "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8, "scope": "host", "label": "lo"}]}]
    for nic in sim.nics.values():
        flags = ["BROADCAST", "MULTICAST", *(["UP"] if nic.up else []), *(["LOWER_UP"] if nic.up and nic.carrier else ["NO-CARRIER"])]
        rows.append({
            "ifindex": nic.index, "ifname": nic.name, "flags": flags, "mtu": nic.mtu, "qdisc": "mq", "operstate": nic.operstate,
            "group": "default", "txqlen": 1000, "link_type": "ether", "address": nic.mac, "broadcast": "ff:ff:ff:ff:ff:ff",
            "promiscuity": 0, "min_mtu": nic.low, "max_mtu": nic.high, "num_tx_queues": 64, "gso_max_size": 65536,
            "addr_info": [{"family": "inet6" if ":" in a else "inet", "local": a.split("/")[0], "prefixlen": int(a.split("/")[1]),
                           "scope": "link" if a.startswith("fe80") else "global", "valid_life_time": FOREVER,
                           "preferred_life_time": FOREVER} for a in nic.addresses]})
    return json.dumps(rows) + "\n"


def dcb(sim: Sim, section: Section, item: str) -> Captured:
    """The loop over all objects, as its text runs it: one transcript, which a hanging tool ends."""
    if sim.state.tools.get("dcb") == "missing":
        return Captured(127, "", "dcb: not found\n")
    found = re.search(r"for o in ([a-z ]+); do", section.shell)
    assert found
    out = ""
    for name in found[1].split():
        got = sim.ask("dcb", "-j", name, "show", "dev", item)
        out += f"$ dcb -j {name} show dev {item}\n{got.out}{got.err}[rc={got.rc}]\n"
        if got.rc == 124:
            break
    return Captured(0, out)


def gids(files: Mapping[str, str], item: str) -> Captured:
    at = f"{RDMA}{item}/ports/1/"
    out = ""
    for n in sorted(p.rsplit("/", 1)[1] for p in files if p.startswith(f"{at}gids/")):
        gid, kind, dev = (files.get(f"{at}{w}/{n}", "").strip() for w in ("gids", "gid_attrs/types", "gid_attrs/ndevs"))
        if gid.strip("0:"):
            out += f"gid {n} {gid} ndev={dev} type={kind}\n"
    return Captured(0, f"{out}end of GIDs\n")


def command(sim: Sim, section: Section, item: str) -> Captured | None:
    """A tool's own words, with `&& echo END` behind them where the text has that."""
    m = re.fullmatch(r"(?:LC_ALL=C )?([a-z_-]+(?: [^;&|\n]+)?)(?: && echo (\S+))?", section.shell)
    if m is None:
        return None
    words = shlex.split(m[1].replace('"$1"', shlex.quote(item)))
    got = kernel(sim, words) if words[0] == "ip" else sim.ask(*words, root=section.root) if words[0] in STANDINS else None
    if got is None:
        return None
    out = got.out + (f"{m[2]}\n" if m[2] and got.rc == 0 else "")
    return Captured(got.rc, out, got.err)


def kernel(sim: Sim, words: list[str]) -> Answer:
    """The real `ip`, as far as a section asks it."""
    mode = sim.state.tools.get("ip", "ok")
    if mode != "ok":
        return {"missing": GONE, "hangs": LATE}.get(mode, Answer(1, "", "Cannot open netlink socket\n"))
    default = [{"dst": "default", "gateway": "192.168.1.1", "dev": sim.management, "flags": []}]
    answers = {"-d -j addr show": ip_addr(sim), "-4 -j route show default": json.dumps(default) + "\n", "-6 -j route show default": "[]\n"}
    return Answer(0, answers[" ".join(words[1:])])


def one(sim: Sim, section: Section, item: str, files: Mapping[str, str], links: Mapping[str, str], peers: tuple[str, ...]) -> Captured:
    globs = globs_of(section.shell, item)
    special = scripts.SCRIPTS.get(section.name)
    if special is not None:
        return special(sim, peers)
    if section.name == "qos.dcb":
        return dcb(sim, section, item)
    if section.name == "rdma.gids":
        return gids(files, item)
    if section.name == "rdma.tclass":
        return Captured(0, f"file\n{files.get(f'{RDMA}{item}/tc/1/traffic_class', '')}end of file\n")
    if section.name == "ports.ssh_route":
        if not sim.ssh:
            return Captured(3, "")
        return Captured(0, json.dumps([{"dst": sim.ssh.split()[0], "dev": scripts.holder(sim, sim.ssh.split()[2]), "flags": []}]) + "\n")
    if section.name == "link.netplan_tool":
        return Captured(0, "no\n" if sim.state.tools.get("netplan") == "missing" else "yes\n")
    if globs is not None and section.shell.startswith("grep -sH"):
        return Captured(0, show_sysfs(files, matcher(globs)))
    if globs is not None and 'printf "%s -> %s' in section.shell:
        pattern = matcher(globs)
        return Captured(0, "".join(f"{p} -> {t}\n" for p, t in links.items() if pattern.fullmatch(p)))
    if globs is not None and "sed -E" in section.shell:
        return Captured(0, show_blanked(sim.root, globs, section.root))
    if globs is not None and "printf \"@ file" in section.shell:
        return Captured(0, show_files(sim.root, globs, section.root))
    got = command(sim, section, item)
    assert got is not None, f"the simulated node cannot run the section {section.name}: {section.shell[:200]}"
    return got


def snapshot(sim: Sim, sections: tuple[Section, ...], peers: tuple[str, ...]) -> Snapshot:
    """One remote exec. Sections that nothing has changed since they were last printed are printed again as they were."""
    sim.tree = sim.tree or sys_tree(sim)
    files, links = sim.tree
    sim.reads += 1
    items = {Each.NODE: [""], Each.PEERS: [""], Each.NETDEV: list(sim.nics),
             Each.RDMA: [f.rdma for f in sim.state.functions.values()]}
    found: dict[str, Captured] = {}
    for section in sections:
        for item in items[section.each]:
            key = f"{section.name}[{item}]" if item else section.name
            if key not in sim.shown:
                plain = section.name.startswith(("ports.", "rdma.", "qos.")) and section.name not in (*scripts.SCRIPTS, "qos.files")
                sim.shown[key] = plain, one(sim, section, item, files, links, peers)
            found[key] = sim.shown[key][1]
    return Snapshot(sim.state.name, found, None, "2026-01-01T00:00:00+00:00", sim.ssh, 1000)
