"""Random nodes and specs, from a seed. Every dimension of the property has its own function; `Case.text` says what was drawn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random

from fabrictool.lab import profiles
from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Function, default_dscp_map
from fabrictool.lab.plan import NodePlan, Profile, factory_state, node_plan
from fabrictool.spec import NodeSpec
from fabrictool.spec.schema import NODE
from tests.property.owners import draw_owners
from tests.property.root import Root
from tests.property.sim import Nic, Sim
from tests.property.wants import chance, draw_half, draw_spec

ERAS = ("2017", "5.1", "5.9.1", "23.10", "24.10", "25.01", "26.04", "26.07")
TOOLS = ("mlnx_qos", "dcb", "ethtool", "rdma", "ibv_devinfo", "nvidia-smi", "nmcli", "networkctl", "systemctl", "ip")
BROKEN = ("missing", "hangs", "traceback", "empty")
MLNX = ("no-python", "no-ps", "no-module", "cut", "noise", "applied-traceback", "applied-error", "applies-but-traceback")
DEFAULT_TC, IDENTITY = [1, 0, 2, 3, 4, 5, 6, 7], list(range(8))
# The H20's shape with three of its eight ports and one of its storage functions: a case stays quick.
H20 = replace(profiles.H20, devices=(*profiles.H20.devices[:3], profiles.H20.devices[8]))
SHAPES = (profiles.SPARK, profiles.SPARK, H20, profiles.PLAIN)


@dataclass
class Case:
    """`mine`: interfaces of the spec. `broken`: tools that do not work as they should."""

    seed: int
    want: NodeSpec
    sim: Sim
    plan: NodePlan
    mine: frozenset[str]
    text: dict[str, object] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    twins: frozenset[str] = frozenset()  # functions of the spec's cages that the spec does not name
    protected_twin: bool = False


def draw_registers(r: Random, f: Function, pfc: list[int]) -> None:
    """One port's QoS. `pfc`: the spec's priorities, so that right and nearly right states are as frequent as wild ones."""
    right = [int(p in pfc) for p in range(8)]
    f.trust = r.choice(("pcp", "dscp"))
    f.dscp_map = default_dscp_map()
    if f.trust == "dscp" and chance(r, 60):
        changed = {r.randrange(64): r.randrange(8) for _ in range(r.randrange(1, 6))} | ({26: r.randrange(8)} if chance(r, 50) else {})
        f.dscp_map = [changed.get(d, p) for d, p in enumerate(f.dscp_map)]
        if chance(r, 50):  # a table with holes: not set by mlnx_qos
            gone = {r.randrange(64) for _ in range(r.randrange(1, 20))}
            f.dscp_app = [[d, f.dscp_map[d]] for d in range(63, -1, -1) if d not in gone]
            f.dscp_map = [0 if d in gone else p for d, p in enumerate(f.dscp_map)]
    f.pfc = r.choice(([0] * 8, right, [0, 0, 0, 0, 1, 0, 0, 0], [r.randrange(2) for _ in range(8)]))
    f.prio_tc = r.choice((DEFAULT_TC, IDENTITY, [0] * 8, [r.randrange(8) for _ in range(8)])).copy()
    if chance(r, 15):
        f.tsa, f.tc_bw = ["ets"] * 8, [30, 10, 10, 10, 10, 10, 10, 10]
    elif chance(r, 30):
        f.tsa = ["strict"] * 8
    f.cable_len = r.choice((5, 7, 100))
    f.global_pause, f.dcbx_host = chance(r, 50), chance(r, 80)
    f.pause_tx = (not f.global_pause) if chance(r, 15) else None
    driver.headroom(f)
    if chance(r, 10):
        f.buffers_manual = True
        f.prio_buffer, f.buffer_size = [r.randrange(3) for _ in range(8)], [20016, r.choice((0, 156096)), 0, 0, 0, 0, 0, 0]
    elif chance(r, 6):
        f.buffer_size = []  # a driver without the view


SHARED = ("trust", "dscp_map", "dscp_app", "pfc", "prio_tc", "tsa", "tc_bw", "cable_len", "global_pause", "dcbx_host", "pause_tx",
          "buffers_manual", "prio_buffer", "buffer_size")


def draw_ports(r: Random, sim: Sim, pfc: list[int]) -> None:
    """Every port's registers; twins that share theirs have the same."""
    drawn: list[Function] = []
    for f in sim.state.functions.values():
        twin = next((t for t in drawn if t in driver.sharers(sim.state, f)), None)
        if twin is None:
            draw_registers(r, f, pfc)
        else:
            for name in SHARED:
                value = getattr(twin, name)
                setattr(f, name, value.copy() if isinstance(value, list) else value)
        drawn.append(f)


def draw_tools(r: Random, sim: Sim) -> dict[str, str]:
    """Which tools do not work. Most nodes are whole."""
    broken: dict[str, str] = {}
    while chance(r, 22):
        tool = r.choice(TOOLS)
        broken[tool] = r.choice((*BROKEN, *MLNX) if tool == "mlnx_qos" else BROKEN)
    sim.state.tools = dict(broken)
    return broken


def draw_links(r: Random, sim: Sim, case: dict[str, object]) -> None:
    for f in sim.state.functions.values():
        nic = sim.nics[f.interface]
        nic.mtu = r.choice((1500, 9000, 9000, 4200))
        nic.carrier = not chance(r, 4)
        nic.up = not chance(r, 2)
        if chance(r, 5):
            nic.high = 4500
        nic.mtu = min(nic.mtu, nic.high)
        f.gid_types = "v1" if chance(r, 3) else "both"
        f.tclass = "Global tclass=96\n" if chance(r, 3) else ""
        f.pcie_width = 2 if chance(r, 3) else f.pcie_width
        f.dcb = not chance(r, 2)
    if chance(r, 12):
        sim.state.qps = {r.choice(list(sim.state.functions.values())).rdma: 3}
    if chance(r, 5):
        first = next(iter(sim.state.functions))
        sim.ssh = f"10.10.1.9 50000 {sim.nics[first].addresses[0].split('/')[0]} 22"
    case |= {"qps": dict(sim.state.qps), "ssh": sim.ssh, "mtus": [n.mtu for n in sim.nics.values()]}


def draw_hosts(r: Random, root: Root, name: str, address: str) -> str:
    kind = r.choice(("factory", "factory", "right", "fqdn", "absent", "crlf", "peer wrong"))
    own = {"right": f"{address} {name}\n", "fqdn": f"127.0.1.1 {name}.lan {name}\n", "absent": ""}.get(kind, f"127.0.1.1 {name}\n")
    peers = "10.99.9.9 spark02 gpu02 node02 # old\n" if kind == "peer wrong" else ""
    text = f"127.0.0.1 localhost\n{own}{peers}\n::1 ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\n"
    root.write("/etc/hosts", text.replace("\n", "\r\n") if kind == "crlf" else text)
    root.write("/etc/nsswitch.conf", "passwd: files\nhosts: files dns\n")
    root.write("/etc/hostname", f"{name}\n")
    if chance(r, 20):
        at = r.choice(("/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d/50-site.cfg", "/etc/cloud/cloud.cfg.d/99-zz.cfg"))
        root.write(at, f"manage_etc_hosts: {r.choice(('true', 'false', 'localhost'))}\n")
        root.write("/etc/cloud/templates/hosts.debian.tmpl", "127.0.1.1 {{hostname}}\n")
    return kind


def draw_files(r: Random, root: Root, mine: list[str]) -> list[str]:
    """What stands in the environment's and the QoS persistence's places already."""
    drawn = []
    for path, text, mode, percent in (
            ("/etc/nccl.conf", "# site\nNCCL_DEBUG=WARN\nNCCL_IB_HCA=mlx5_9\nNCCL_NET_GDR_LEVEL=2\n", 0o644, 15),
            ("/etc/nccl.conf", "NCCL_IB_TC=96\r\nNCCL_IB_QPS_PER_CONNECTION=4\r\n", 0o644, 8),
            ("/etc/fabrictool/nccl.env", "NCCL_IB_HCA=old\n", 0o600, 15),
            ("/etc/profile.d/zz-site.sh", "export NCCL_IB_TC=8 FOO=1\n", 0o644, 8),
            ("/etc/environment", "NCCL_SOCKET_IFNAME=eth9\n", 0o644, 6),
            ("/etc/fabrictool/qos.sh", "#!/bin/sh\n# older\n", 0o755, 10),
            (f"/etc/systemd/system/fabrictool-qos-{mine[0]}.service", "[Unit]\nDescription=older\n[Install]\nWantedBy=multi-user.target\n",
             0o644, 10),
            ("/etc/systemd/system/roce.service", f"[Service]\nExecStart=/usr/bin/mlnx_qos -i {mine[0]} --trust pcp\n[Install]\n"
             "WantedBy=multi-user.target\n", 0o644, 5)):
        if chance(r, percent):
            root.write(path, text, mode)
            drawn.append(path)
    if "/etc/systemd/system/roce.service" in drawn and chance(r, 60):
        root.link("/etc/systemd/system/multi-user.target.wants/roce.service", str(root.at("/etc/systemd/system/roce.service")))
    root.write("/usr/lib/systemd/system/ssh.service", "[Service]\nExecStart=/usr/sbin/sshd -D\n[Install]\nWantedBy=multi-user.target\n")
    root.link("/etc/systemd/system/multi-user.target.wants/ssh.service", str(root.at("/usr/lib/systemd/system/ssh.service")))
    root.write("/etc/systemd/system/vllm.service", "[Service]\nExecStart=/usr/bin/vllm serve\n[Install]\nWantedBy=multi-user.target\n")
    return drawn


def bare(profile: Profile, number: int, root: Root) -> tuple[Sim, NodePlan]:
    """A node as delivered, with no file on it."""
    root.clear()
    plan = node_plan(profile, number)
    nics = {c.interface: Nic(c.interface, c.mac, (c.address, f"fe80::{number}:{i}/64"), i + 2) for i, c in enumerate(plan.cables)}
    management = plan.management.interface
    sim = Sim(factory_state(profile, plan), root, nics, management, f"192.168.1.1 50000 {plan.management.address.split('/')[0]} 22")
    for f in sim.state.functions.values():
        sim.ecn |= {f"/sys/class/net/{f.interface}/ecn/roce_{side}/enable/{p}": True for side in ("np", "rp") for p in range(8)}
    return sim, plan


def case(seed: int, root: Root) -> Case:
    """The case of a seed: the same on every machine."""
    r = Random(seed)
    profile = r.choice(SHAPES)
    sim, plan = bare(profile, 1, root)
    raw = draw_spec(r, profile, plan, node_plan(profile, 2).name)
    twins = draw_half(r, raw)
    want = NODE.validate_json(json.dumps(raw))
    state = sim.state
    state.era, state.twins_share = r.choice(ERAS), chance(r, 70)
    state.lldpad = chance(r, 4)
    pfc = (raw["fabric"]["qos"] or {}).get("pfc") or [3]
    draw_ports(r, sim, pfc)
    sim.ecn = {path: chance(r, 70) for path in sim.ecn}
    mine = [d.interface for d in profile.devices if d.rail and d.interface not in twins]
    text: dict[str, object] = {"shape": profile.name, "era": state.era, "twins": state.twins_share, "lldpad": state.lldpad}
    draw_links(r, sim, text)
    address = next(c.address for c in plan.cables if c.interface == (raw["bootstrap"] or mine[0])).split("/")[0]
    text["hosts"] = draw_hosts(r, root, plan.name, address)
    text["files"] = draw_files(r, root, mine)
    text["owners"] = draw_owners(r, sim, plan, mine, raw["fabric"]["mtu"] or 1500)
    broken = draw_tools(r, sim)
    if profile.name != "spark":
        sim.state.tools.setdefault("nmcli", "missing")
    if profile.name == "plain":
        sim.state.tools |= {"netplan": "missing", "networkctl": "missing"}
    text |= {"broken": broken, "qos": raw["fabric"]["qos"], "env": raw["env"], "bootstrap": raw["bootstrap"],
             "protected": raw["protected"], "mtu": raw["fabric"]["mtu"]}
    return Case(seed, want, sim, plan, frozenset(mine), text, broken, twins, bool(twins & set(raw["protected"])))

