"""Healthy fleets for `recordings`: DGX Sparks (one port, two functions, two rails) and a pair of H20 nodes (eight ports)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabrictool.prove.facts import AllReduce
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.spec.schema import NODE
from tests.ports.sample import MGMT, Node
from tests.ports.sample import A as SPARK_A
from tests.ports.sample import B as SPARK_B
from tests.prove.counts import Counts, Function
from tests.prove.recordings import ROW_H20, ROWS, RUNS, WIRE, WIRE_H20, Fleet, repeated
from tests.qos.device import configured
from tests.qos.nodes import sections_of
from tests.rdma.nodes import gid_lines, gid_of
from tests.specs import SPARK, node_spec

A, B = "rocep1s0f0", "roceP2p1s0f0"
H20_RAILS = tuple(f"mlx5_{i}" for i in (0, 1, 2, 3, 6, 7, 8, 9))
HEADERS = 1.02  # bytes on the wire to bytes of payload, path MTU 4096: nccl.md 1.6


def rdma_of(devices: Mapping[str, tuple[str, str]], rate: str) -> dict[str, Captured]:
    """What sysfs and ibv_devinfo say of healthy devices. `devices`: name -> interface and address."""
    out = {}
    for device, (interface, address) in devices.items():
        at = f"/sys/class/infiniband/{device}/ports/1"
        out[f"rdma.port[{device}]"] = Captured(0, f"{at}/state:4: ACTIVE\n{at}/phys_state:5: LinkUp\n{at}/rate:{rate}\n"
                                                  f"{at}/link_layer:Ethernet\n")
        out[f"rdma.gids[{device}]"] = Captured(0, gid_lines((2, gid_of(address), interface, "IB/RoCE v1"),
                                                            (3, gid_of(address), interface, "RoCE v2")))
        out[f"rdma.devinfo[{device}]"] = Captured(0, f"hca_id:\t{device}\n\t\tport:\t1\n\t\t\tactive_mtu:\t\t4096 (5)\n")
        out[f"rdma.tclass[{device}]"] = Captured(0, "no such file\n")
    return out


def sparks(count: int = 4, pfc: tuple[int, ...] | str = "none", **spec: Any) -> Fleet:
    """Sparks behind one switch. `pfc`: what the spec claims of it; `spec`: top-level keys to replace."""
    names = tuple(f"spark{i:02d}" for i in range(1, count + 1))
    switch = {"sw1": {**SPARK["switches"]["sw1"], "pfc": pfc if isinstance(pfc, str) else list(pfc)}}
    wants = {n: node_spec(n, **{"nodes": list(names), "switches": switch, **spec}) for n in names}
    snaps, counts = {}, {}
    for i, name in enumerate(names, 11):
        node = Node()
        for interface, subnet in ((SPARK_A, 1), (SPARK_B, 2)):
            node.netdevs[interface]["addr_info"][0]["local"] = f"10.10.{subnet}.{i}"
        qos = {k: v for interface in (SPARK_A, SPARK_B) for k, v in sections_of(interface, configured()).items()}
        qos |= rdma_of({A: (SPARK_A, f"10.10.1.{i}"), B: (SPARK_B, f"10.10.2.{i}")}, "200 Gb/sec (4X HDR)")
        snaps[name] = replace(node.snapshot(), node=name, sections={**node.snapshot().sections, **qos})
        functions = [Function(A, SPARK_A, "p0"), Function(B, SPARK_B, "p0")]
        counts[name] = Counts(functions, {SPARK_A: 10**9, SPARK_B: 10**9, MGMT: 10**9})
    facts = AllReduce("direct", "nccl-tests", 268_435_456, 5, 20, 1, names, RUNS, default_run="default", consumer="docker:vllm-1",
                      added={"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO"}, command="all_reduce_perf -b 256M -e 256M", limit_s=120)
    fleet = Fleet(wants, snaps, counts, (A, B), facts, ROWS[count], names, {n: f"{SPARK_A}:10.10.1.{i}" for i, n in enumerate(names, 11)},
                  (f"IB_HCA {A},{B}", "IB_TC 104", f"SOCKET_IFNAME ={SPARK_A}", "IB_QPS_PER_CONNECTION 4", "IB_SPLIT_DATA_ON_QPS 1"))
    for phase in fleet.phases:
        fleet.carry(phase, round(WIRE[count] * HEADERS))
    return fleet


def h20s(pfc: tuple[int, ...] | str = (3,)) -> Fleet:
    """Two H20 nodes: eight GPUs, eight rails, two more RDMA devices for storage. Started by mpirun."""
    names = ("gpu01", "gpu02")
    ports = {f"p{i}": {"rate_gbit": 400, "switch": "leaf", "functions": [{"rail": f"r{i}", "rdma": d, "interface": f"ens{i}np0"}]}
             for i, d in enumerate(H20_RAILS)}
    base = {
        "site": "h20x2", "group": "h20", "nodes": list(names), "ssh": {"user": "root", "sudo": "root"}, "ports": ports,
        "switches": {"leaf": {"mtu": 9216, "mtu_counts": "frame", "pfc": pfc if isinstance(pfc, str) else list(pfc), "keeps_dscp": True}},
        "fabric": {**SPARK["fabric"], "rails": {f"r{i}": {"subnet": f"10.20.{i}.0/24"} for i in range(8)}, "cross_rail": False},
        "gpu": {"model": "NVIDIA H20", "count": 8, "gpudirect": "required"}, "other_rdma": ["mlx5_4", "mlx5_5"], "bootstrap": "eth0"}
    wants = {n: NODE.validate_json(json.dumps({"name": n, **base})) for n in names}
    snaps: dict[str, Snapshot] = {}
    counts = {}
    for k, name in enumerate(names, 1):
        node, qos = Node().remove(SPARK_A).remove(SPARK_B), dict[str, Captured]()
        node.add("eth0", f"192.0.2.{k}/24", pci="0000:21:00.0", mtu=1500)
        for i, device in enumerate((*H20_RAILS, "mlx5_4", "mlx5_5")):
            interface = f"ens{i}np0" if i < 8 else f"storage{i - 8}"
            node.add(interface, f"10.20.{i}.{k}/24", pci=f"0000:{0x40 + i:02x}:00.0", port="p0", rdma=device)
            node.speed[interface] = "400000"
            node.guid[device] = f"b83f:d203:00ab:{0xcd00 + i:04x}"
            qos |= {**sections_of(interface, configured()), **rdma_of({device: (interface, f"10.20.{i}.{k}")}, "400 Gb/sec (4X NDR)")}
        snaps[name] = replace(node.snapshot(), node=name, sections={**node.snapshot().sections, **qos})
        functions = [Function(d, f"ens{i}np0", f"p{i}") for i, d in enumerate(H20_RAILS)]
        functions += [Function("mlx5_4", "storage0", "s0"), Function("mlx5_5", "storage1", "s1")]
        counts[name] = Counts(functions, {"eth0": 10**9, **{f"ens{i}np0": 10**8 for i in range(8)}})
    facts = AllReduce("mpirun", "nccl-tests", 1_073_741_824, 5, 20, 1, repeated(names, 8), RUNS, default_run="default",
                      consumer="docker:sglang-1", added={"NCCL_ALGO": "Ring"}, command="mpirun -np 16 all_reduce_perf", limit_s=120)
    oob = {n: f"eth0:192.0.2.{k}" for k, n in enumerate(names, 1)}
    fleet = Fleet(wants, snaps, counts, H20_RAILS, facts, ROW_H20, repeated(names, 8), oob, gdr=True)
    for phase in fleet.phases:
        fleet.carry(phase, round(WIRE_H20 * HEADERS))
    return fleet
