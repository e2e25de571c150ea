"""A running lab: the one object through which the command line, the faults and the tests act on it.

`Lab.open(NAME)` finds it by its run folder. Every method acts on the real thing (kernel, files, processes) or on the node's
state; none leaves a marker that the tool under test could read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fabrictool.lab import fabric, files, filters, forward_control, hotplug, kept, node, tools
from fabrictool.lab.errors import LabError
from fabrictool.lab.inside import Done, run_inside
from fabrictool.lab.nodeside import live, sysfs
from fabrictool.lab.nodeside.state import Node, edit, load
from fabrictool.lab.nodeside.tool import Link
from fabrictool.lab.paths import Layout, NodeLayout
from fabrictool.lab.plan import LabPlan, factory_state
from fabrictool.lab.record import Record


class Lab:
    """See the module's text. Methods raise LabError when the lab or the node is not as they need it."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.record = Record.load(layout)

    @classmethod
    def open(cls, name: str = "lab", folder: Path | None = None) -> Lab:
        """LabError when there is no such lab. `folder`: as --dir."""
        layout = Layout.of(name, folder)
        if not layout.record.exists():
            raise LabError(f"no lab {name!r} under {layout.root.parent}: `fabrictool lab up` builds one")
        return cls(layout)

    @property
    def plan(self) -> LabPlan:
        return self.record.plan

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes' names."""
        return tuple(n.name for n in self.plan.nodes)

    def node_layout(self, name: str) -> NodeLayout:
        """The node's files in the run folder."""
        return self.layout.node(self.plan.node(name).name)

    def password_hash(self) -> str:
        """Of the login user; the password itself is in keys/password."""
        return (self.layout.keys / "password.hash").read_text()

    # -- state ---------------------------------------------------------------------------------------------------------

    def state(self, name: str) -> Node:
        """A copy of the node's state."""
        return load(self.node_layout(name).state)

    @contextmanager
    def edit_state(self, name: str) -> Iterator[Node]:
        """The state under its lock; saved and shown in sysfs on leaving."""
        with edit(self.node_layout(name).state) as state:
            yield state
        self.refresh(name)

    def links(self, name: str) -> Mapping[str, Link]:
        """The node's live interfaces, from the kernel."""
        return live.parse(self.exec(name, live.ARGV).out)

    def refresh(self, name: str) -> None:
        """Write the node's sysfs anew from its state and its live interfaces."""
        sysfs.refresh(self.node_layout(name).shared, lambda: self.links(name))

    def commands(self, name: str) -> list[dict[str, object]]:
        """Every call of a stand-in on this node, oldest first: time, tool, argv, rc, changed, root."""
        log = self.node_layout(name).commands
        return [json.loads(line) for line in log.read_text().splitlines()]

    def exec_count(self, name: str) -> int:
        """SSH sessions with a command, a shell or a subsystem that the node's sshd has started so far."""
        return self.node_layout(name).sshd_log.read_bytes().count(b"Starting session: ")

    # -- inside a node -------------------------------------------------------------------------------------------------

    def exec(self, name: str, argv: Sequence[str], input: str | bytes = b"", timeout_s: float = 60) -> Done:
        """Run a command as root in the node, not through SSH: (rc, out, err). rc 124: it did not end in time."""
        return run_inside(self.pid(name), argv, input, timeout_s)

    def pid(self, name: str) -> int:
        """The node's PID 1, as this machine sees it."""
        return node.pid_of(self.layout, self.record, self.plan.node(name).name)

    def read_file(self, name: str, path: str) -> str | None:
        """A file of the node; None if there is none. Bytes that are not UTF-8 become surrogates."""
        return files.read(self.pid(name), path)

    def write_file(self, name: str, path: str, text: str | bytes, mode: int = 0o644) -> None:
        """Write a file on the node's disk (temp + rename; folders are made)."""
        files.write(self.pid(name), path, text, mode)

    def remove_file(self, name: str, path: str) -> None:
        """Remove a file or folder of the node, if it is there."""
        files.remove(self.pid(name), path)

    def hide_tool(self, name: str, tool: str) -> None:
        """The tool is really gone from the node's PATH: stand-in or real."""
        tools.hide(self, name, tool)

    def show_tool(self, name: str, tool: str) -> None:
        """Undo `hide_tool`."""
        tools.show(self, name, tool)

    # -- around a node -------------------------------------------------------------------------------------------------

    def sshd(self, name: str, running: bool) -> None:
        """Stop or start the node's sshd. Sessions that exist live on."""
        node.sshd(self, name, running)

    def new_host_key(self, name: str) -> None:
        """The node gets another host key (known_hosts keeps the old one) and its sshd is started again."""
        node.new_host_key(self, name)

    def old_host_key(self, name: str) -> None:
        """Undo `new_host_key`."""
        node.old_host_key(self, name)

    def switch_port_mtu(self, rail: str, mtu: int, name: str | None = None) -> None:
        """Set the MTU of the switch's ports of a rail: of one node's, or of all of them (and of the bridge)."""
        fabric.port_mtu(self.layout, self.plan, rail, mtu, name)

    def pair_mtu(self, rail: str, one: str, other: str, mtu: int) -> None:
        """Between two nodes of a rail the switch lets pass `mtu` bytes only, either way; between all others what it did."""
        filters.hole(self.layout, self.plan, rail, one, other, mtu)

    def block_connections(self, name: str) -> None:
        """The switch lets nobody open a TCP connection to a node's ephemeral ports."""
        filters.block_connections(self.layout, self.plan, self.plan.node(name))

    def link(self, name: str, interface: str, up: bool) -> None:
        """Plug (True) or pull (False) the cable of a node's interface: carrier and operstate follow, the admin state does not."""
        fabric.cable(self.layout, self.plan, self.plan.node(name), interface, up)
        self.refresh(name)

    def unplug(self, name: str, interface: str) -> None:
        """Take a function off the node's PCI bus: its interface, RDMA device and sysfs entries are gone, also after a reboot."""
        hotplug.unplug(self, name, interface)

    def forward(self, name: str, mode: str) -> None:
        """How 127.0.0.1:PORT of the node behaves: ok, closed, hang-before-banner, hang-in-login. For new connections."""
        forward_control.set_mode(self.layout, self.plan.node(name).name, mode)

    def port(self, name: str) -> int:
        """The node's SSH port on 127.0.0.1."""
        return self.record.ports[self.plan.node(name).name]

    def disk_full(self, name: str, full: bool) -> None:
        """Leave no room on the node's disk, or give the room back."""
        node.disk_full(self, name, full)

    def reboot(self, name: str) -> None:
        """What a real reboot does: processes, /run, /tmp, running MTU and QoS registers are lost, the disk stays; then the
        persistent configuration is applied and the enabled units run. Returns when sshd answers."""
        node.reboot(self, name)

    def reset(self, *names: str) -> None:
        """Nodes (all, if none is named) back to the factory state, disk included; their keys and ports stay."""
        node.reset(self, names or self.nodes)

    def clear(self, *names: str) -> None:
        """No fault is left on nodes (all, if none is named), nor on the switch: ports of the other nodes are set right too."""
        self._restore_switch()
        self.reset(*names)

    def keep(self, *names: str) -> None:
        """Remember nodes (all, if none is named) as they are now, for `restore`: their disk and their state."""
        kept.keep(self, names or self.nodes)

    def restore(self, *names: str) -> None:
        """Nodes (all, if none is named) as they were kept, booted; and no fault is left on the switch. LabError if they were not."""
        self._restore_switch()
        kept.restore(self, names or self.nodes)

    def _restore_switch(self) -> None:
        fabric.restore_switch(self.layout, self.plan)
        for one in self.plan.nodes:
            filters.clear(self.layout, self.plan, one)

    def factory(self, name: str) -> Node:
        """The state the node was delivered with."""
        return factory_state(self.plan.profile, self.plan.node(name))
