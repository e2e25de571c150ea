"""Measurements taken without the tool under test: kernel counters, the lab's registers, process lists, a node's files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabrictool.lab import filters
from fabrictool.lab.fabric import restore_switch
from fabrictool.lab.faults import inject
from fabrictool.lab.handle import Lab
from tests.e2e.fleet import Ended

A, B, MGMT = "enp1s0f0np0", "enP2p1s0f0np0", "enP7s7"
FLAPPING = ("link.running", "qos.pfc")
WANT_PFC, NO_PFC = [0, 0, 0, 1, 0, 0, 0, 0], [0] * 8
# What would take other interfaces along, or every service of the machine.
FORBIDDEN = (("netplan", "apply"), ("netplan", "try"), ("nmcli", "connection", "up"), ("nmcli", "connection", "down"),
             ("nmcli", "networking"), ("nmcli", "connection", "reload"), ("systemctl", "restart"), ("systemctl", "stop"),
             ("systemctl", "reload"), ("networkctl", "reload"), ("networkctl", "reconfigure"))


@dataclass(frozen=True)
class Wire:
    """One interface as the kernel has it. `carrier_changes` counts each loss and each return of the link."""

    mtu: int
    carrier_changes: int
    addresses: tuple[str, ...]


def wires(lab: Lab, node: str) -> dict[str, Wire]:
    """By name, without lo. IPv6 link-local addresses come and go with the link, and are left out."""
    stats = json.loads(lab.exec(node, ["ip", "-s", "-s", "-j", "link"]).out)
    held = {i["ifname"]: i["addr_info"] for i in json.loads(lab.exec(node, ["ip", "-j", "addr"]).out)}
    return {
        i["ifname"]: Wire(i["mtu"], i["stats64"]["tx"]["carrier_changes"],
                          tuple(sorted(f"{a['local']}/{a['prefixlen']}" for a in held[i["ifname"]] if a["scope"] == "global")))
        for i in stats if i["ifname"] != "lo"}


def flaps(lab: Lab, node: str) -> dict[str, int]:
    """How often each port of the node has gone down, by the lab's own counter."""
    return {name: fn.flaps for name, fn in lab.state(node).functions.items()}


@dataclass(frozen=True)
class Calm:
    """What only a link flap changes: held before and after, it tells whether one happened."""

    flaps: dict[str, int]
    wires: dict[str, Wire]
    pfc: dict[str, list[int]]


def calm(lab: Lab, node: str) -> Calm:
    return Calm(flaps(lab, node), wires(lab, node), {n: fn.pfc for n, fn in lab.state(node).functions.items()})


def fabric_set(lab: Lab, node: str) -> bool:
    """Whether the node has the wanted MTU and PFC on both functions."""
    seen, state = wires(lab, node), lab.state(node)
    return all(seen[n].mtu == 9000 and state.functions[n].pfc == WANT_PFC for n in (A, B))


def calm_steps_done(lab: Lab, node: str) -> bool:
    """Whether what needs no flap is set: trust, the map's entry, host names, the environment file."""
    state = lab.state(node)
    return (all(state.functions[n].trust == "dscp" for n in (A, B)) and "127.0.1.1" not in (lab.read_file(node, "/etc/hosts") or "")
            and "NCCL_IB_TC=104" in (lab.read_file(node, "/etc/nccl.conf") or ""))


def left_over(lab: Lab, node: str) -> str:
    """Our temporary files anywhere on the node's own disk, and its lock."""
    look = "find /etc /var/lib /run /root /home /tmp -name '.fabrictool.*' 2>/dev/null; ls -d /run/fabrictool.lock"
    return lab.exec(node, ["sh", "-c", look]).out


def processes(lab: Lab, node: str) -> str:
    """Every process of the node but its first ones, the SSH listener, and this look itself."""
    text = lab.exec(node, ["ps", "-e", "-o", "pid=,args="]).out
    own = ("nodeside/boot.py", "[listener]", "ps -e -o", "nodeside/init.py")
    return "\n".join(line for line in text.splitlines() if not any(word in line for word in own))


def forbidden(lab: Lab, node: str) -> list[list[object]]:
    """Calls that DESIGN rules out, by the stand-ins' own log."""
    found = []
    for call in lab.commands(node):
        argv = call["argv"]
        assert isinstance(argv, list)
        words = (call["tool"], *(w for w in argv if not str(w).startswith("-")))
        if any(words[:len(rule)] == rule for rule in FORBIDDEN):
            found.append([call["tool"], *argv])
    return found


def until(what: Callable[[], object], seconds: float = 120) -> None:
    """Wait for a state of the world; the limit is for a broken test, not a measurement."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"did not come to pass within {seconds} s"
        time.sleep(0.1)


def fault(lab: Lab, node: str, *names: str) -> None:
    for name in names:
        inject(lab, node, name)


@contextmanager
def spec_of(lab: Lab, change: Callable[[str], str], folder: Path) -> Iterator[str]:
    """Another spec for the same nodes: lab.yaml, changed. Its path."""
    text = (lab.layout.root / "lab.yaml").read_text().replace("./known_hosts", str(lab.layout.root / "known_hosts"))
    new = change(text)
    assert new != text, "the change changed nothing"
    path = folder / "other.yaml"
    path.write_text(new)
    yield str(path)


def short(ended: Ended) -> str:
    """A JSON report in lines, for a failed assertion."""
    try:
        results = json.loads(ended.out)["results"]
    except (ValueError, KeyError):
        return ended.all[-6000:]
    lines = [f"{','.join(f['subject']['nodes'])} {f['status']} {f['code']} {f['id']}: {f['got']} | {f['want']} | {f['why']}"
             for r in results for f in r["findings"]]
    return "\n".join([f"exit {ended.rc}", *lines, ended.err])


def fabric_right(lab: Lab) -> None:
    """Every port of the switch passes jumbo frames again, between all nodes, and TCP; nodes stay as they are."""
    restore_switch(lab.layout, lab.plan)
    for one in lab.plan.nodes:
        filters.clear(lab.layout, lab.plan, one)
