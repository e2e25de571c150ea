"""A drawn case put onto the nodes of a lab, and its spec into the lab's inventory: what is simulated elsewhere, over real SSH."""

from __future__ import annotations

import dataclasses
import json
from random import Random
from typing import Any

import yaml

from fabrictool.lab import profiles
from fabrictool.lab.handle import Lab
from fabrictool.lab.nodeside.state import Function
from fabrictool.lab.plan import node_plan
from tests.property.cases import ERAS, bare, draw_files, draw_hosts, draw_ports
from tests.property.owners import draw_owners
from tests.property.root import Root
from tests.property.sim import Sim
from tests.property.wants import chance, draw_spec

PROFILE = profiles.SPARK
# Modes in which a tool of a node may be: those that need no minutes. "ok" stands for itself.
MODES = (("mlnx_qos", "applied-traceback"), ("mlnx_qos", "applies-but-traceback"), ("mlnx_qos", "traceback"), ("mlnx_qos", "no-ps"),
         ("dcb", "traceback"), ("dcb", "missing"), ("rdma", "traceback"), ("nmcli", "traceback"), ("ethtool", "empty"),
         ("ibv_devinfo", "missing"), ("systemctl", "traceback"), ("nvidia-smi", "missing"))
WIPE = """
rm -rf /etc/netplan/* /etc/NetworkManager/system-connections/fabric-* /etc/systemd/network/* /etc/network/interfaces /etc/nccl.conf \
  /etc/fabrictool /etc/profile.d/fabrictool.sh /etc/profile.d/zz-site.sh /etc/environment /etc/systemd/system/* /etc/cloud/* \
  /etc/udev/rules.d/90-fabrictool* /var/lib/fabrictool /run/fabrictool.lock
systemctl daemon-reload
"""


def spec(r: Random) -> dict[str, Any]:
    """A spec that lint lets pass, for the whole group."""
    raw = draw_spec(r, PROFILE, node_plan(PROFILE, 1), "spark02")
    for port in raw["ports"].values():
        port["functions"] = [{"rail": d.rail, "rdma": d.rdma, "interface": d.interface} for d in PROFILE.devices]
        port["rate_gbit"] = PROFILE.devices[0].rate_gbit
    raw["env"]["set"].pop("NCCL_IB_GID_INDEX", None)
    raw["bootstrap"] = raw["bootstrap"] or PROFILE.bootstrap
    if raw["fabric"]["mtu"] not in (9000, 4200, 1500):
        raw["fabric"]["mtu"] = 9000
    qos = raw["fabric"]["qos"]
    if qos is not None:
        qos["ecn"] = None  # the lab's ECN files are views that a stand-in may render anew between two writes: the simulation covers them
    if qos is not None and not qos["pfc"]:
        qos["dscp_to_priority"] = {}
    mapped = list(qos["dscp_to_priority"]) if qos else []
    raw["fabric"]["traffic_class"] = mapped[0] << 2 if mapped else None
    return raw


def into_inventory(lab: Lab, raw: dict[str, Any]) -> None:
    path = lab.layout.root / "lab.yaml"
    tree = yaml.safe_load(path.read_text())
    fabric = {k: v for k, v in raw["fabric"].items() if v is not None}
    if "qos" in fabric:
        fabric["qos"] = {k: v for k, v in fabric["qos"].items() if v is not None}
    tree["fabric"] = fabric
    tree["groups"]["spark"] |= {k: raw[k] for k in ("ports", "bootstrap", "protected", "env")}
    path.write_text(yaml.safe_dump(tree, sort_keys=False))


def draw(r: Random, raw: dict[str, Any], number: int, root: Root) -> tuple[Sim, dict[str, object]]:
    """The state of one node, as a simulated one."""
    sim, plan = bare(PROFILE, number, root)
    state = sim.state
    state.era, state.twins_share = r.choice(ERAS), chance(r, 70)
    draw_ports(r, sim, (raw["fabric"]["qos"] or {}).get("pfc") or [3])
    for f in state.functions.values():
        sim.nics[f.interface].mtu = r.choice((1500, 9000, 9000, 4200))
        # The lab's state holds one switch for all of a function's ECN files of priority 3.
        f.ecn = chance(r, 60)
        for side in ("np", "rp"):
            sim.ecn[f"/sys/class/net/{f.interface}/ecn/roce_{side}/enable/3"] = f.ecn
    if chance(r, 12):
        state.qps = {r.choice(list(state.functions.values())).rdma: 3}
    mine = [c.interface for c in plan.fabric]
    address = next(c.address for c in plan.cables if c.interface == raw["bootstrap"]).split("/")[0]
    text: dict[str, object] = {"era": state.era, "twins": state.twins_share, "qps": dict(state.qps)}
    text["hosts"] = draw_hosts(r, root, plan.name, address)
    text["files"] = draw_files(r, root, mine)
    text["owners"] = draw_owners(r, sim, plan, mine, raw["fabric"]["mtu"])
    state.tools = dict([r.choice(MODES)]) if chance(r, 35) else {}
    text["tools"] = state.tools
    return sim, text


def place(lab: Lab, name: str, sim: Sim) -> None:
    """Make the lab's node like the simulated one: files, registers, MTUs."""
    assert lab.exec(name, ["sh", "-c", WIPE]).ok
    for path, (text, mode) in sim.root.everything().items():
        if "management.nmconnection" in path:
            continue
        if mode:
            lab.write_file(name, path, text.encode("utf-8", "surrogateescape"), mode)
        else:
            assert lab.exec(name, ["sh", "-c", 'mkdir -p "${1%/*}" && ln -sf "$2" "$1"', "sh", path, text]).ok
    with lab.edit_state(name) as state:
        for interface, drawn in sim.state.functions.items():
            fresh = lab.factory(name).functions[interface]
            values = {f.name: getattr(drawn, f.name) for f in dataclasses.fields(Function)}
            state.functions[interface] = dataclasses.replace(fresh, **{
                **values, "sys_image_guid": fresh.sys_image_guid, "node_guid": fresh.node_guid, "flaps": 0})
        state.era, state.twins_share, state.qps = sim.state.era, sim.state.twins_share, dict(sim.state.qps)
        state.tools = {}
    lines = [f"ip link set dev {n.name} mtu {n.mtu} up" for n in sim.nics.values() if n.name in sim.state.functions]
    lines += [f"echo {int(on)} >{path}" for path, on in sim.ecn.items() if path.endswith("/3")]
    done = lab.exec(name, ["sh", "-ec", "\n".join([*lines, "netplan generate", "systemctl daemon-reload"])])
    assert done.ok, done.err
    with lab.edit_state(name) as state:
        state.tools = dict(sim.state.tools)
    placed = lab.state(name).functions
    assert {i: (f.pfc, f.trust, f.ecn) for i, f in placed.items()} == {
        i: (f.pfc, f.trust, f.ecn) for i, f in sim.state.functions.items()}


def outside(lab: Lab, name: str) -> dict[str, object]:
    """What a second apply may not move, seen without the tool: ctimes below /etc, flaps, carrier changes, writes of stand-ins."""
    found = lab.exec(name, ["sh", "-c", "find /etc -printf '%p %C@ %m\\n' | sort; cat /sys/class/net/*/carrier_changes"])
    assert found.ok, found.err
    state = lab.state(name)
    return {"etc": found.out, "flaps": [f.flaps for f in state.functions.values()],
            "registers": json.dumps([dataclasses.asdict(f) for f in state.functions.values()]), "links": repr(sorted(
                (link.name, link.mtu, link.up, link.addresses) for link in lab.links(name).values())),
            "changing calls": [c for c in lab.commands(name) if c["changed"]]}
