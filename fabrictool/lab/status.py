"""What of a lab lives: read from the processes and namespaces, not from what was once written down."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fabrictool.lab import node
from fabrictool.lab.handle import Lab
from fabrictool.lab.nodeside.state import load


@dataclass(frozen=True)
class NodeStatus:
    name: str
    running: bool
    booted: bool
    port: int | None
    boots: int
    misbehaving: tuple[str, ...]  # tools that do not behave, as TOOL: HOW
    processes: int


@dataclass(frozen=True)
class LabStatus:
    name: str
    profile: str
    folder: str
    complete: bool
    forwarder: bool
    nodes: tuple[NodeStatus, ...]

    @property
    def whole(self) -> bool:
        return self.complete and self.forwarder and all(n.running and n.booted for n in self.nodes)


def _node(lab: Lab, name: str) -> NodeStatus:
    from fabrictool.lab.record import processes_in

    here = lab.node_layout(name)
    process = node.process_of(lab.layout, name)
    alive = process is not None and process.alive
    booted = alive and here.boot.exists() and "boot_id" in json.loads(here.boot.read_text())
    state = load(here.state) if here.state.exists() else None
    return NodeStatus(
        name, alive, booted, lab.record.ports.get(name), state.boots if state else 0,
        tuple(f"{t}: {how}" for t, how in sorted(state.tools.items()) if how != "ok") if state else (),
        len(processes_in([lab.layout.netns(name)])) if alive else 0)


def status(lab: Lab) -> LabStatus:
    forwarder = lab.record.forwarder
    return LabStatus(lab.layout.name, lab.plan.profile.name, str(lab.layout.root), lab.record.complete,
                     forwarder is not None and forwarder.alive, tuple(_node(lab, n) for n in lab.nodes))
