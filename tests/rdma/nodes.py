"""A node's RDMA ports as the room reads them, for the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Interface
from typing import Any

from fabrictool.model import Code, Finding, Status, Value
from fabrictool.ports import Netdev, Ports, RdmaDevice
from fabrictool.rdma.judge import judge
from fabrictool.rdma.model import Rdma
from fabrictool.rdma.read import read
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.spec import NodeSpec
from tests.specs import SPARK, node_spec

DEV, IF, ADDRESS = "rocep1s0f0", "enp1s0f0np0", "10.10.1.11"
SYS = f"/sys/class/infiniband/{DEV}/ports/1"
ZERO_TAIL = "0000:0000:0000:0000:0000:ffff"


def gid_of(address: str) -> str:
    a, b, c, d = (int(n) for n in address.split("."))
    return f"{ZERO_TAIL}:{a:02x}{b:02x}:{c:02x}{d:02x}"


def gid_lines(*rows: tuple[int, str, str, str]) -> str:
    return "".join(f"gid {i} {gid} ndev={dev} type={kind}\n" for i, gid, dev, kind in rows) + "end of GIDs\n"


LINK_LOCAL = "fe80:0000:0000:0000:0a00:27ff:fe00:0001"
HEALTHY: Mapping[str, Captured] = {
    "rdma.link": Captured(0, '[{"ifindex":1,"ifname":"rocep1s0f0","port":1,"state":"ACTIVE","physical_state":"LINK_UP",'
                             '"netdev":"enp1s0f0np0","netdev_index":5}]\n'),
    f"rdma.port[{DEV}]": Captured(0, f"{SYS}/state:4: ACTIVE\n{SYS}/phys_state:5: LinkUp\n{SYS}/rate:200 Gb/sec (4X HDR)\n"
                                     f"{SYS}/link_layer:Ethernet\n"),
    f"rdma.gids[{DEV}]": Captured(0, gid_lines((0, LINK_LOCAL, IF, "IB/RoCE v1"), (1, LINK_LOCAL, IF, "RoCE v2"),
                                               (2, gid_of(ADDRESS), IF, "IB/RoCE v1"), (3, gid_of(ADDRESS), IF, "RoCE v2"))),
    f"rdma.devinfo[{DEV}]": Captured(0, "hca_id:\trocep1s0f0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
                                        "\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n"),
    f"rdma.tclass[{DEV}]": Captured(0, "no such file\n"),
}


def spec(**fabric: Any) -> NodeSpec:
    port = {"rate_gbit": 200, "switch": "sw1", "functions": [{"rail": "a", "rdma": DEV, "interface": IF}]}
    return node_spec(ports={"p0": port}, fabric={**SPARK["fabric"], **fabric})


def ports_of(mtu: int = 9000, address: str = ADDRESS, rdma: bool = True, **netdev: Any) -> Ports:
    dev = Netdev(IF, mtu=Value(mtu), device=True, rdma=(DEV,) if rdma else (),
                 addresses=(IPv4Interface(f"{address}/24"),) if address else ())
    return Ports({IF: replace(dev, **netdev)}, {DEV: RdmaDevice(DEV, (IF,))} if rdma else {})


def node(changed: Mapping[str, Captured] | None = None, ports: Ports | None = None) -> Rdma:
    sections = {**HEALTHY, **{(k if k == "rdma.link" else f"rdma.{k}[{DEV}]"): v for k, v in (changed or {}).items()}}
    return replace(read(Snapshot("spark01", sections)), ports=ports or ports_of())


def judged(got: Rdma, want: NodeSpec | None = None) -> list[Finding]:
    return list(judge(want or spec(), got, Fleet()))


def at(findings: list[Finding], path: str) -> Finding:
    found = [f for f in findings if f.path == f"rdma.{path}"]
    assert len(found) == 1, (path, [f.path for f in findings])
    return found[0]


def bad(findings: list[Finding]) -> list[tuple[Code, Status]]:
    return [(f.code, f.status) for f in findings if f.bad]
