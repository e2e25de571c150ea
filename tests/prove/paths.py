"""Fleets as their nodes would describe them, and what pings between them print. iputils 20221126."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fabrictool.prove import Case
from fabrictool.prove.cover import Cell
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Recording, Snapshot
from fabrictool.spec import NodeSpec
from tests.ports.sample import A, B, Node, address
from tests.specs import SPARK, node_spec

RAILS = {"a": 1, "b": 2}


def names(count: int) -> tuple[str, ...]:
    return tuple(f"spark{i:02d}" for i in range(1, count + 1))


def wants(count: int, **changes: object) -> dict[str, NodeSpec]:
    return {n: node_spec(n, nodes=list(names(count)), **changes) for n in names(count)}


def fabric(**changes: object) -> dict[str, object]:
    return {**SPARK["fabric"], **changes}


def at(node: str, rail: str) -> str:
    """The node's address on the rail: 10.10.RAIL.NUMBER."""
    return f"10.10.{RAILS[rail]}.{int(node[-2:])}"


def snapshot(node: str) -> Snapshot:
    made = Node()
    for interface, rail in ((A, "a"), (B, "b")):
        made.netdevs[interface]["addr_info"] = [address(f"{at(node, rail)}/24")]
    return replace(made.snapshot(), node=node)


def without(snap: Snapshot, *sections: str) -> Snapshot:
    return replace(snap, sections={k: v for k, v in snap.sections.items() if k.partition("[")[0] not in sections})


def ping(source: str, target: str, mtu: int, got: int = 3, said: str = "", rc: int | None = None) -> Captured:
    """`got` of three answers came back; `said`: on stderr."""
    errors = f" +{said.count(chr(10))} errors," if said else ""
    out = f"PING {target} ({target}) from {source} : {mtu - 28}({mtu}) bytes of data.\n"
    out += "".join(f"{mtu - 20} bytes from {target}: icmp_seq={i} ttl=64 time=0.18 ms\n" for i in range(1, got + 1))
    loss = {0: "100", 1: "66.6667", 2: "33.3333", 3: "0"}[got]
    out += f"\n--- {target} ping statistics ---\n3 packets transmitted, {got} received,{errors} {loss}% packet loss, time 401ms\n"
    out += "rtt min/avg/max/mdev = 0.160/0.180/0.200/0.010 ms\n" if got else "\n"
    return Captured((0 if got else 1) if rc is None else rc, out, said)


LOCAL = "ping: local error: message too long, mtu=1500\n" * 3
NO_PING = Captured(127, "", "sh: 1: ping: not found\n")


def pings(cells: Mapping[str, Mapping[Cell, str]], mtu: int = 9000) -> Recording:
    """`cells`: rail -> directed pair -> what happens to it: ok, hole, local, lost (small ones too), partly, none (no tool), silent."""
    takes: dict[str, dict[str, Captured]] = {}
    for rail, pairs in cells.items():
        for (node, peer), what in pairs.items():
            ends = at(node, rail), at(peer, rail)
            large = {"ok": ping(*ends, mtu), "hole": ping(*ends, mtu, 0), "local": ping(*ends, mtu, 0, LOCAL), "lost": ping(*ends, mtu, 0),
                     "partly": ping(*ends, mtu, 1), "none": NO_PING, "silent": Captured(124, "")}[what]
            small = {"lost": ping(*ends, 84, 0), "none": NO_PING}.get(what, ping(*ends, 84))
            takes.setdefault(node, {}).update({f"large[{rail} {peer}]": large, f"small[{rail} {peer}]": small})
    return Recording("path_mtu", "20261129T200000Z-abcd1234", takes={"ping": {n: Snapshot(n, s) for n, s in takes.items()}})


def case(recording: Recording, count: int, left_out: frozenset[str] = frozenset(), **changes: object) -> Case:
    specs = wants(count, **changes)
    return Case(specs, {n: snapshot(n) for n in specs}, {recording.probe: recording}, Fleet(left_out=left_out))


def tcp(cells: Mapping[Cell, str], **said: Mapping[str, Captured]) -> Recording:
    """`cells`: directed pair -> what the connection did: ok, or the first word of listen.py. `said`: node -> sections in its own words."""
    nodes = tuple(dict.fromkeys(n for cell in cells for n in cell))
    port = {n: str(40000 + i) for i, n in enumerate(nodes)}
    takes: dict[str, dict[str, Captured]] = {
        n: {"listen": Captured(0, f"listening {at(n, 'a')} {port[n]} 4711\n"), "stop": Captured(0, "was listening\n"),
            "left": Captured(0, "end\n")} for n in nodes}
    for (node, peer), what in cells.items():
        ok = Captured(0, f"connected {at(node, 'a')} {at(peer, 'a')} {port[peer]} 0.4\n")
        other = {"none": Captured(127, "", "sh: 1: python3: not found\n"), "garbage": Captured(0, "connected to the internet\n")}
        takes[node][f"connect[{peer}]"] = ok if what == "ok" else other.get(what, Captured(1, f"{what} E0 words of the system\n"))
    for node, sections in said.items():
        takes[node].update(sections)
    return Recording("bootstrap_tcp", "20261129T200000Z-abcd1234", takes={"tcp": {n: Snapshot(n, s) for n, s in takes.items()}})
