"""Functions that come and go on PCI. On a Spark a cage without a cable loses its functions: the hot-plug service takes them off the
bus, interface, RDMA device and PCI device together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabrictool.lab import fabric
from fabrictool.lab.nodeside import sysfs
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import Cable, LabPlan, NodePlan

if TYPE_CHECKING:
    from fabrictool.lab.handle import Lab


def _kept_as(plan: LabPlan, node: NodePlan, cable: Cable) -> str:
    """The kernel's name of an interface while it lies in the switch's namespace: every node has one of the same own name."""
    return f"x{plan.bridges.index(cable.bridge)}n{node.number}"


def unplug(lab: Lab, name: str, interface: str) -> None:
    """The function of `interface` is gone from the running node: what a reboot cannot bring back. LabError if there is none."""
    plan, layout = lab.plan, lab.layout
    node = plan.node(name)
    cable = fabric.cable_of(node, interface)
    with lab.edit_state(name) as state:
        function = state.functions.pop(interface)
        state.qps.pop(function.rdma, None)
    sysfs.forget(lab.node_layout(name).shared, function)
    aside = _kept_as(plan, node, cable)
    fabric.ip(layout.netns(name), [f"link set {interface} down", f"link set {interface} name {aside}"])
    fabric.move(layout, name, fabric.SWITCH, aside)


def plug_back(layout: Layout, plan: LabPlan, node: NodePlan) -> None:
    """Every interface that was taken away is in the node again, down, under its own name."""
    aside = fabric.interfaces(layout.netns(fabric.SWITCH))
    for cable in node.cables:
        name = _kept_as(plan, node, cable)
        if name in aside:
            fabric.move(layout, fabric.SWITCH, node.name, name)
            fabric.ip(layout.netns(node.name), [f"link set {name} name {cable.interface}"])
