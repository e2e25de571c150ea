"""What the lab's switch lets through beyond an MTU: packet filters on its ports, where no node can see them. Classic BPF, run by tc."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from fabrictool.lab import fabric
from fabrictool.lab.errors import LabError
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import LabPlan, NodePlan

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if not, k (linux/bpf_common.h)
LEN, WORD, HALF, BYTE, IND_HALF, IND_BYTE, X_IP = 0x80, 0x20, 0x28, 0x30, 0x48, 0x50, 0xB1
JEQ, JGT, JGE, AND, RET = 0x15, 0x25, 0x35, 0x54, 0x06
DROP, NEXT = 2, 0xFFFFFFFF  # TC_ACT_SHOT, TC_ACT_UNSPEC
ETHERNET = 14
FIRST_EPHEMERAL = 32768  # Linux's default: net.ipv4.ip_local_port_range
TCP, IPV4, SYN, SYN_ACK = 6, 0x0800, 0x02, 0x12


def frames_to(mac: str, longest: int) -> list[Instruction]:
    """Drops frames to an address that hold more than `longest` bytes of payload."""
    raw = bytes.fromhex(mac.replace(":", ""))
    return [(LEN, 0, 0, 0), (JGT, 0, 5, longest + ETHERNET), (WORD, 0, 0, 0), (JEQ, 0, 3, int.from_bytes(raw[:4], "big")),
            (HALF, 0, 0, 4), (JEQ, 0, 1, int.from_bytes(raw[4:], "big")), (RET, 0, 0, DROP), (RET, 0, 0, NEXT)]


def new_connections(first_port: int) -> list[Instruction]:
    """Drops what opens a TCP connection over IPv4 to a port from `first_port` on; what answers an own one passes."""
    return [(HALF, 0, 0, 12), (JEQ, 0, 9, IPV4), (BYTE, 0, 0, ETHERNET + 9), (JEQ, 0, 7, TCP), (X_IP, 0, 0, ETHERNET),
            (IND_BYTE, 0, 0, ETHERNET + 13), (AND, 0, 0, SYN_ACK), (JEQ, 0, 3, SYN), (IND_HALF, 0, 0, ETHERNET + 2),
            (JGE, 0, 1, first_port), (RET, 0, 0, DROP), (RET, 0, 0, NEXT)]


def bytecode(program: Sequence[Instruction]) -> str:
    """As tc takes it."""
    return ",".join([str(len(program)), *(" ".join(map(str, i)) for i in program)])


def _tc(layout: Layout, script: str, *words: str) -> None:
    done = subprocess.run(["nsenter", f"--net={layout.netns(fabric.SWITCH)}", "sh", "-ec", script, "sh", *words], capture_output=True,
                          text=True, timeout=fabric.LIMIT_S, check=False)
    if done.returncode:
        raise LabError(f"tc in the lab's switch: {done.stderr.strip()[-300:]}: it needs iproute2's tc and a kernel with cls_bpf")


ADD = 'tc qdisc replace dev "$1" clsact; tc filter add dev "$1" "$2" bpf da bytecode "$3"'


def hole(layout: Layout, plan: LabPlan, rail: str, one: str, other: str, mtu: int) -> None:
    """Frames larger than `mtu` do not pass between two nodes of a rail, either way; between others they do."""
    ends = [next(((n, c) for c in n.fabric if c.rail == rail), None) for n in (plan.node(one), plan.node(other))]
    if ends[0] is None or ends[1] is None:
        raise LabError(f"no rail {rail!r}; there are {', '.join(plan.profile.subnets)}")
    for (node, cable), (_, far) in ((ends[0], ends[1]), (ends[1], ends[0])):
        _tc(layout, ADD, fabric.port(plan, node, cable), "ingress", bytecode(frames_to(far.mac, mtu)))


def block_connections(layout: Layout, plan: LabPlan, node: NodePlan) -> None:
    """Nobody can open a TCP connection to an ephemeral port of the node."""
    for cable in node.cables:
        _tc(layout, ADD, fabric.port(plan, node, cable), "egress", bytecode(new_connections(FIRST_EPHEMERAL)))


def clear(layout: Layout, plan: LabPlan, node: NodePlan) -> None:
    """No filter on the switch's ports of a node."""
    _tc(layout, 'for p do tc qdisc del dev "$p" clsact 2>/dev/null || :; done', *(fabric.port(plan, node, c) for c in node.cables))
