"""A node's QoS for the judge, put together from devices, without the ports room's collector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabrictool.model import Absent, Code, Finding, Observed, Status, Value
from fabrictool.ports import Netdev, Ports, RdmaDevice
from fabrictool.qos.judge import judge
from fabrictool.qos.keep import SCRIPT
from fabrictool.qos.model import Qos, Writer
from fabrictool.qos.persist import persistence, script_text
from fabrictool.qos.read import interface
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.snapshot.model import FileText
from fabrictool.spec import NodeSpec
from tests.qos.device import Device, configured
from tests.specs import SPARK, node_spec

A, B = "enp1s0f0np0", "enP2p1s0f0np0"


def sections_of(nic: str, device: Device, era: str = "26.04") -> dict[str, Captured]:
    return {
        f"qos.mlnx_qos[{nic}]": Captured(0, device.mlnx_qos(era)),
        f"qos.dcb[{nic}]": Captured(0, device.dcb(nic)),
        f"qos.pause[{nic}]": Captured(0, device.ethtool(nic)),
        f"qos.ecn[{nic}]": Captured(0, ""),
    }


def ports_of(**netdevs: Netdev) -> Ports:
    plain = {A: Netdev(A, device=True, rdma=("rocep1s0f0",)), B: Netdev(B, device=True, rdma=("roceP2p1s0f0",))}
    rdma = {"rocep1s0f0": RdmaDevice("rocep1s0f0", (A,)), "roceP2p1s0f0": RdmaDevice("roceP2p1s0f0", (B,))}
    return Ports({**plain, **netdevs}, rdma)


def one_port(interface_name: str = A, **qos: Any) -> NodeSpec:
    """A node with one function, and changes of its qos section."""
    fabric = {**SPARK["fabric"], "qos": {**SPARK["fabric"]["qos"], **qos}}
    rdma = "rocep1s0f0" if interface_name == A else None
    fn = {"rail": "a", "interface": interface_name, **({"rdma": rdma} if rdma else {})}
    return node_spec(fabric=fabric, ports={"p0": {"rate_gbit": 200, "switch": "sw1", "functions": [fn]}})


def persisted(want: NodeSpec, *names: str) -> tuple[dict[str, Observed[FileText]], dict[str, str]]:
    """Files and units as apply leaves them."""
    assert want.fabric.qos is not None
    files: dict[str, Observed[FileText]] = {SCRIPT: Value(FileText(SCRIPT, script_text(), 0o755))}
    units = {}
    for name in names:
        p = persistence(name, want.fabric.qos)
        files[p.unit_path] = Value(FileText(p.unit_path, p.unit_text))
        files[p.rule_path] = Value(FileText(p.rule_path, p.rule_text))
        units[p.unit] = "enabled"
    return files, units


def node(want: NodeSpec, devices: Mapping[str, Device], *, changed: Mapping[str, Captured] | None = None, ports: Ports | None = None,
         **fields: Any) -> Qos:
    """What the room reads of `devices`; `changed` sections replace theirs; persistence in place unless `files`/`units` are given."""
    sections: dict[str, Captured] = {}
    for name, device in devices.items():
        sections |= sections_of(name, device)
    snap = Snapshot("spark01", {**sections, **(changed or {})})
    files, units = persisted(want, *devices)
    return Qos(**{"ports": ports or ports_of(), "interfaces": {n: interface(snap, n) for n in devices}, "daemons": (), "writers": (),
                  "files": files, "units": units, **fields})


def judged(want: NodeSpec, got: Qos) -> list[Finding]:
    return list(judge(want, got, Fleet()))


def one(want: NodeSpec | None = None, device: Device | None = None, **fields: Any) -> list[Finding]:
    """Findings about a node with one function."""
    want = want or one_port()
    return judged(want, node(want, {A: device or configured()}, **fields))


def at(findings: list[Finding], path: str) -> Finding:
    found = [f for f in findings if f.path == f"qos.{path}"]
    assert len(found) == 1, (path, [f.path for f in findings])
    return found[0]


def bad(findings: list[Finding]) -> list[tuple[Code, Status]]:
    return [(f.code, f.status) for f in findings if f.bad]


def writer(text: str, interface_name: str, *settings: tuple[str, str], enabled: bool = True) -> Writer:
    return Writer("/etc/systemd/system/roce.service", 7, text, interface_name, settings, enabled)


NOTHING = Absent("nothing")
