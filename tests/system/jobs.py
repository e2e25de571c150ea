"""Jobs of several ranks as the probe `hang` records them: stacks of jobs that really hung, sockets and variables by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fabrictool.prove import Case
from fabrictool.snapshot import Captured, Recording, Snapshot
from fabrictool.system.hang_sections import MOMENT
from tests.env.sample import consumers_text
from tests.system.nodes import fleet

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "stacks"
CLOCK = 1_700_060_000
BOOT = 1_700_000_000
LISTEN = "LISTEN 0 128 {at} 0.0.0.0:* users:((\"python3\",pid={pid},fd=9))\n"
SYN = "SYN-SENT 0 1 {at} {to} users:((\"python3\",pid={pid},fd=12))\n"
ESTAB = "ESTAB 0 0 {at} {to} users:((\"python3\",pid={pid},fd=14))\n"


def capture(name: str, pid: int) -> str:
    """A dump of a job that hung, as if it were of process `pid`."""
    text = (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")
    old = text.split("Process ", 1)[1].split(":", 1)[0]
    return text.replace(old, str(pid))


@dataclass
class Proc:
    """One rank. `stack`: the name of a capture, or a dump; None: only the kernel tells."""

    pid: int
    rank: int | None = None
    stack: str | None = "data-0-native"
    env: dict[str, str] = field(default_factory=dict)
    hosts: str | None = "hostname {node}\nh 127.0.0.1 localhost\nh {address} {node}\n"
    log: str = ""
    sockets: str = ""
    gpu: int | None = 100
    born: int = CLOCK - 3600
    gone: bool = False

    def sections(self, node: str, address: str, world: int) -> dict[str, Captured]:
        env = {**({"RANK": str(self.rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "10.10.1.1"} if self.rank is not None else {}),
               "NCCL_SOCKET_IFNAME": "=enp1s0f0np0", "GLOO_SOCKET_IFNAME": "enp1s0f0np0", **self.env}
        env = {k: v for k, v in env.items() if v != "-"}
        stack = Captured(0, f"@task {self.pid} python3 futex_do_wait 202\nend kernel\n")
        if self.stack is not None:
            text = capture(self.stack, self.pid) if "\n" not in self.stack else self.stack
            stack = Captured(0, f"{text}end py-spy\n")
        if self.gone:
            stack = Captured(3, "", f"process {self.pid} is gone")
        hosts = Captured(1, "", "its /etc/hosts cannot be read")
        if self.hosts is not None:
            hosts = Captured(0, self.hosts.format(node=node, address=address) + "end\n")
        return {f"hang.stack[{self.pid}]": stack, f"hang.hosts[{self.pid}]": hosts, f"hang.sockets[{self.pid}]": Captured(0, "same\nend\n"),
                f"hang.env[{self.pid}]": Captured(0, "".join(f"{k}={v}\n" for k, v in env.items()) + "end\n"),
                f"hang.log[{self.pid}]": Captured(0, f"{self.log}end\n")}


def consumers_of(procs: list[Proc]) -> Captured:
    """The consumers section of a node whose container vllm-a holds these processes."""
    box = "a" * 64
    head = [f"c {procs[0].pid} {box} {json.dumps('/vllm-a')} \"2023-11-15T12:33:20.5Z\" \"n\" \"img:1\""]
    rows = []
    for p in procs:
        rows += [f"p {p.pid} 1 {(p.born - BOOT) * 100} {box} -", "e NCCL_DEBUG=INFO", "n 30", "l /x/libnccl.so.2.27.3"]
    return Captured(0, consumers_text(more=(*head, *rows)))


def job(nodes: Mapping[str, list[Proc]], moving: int | None = 4096, changed: Mapping[str, Mapping[str, Captured | None]] | None = None,
        count: int = 2, **spec: Any) -> Case:
    """Ranks by node. `moving`: RDMA words of four bytes sent within the look on each node; None: not told."""
    case = fleet(count=count, **spec)
    world = sum(1 for procs in nodes.values() for p in procs if p.rank is not None)
    takes, snaps = {}, dict(case.snaps)
    for last, node in enumerate(case.wants, 1):
        procs = nodes.get(node, [])
        seen = consumers_of(procs) if procs else Captured(0, consumers_text())
        snaps[node] = replace(snaps[node], sections={**snaps[node].sections, "consumers": seen})
        if not procs:
            continue
        counter = "/sys/class/infiniband/rocep1s0f0/ports/1/counters/port_xmit_data"
        move = Captured(0, "later\nend\n") if moving is None else Captured(0, f"{counter} 1000\nlater\n{counter} {1000 + moving}\nend\n")
        gpus = "".join(f"{i}, GPU-{p.pid}, {p.gpu} %\n" for i, p in enumerate(procs) if p.gpu is not None)
        apps = "".join(f"{p.pid}, GPU-{p.pid}\n" for p in procs if p.gpu is not None)
        sections = {"hang.clock": Captured(0, f"clock {CLOCK}\nend\n"), "hang.moving": move,
                    "hang.gpu": Captured(0, f"{gpus}apps\n{apps}end\n"),
                    "hang.sockets": Captured(0, "".join(p.sockets for p in procs) + "end\n")}
        for p in procs:
            sections |= p.sections(node, f"10.10.1.{last}", world)
        sections |= {k: v for k, v in (changed or {}).get(node, {}).items() if v is not None}
        gone = {k for k, v in (changed or {}).get(node, {}).items() if v is None}
        takes[node] = Snapshot(node, {k: v for k, v in sections.items() if k not in gone})
    made = Recording("hang", "run", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:05+00:00", takes={MOMENT: takes})
    return replace(case, snaps=snaps, recordings={"hang": made})
