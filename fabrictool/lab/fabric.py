"""The lab's network: a switch namespace with one bridge per rail, a control namespace, and veth cables. Nothing of it is in the
machine's own network namespace."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fabrictool.lab.errors import LabError
from fabrictool.lab.nodeside import syscalls
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import GATEWAY, NIC_MTU, SWITCH_MTU, Cable, LabPlan, NodePlan

SWITCH, CONTROL = "switch", "control"
LIMIT_S = 60


def make_netns(path: Path) -> None:
    """A new network namespace, pinned by a bind mount on `path`; lo up. Done in a child: this process stays where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    child = os.fork()
    if child == 0:
        try:
            syscalls.unshare(syscalls.CLONE_NEWNET)
            syscalls.mount("/proc/self/ns/net", str(path), "", syscalls.MS_BIND)
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        number = os.waitstatus_to_exitcode(status)
        raise LabError(f"cannot make a network namespace: {os.strerror(number)}. The lab needs root with CAP_SYS_ADMIN "
                       "(in a container: --privileged)")


def ip(netns: Path, lines: Iterable[str]) -> None:
    """`ip -batch` in a namespace. LabError with ip's own message."""
    text = "\n".join(lines) + "\n"
    done = subprocess.run(["nsenter", f"--net={netns}", "ip", "-batch", "-"], input=text, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    if done.returncode:
        raise LabError(f"ip in {netns.name}: {done.stderr.strip()}")


def interfaces(netns: Path) -> frozenset[str]:
    """The names of the interfaces in a namespace. LabError with ip's own message."""
    done = subprocess.run(["nsenter", f"--net={netns}", "ip", "-j", "link", "show"], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    if done.returncode:
        raise LabError(f"ip in {netns.name}: {done.stderr.strip()}")
    return frozenset(raw["ifname"] for raw in json.loads(done.stdout))


def bridge(plan: LabPlan, name: str) -> str:
    """The kernel's name (15 characters at most) of a bridge."""
    return f"br{plan.bridges.index(name)}"


def port(plan: LabPlan, node: NodePlan, cable: Cable) -> str:
    """The kernel's name of the switch's end of a cable."""
    return f"p{plan.bridges.index(cable.bridge)}n{node.number}"


def build_switch(layout: Layout, plan: LabPlan) -> None:
    """Both namespaces and the bridges; the control namespace is on the management bridge."""
    for name in (SWITCH, CONTROL):
        make_netns(layout.netns(name))
    lines = ["link set lo up"]
    for name in plan.bridges:
        mtu = NIC_MTU if name == "mgmt" else SWITCH_MTU
        lines += [f"link add {bridge(plan, name)} mtu {mtu} type bridge mcast_snooping 0", f"link set {bridge(plan, name)} up"]
    ip(layout.netns(SWITCH), lines)
    ip(layout.netns(CONTROL), ["link set lo up", "link add eth0 type veth peer name eth0p",
                               f"addr add {GATEWAY}/24 dev eth0", "link set eth0 up"])
    move(layout, CONTROL, SWITCH, "eth0p")
    ip(layout.netns(SWITCH), [f"link set eth0p master {bridge(plan, 'mgmt')}", "link set eth0p up"])


def move(layout: Layout, source: str, target: str, *names: str) -> None:
    """Move interfaces from one lab namespace into another. `ip ... netns` takes a path by way of an open descriptor."""
    with open(layout.netns(target)) as there:
        path = f"/proc/{os.getpid()}/fd/{there.fileno()}"
        ip(layout.netns(source), [f"link set {name} netns {path}" for name in names])


def build_node(layout: Layout, plan: LabPlan, node: NodePlan) -> None:
    """A node's namespace and cables. Interfaces get the profile's names and MACs; the switch's end has the switch's MTU."""
    netns = layout.netns(node.name)
    make_netns(netns)
    lines, ports = ["link set lo up"], []
    for cable in node.cables:
        far = port(plan, node, cable)
        ports.append(far)
        mtu = NIC_MTU if cable.bridge == "mgmt" else SWITCH_MTU
        lines.append(f"link add {cable.interface} address {cable.mac} mtu {NIC_MTU} type veth peer name {far} mtu {mtu}")
    ip(netns, lines)
    move(layout, node.name, SWITCH, *ports)
    ip(layout.netns(SWITCH), [line for cable, far in zip(node.cables, ports, strict=True) for line in (
        f"link set {far} master {bridge(plan, cable.bridge)}", f"link set {far} up")])
    configure(layout, node)


def configure(layout: Layout, node: NodePlan) -> None:
    """Interfaces as after power on: 1500, up, the lab's addresses, default route by way of management. One that is not in the node
    (hotplug.py) is left out."""
    lines = []
    there = interfaces(layout.netns(node.name))
    for cable in (c for c in node.cables if c.interface in there):
        lines += [f"addr flush dev {cable.interface}", f"link set {cable.interface} down",
                  f"link set {cable.interface} mtu {NIC_MTU}", f"link set {cable.interface} address {cable.mac}",
                  f"link set {cable.interface} up", f"addr add {cable.address} dev {cable.interface}"]
    ip(layout.netns(node.name), [*lines, f"route replace default via {GATEWAY} dev {node.management.interface}"])


def cable_of(node: NodePlan, interface: str) -> Cable:
    for cable in node.cables:
        if cable.interface == interface:
            return cable
    raise LabError(f"{node.name} has no interface {interface!r}; it has {', '.join(c.interface for c in node.cables)}")


def cable(layout: Layout, plan: LabPlan, node: NodePlan, interface: str, up: bool) -> None:
    """Plug or pull: the switch's port goes up or down, and the node's carrier with it."""
    name = port(plan, node, cable_of(node, interface))
    ip(layout.netns(SWITCH), [f"link set {name} {'up' if up else 'down'}"])


def port_mtu(layout: Layout, plan: LabPlan, rail: str, mtu: int, node: str | None) -> None:
    """The switch's ports of a rail (of one node, or all)."""
    nodes = [plan.node(node)] if node else list(plan.nodes)
    found = [(n, c) for n in nodes for c in n.fabric if c.rail == rail]
    if not found:
        raise LabError(f"no rail {rail!r}; there are {', '.join(plan.profile.subnets)}")
    ip(layout.netns(SWITCH), [f"link set {port(plan, n, c)} mtu {mtu}" for n, c in found])


def factory_ports(layout: Layout, plan: LabPlan, node: NodePlan) -> None:
    """The switch's ports of a node as they were built: plugged in, at the switch's MTU."""
    ip(layout.netns(SWITCH), [line for c in node.cables for line in (
        f"link set {port(plan, node, c)} mtu {NIC_MTU if c.bridge == 'mgmt' else SWITCH_MTU}",
        f"link set {port(plan, node, c)} up")])


def restore_switch(layout: Layout, plan: LabPlan) -> None:
    """Every port as it was built."""
    for node in plan.nodes:
        factory_ports(layout, plan, node)
