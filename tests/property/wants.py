"""Random specs, as NodeSpec takes them."""

from __future__ import annotations

from random import Random
from typing import Any

from fabrictool.lab import profiles
from fabrictool.lab.plan import NodePlan, Profile


def chance(r: Random, percent: float) -> bool:
    return r.random() * 100 < percent


def draw_qos(r: Random) -> dict[str, Any] | None:
    if chance(r, 3):
        return None
    pfc = [3] if chance(r, 60) else sorted(r.sample(range(8), r.choice((1, 1, 2, 3))))
    trust = "pcp" if chance(r, 15) else "dscp"
    mapped = {26: r.choice(pfc)} if chance(r, 70) else {r.randrange(64): r.choice(pfc) for _ in range(r.randrange(4))}
    return {"trust": trust, "pfc": pfc if chance(r, 95) else [], "global_pause": chance(r, 12), "writer": "mlnx_qos",
            "dscp_to_priority": mapped if trust == "dscp" else {}, "ecn": r.choice((None, None, True, False))}


def draw_env(r: Random) -> dict[str, Any]:
    write = [w for w in ("nccl_conf", "docker_env", "profile_d", "systemd:vllm.service") if chance(r, 50)]
    chosen: dict[str, Any] = {"NCCL_IB_QPS_PER_CONNECTION": 4} if chance(r, 60) else {}
    if chance(r, 30):
        chosen["VLLM_HOST_IP"] = "{bootstrap.address}"
    if chance(r, 4):
        chosen["NCCL_IB_GID_INDEX"] = 3  # refused by the room: nothing may be written
    return {"write": write, "hca_match": r.choice(("exact", "plain")), "set": chosen, "consumers": []}


def draw_spec(r: Random, profile: Profile, plan: NodePlan, peer: str) -> dict[str, Any]:
    ports: dict[str, Any] = {}
    for d in profile.devices:
        if d.rail:
            port = ports.setdefault(d.port, {"rate_gbit": d.rate_gbit if chance(r, 95) else 100, "switch": "sw1", "functions": []})
            port["functions"].append({"rail": d.rail, "rdma": d.rdma, "interface": d.interface} if chance(r, 80) else
                                     {"rail": d.rail, "mac": next(c.mac for c in plan.cables if c.interface == d.interface)})
    fabric = {"mtu": r.choice((9000, 9000, 9000, 4200, 1500, 9990 if chance(r, 20) else 9000, None)),
              "traffic_class": 104 if chance(r, 90) else None, "qos": draw_qos(r),
              "rails": {k: {"subnet": f"{v}.0/24"} for k, v in profile.subnets.items() if any(d.rail == k for d in profile.devices)}}
    protected = [profile.management.interface] if chance(r, 70) else []
    bootstrap = None if chance(r, 6) else profile.bootstrap if chance(r, 80) else profile.management.interface
    return {"name": plan.name, "site": "sim", "group": profile.group, "nodes": [plan.name, peer], "ssh": {"user": "admin", "sudo": "root"},
            "switches": {"sw1": {"mtu": 9216}}, "fabric": fabric, "gpu": {"model": profile.gpu, "count": profile.gpus}, "ports": ports,
            "bootstrap": bootstrap, "protected": protected, "env": draw_env(r), "simulated": True}


def draw_half(r: Random, raw: dict[str, Any]) -> frozenset[str]:
    """Of a cage with two functions the spec may name only one; the other may be protected. Returns the one left out."""
    functions = next(iter(raw["ports"].values()))["functions"]
    if len(functions) < 2 or not chance(r, 12):
        return frozenset()
    gone = functions.pop()
    if "interface" not in gone:
        gone["interface"] = profiles.SPARK.devices[1].interface
    if chance(r, 50):
        raw["protected"].append(gone["interface"])
    return frozenset({gone["interface"]})
