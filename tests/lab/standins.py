"""Help for tests of the stand-ins: a node's state, one call, and the blocks of a capture."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fabrictool.lab.nodeside.state import Function, Nic, Node
from fabrictool.lab.nodeside.tool import Answer, Call, Link

CAPTURES = Path(__file__).parents[1] / "captures"
A, B = "enp1s0f0np0", "enP2p1s0f0np0"


def spark(name: str = "spark01") -> Node:
    """A node with one card, one port, two functions, as delivered."""
    known = ((A, "rocep1s0f0", "a", "0000:01:00.0"), (B, "roceP2p1s0f0", "b", "0002:01:00.0"))
    functions = {interface: Function(interface, rdma, "p0", rail, bus, 200, "025b:0003:0001:0000", f"025b:0003:0001:000{i}")
                 for i, (interface, rdma, rail, bus) in enumerate(known)}
    return Node(name, functions, nics={"enP7s7": Nic("enP7s7", "0007:01:00.0", "r8127", 10000)})


def generic() -> Node:
    """The interface of the captures: a kernel module with plain DCB tables (no firmware map, no automatic headroom)."""
    fn = Function("eth1", "rxe0", "p0", "a", "0000:00:03.0", 100, "5054:00ff:fe00:0101", "5054:00ff:fe00:0101",
                  driver="virtio_net", prio_tc=list(range(8)), tsa=["strict"] * 8, cable_len=5, dcbx_caps=[])
    return Node("vm1", {"eth1": fn})


def links(node: Node, mtu: int = 9000, up: bool = True) -> Mapping[str, Link]:
    """Live interfaces, one address each."""
    return {name: Link(name, f"02:5b:00:00:01:{i:02x}", mtu, up, "UP" if up else "DOWN", up, (f"10.10.{i}.11/24", "fe80::1/64"))
            for i, name in enumerate((*node.functions, *node.nics), 1)}


def call(node: Node, command: str, root: bool = True, mode: str | None = None, live: Mapping[str, Link] | None = None) -> Answer:
    """Run one command line on the state."""
    tool, *argv = command.split()
    module = importlib.import_module(f"fabrictool.lab.nodeside.standins.{tool.replace('-', '_')}")
    how = node.tools.get(tool, "ok") if mode is None else mode
    answer = module.run(Call(tool, argv, node, root, how, lambda: links(node) if live is None else live))
    assert isinstance(answer, Answer)
    return answer


@dataclass(frozen=True)
class Block:
    """One `$` command of a capture."""

    command: str
    out: str
    err: str
    rc: int
    root: bool


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a capture, in order. A `#` line says that what follows ran without privilege."""
    root = True
    for part in re.split(r"(?m)^(?=\$ )", text):
        if part.startswith("$ "):
            command, _, body = part[2:].partition("\n")
            m = re.fullmatch(r"(.*?)(?:\[stderr\]\n(.*))?\[rc=(\d+)\]\n(.*)", body, re.S)
            assert m, part
            yield Block(command, m[1], m[2] or "", int(m[3]), root)
        if "\n# as a user" in part:
            root = False
