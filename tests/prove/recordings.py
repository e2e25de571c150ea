"""Recordings of an AllReduce on healthy fleets, to be bent by a test: `sparks(4)` and `h20s()`.

    fleet = sparks(4)
    fleet.flow("run2", "spark03", "roceP2p1s0f0").tx = 0         # what the function carries in that phase
    fleet.flow("run1", "spark02", "rocep1s0f0").hw["packet_seq_err"] = 12
    fleet.put("run1", "spark01", "rank[0]", Captured(137, ""))   # any section of any take, as text
    case = fleet.case()

Expected bytes come from `WIRE`, a table made by hand, never from the program's own formula.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

from fabrictool.prove import Case, look
from fabrictool.prove.facts import END, AllReduce
from fabrictool.snapshot import Captured, Recording, Snapshot
from fabrictool.spec import NodeSpec
from tests.prove import texts
from tests.prove.counts import Counts

# Nodes -> bytes that each node sends, and receives, in one run of a ring: 49 calls of 256 MiB, one GPU a node.
# 49 x 268435456 = 13153337344 for two nodes (1 x), x 4/3, x 3/2, x 7/4.
WIRE = {2: 13_153_337_344, 3: 17_537_783_126, 4: 19_730_006_016, 8: 23_018_340_352}
WIRE_H20 = 98_650_030_080  # two nodes of eight GPUs, 49 calls of 1 GiB: 52613349376 x 15/8
ROWS = {  # nodes -> the row of nccl-tests at about 22.9 GB/s bus bandwidth
    2: "   268435456      67108864     float     sum      -1  11732.0   22.88   22.88       0  11722.0   22.90   22.90       0",
    3: "   268435456      67108864     float     sum      -1  15643.0   17.16   22.88       0  15630.0   17.17   22.90       0",
    4: "   268435456      67108864     float     sum      -1  17600.0   15.25   22.88       0  17580.0   15.27   22.90       0",
    8: "   268435456      67108864     float     sum      -1  20531.8   13.07   22.88       0  20514.1   13.09   22.90       0"}
ROW_H20 = "  1073741824     268435456     float     sum      -1   5592.4  192.00  360.00       0   5590.1  192.08  360.15       0"
CONTROL = {2: 1_073_741_824, 4: 1_610_612_736}  # 4 calls of 256 MiB: warmup 0, one iteration, none verified
IDLE_S, RUN_S = 12.0, 11.5  # seconds
RUNS = ("run1", "run2", "run3")


@dataclass
class Flow:
    """What one function carries in one phase: RDMA bytes and their priorities; `sysfs`, `hw`, `ethtool`: counters that grow besides."""

    tx: int = 0
    rx: int = 0
    tx_priority: int = 3
    rx_priority: int = 3
    sysfs: dict[str, int] = field(default_factory=dict)
    hw: dict[str, int] = field(default_factory=dict)
    ethtool: dict[str, int] = field(default_factory=dict)


@dataclass
class Fleet:
    """`counts`: each node's counters at the start; `rails`: the functions that carry the run, `flows`: phase (idle or a run) -> what they
    and others carry. `mirrors`: functions of one port show the port's own counters twice. `resets`, `reboots`: in the phase, before
    anything is carried. `socket_bytes`: a phase's bytes by TCP over an interface of each node. `hosts`: the host of each rank; `oob`:
    each node's bootstrap interface and address, as NCCL writes them; `env`: what it says it found there (`NAME value`, without NCCL_);
    `gdr`: NIC and GPU exchange data directly. `rows`: other rows of numbers than `row`, by run."""

    wants: dict[str, NodeSpec]
    snaps: dict[str, Snapshot]
    counts: dict[str, Counts]
    rails: tuple[str, ...]
    facts: AllReduce
    row: str
    hosts: tuple[str, ...]
    oob: dict[str, str]
    env: tuple[str, ...] = ("IB_TC 104",)
    gdr: bool = False
    rows: dict[str, str] = field(default_factory=dict)
    probe: str = "allreduce"
    flows: dict[tuple[str, str, str], Flow] = field(default_factory=dict)
    mirrors: bool = True
    resets: set[tuple[str, str, str]] = field(default_factory=set)
    reboots: set[tuple[str, str]] = field(default_factory=set)
    socket_bytes: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    changed: dict[tuple[str, str, str], Captured | None] = field(default_factory=dict)
    more: dict[str, Recording] = field(default_factory=dict)
    idle_s: float = IDLE_S
    run_s: float = RUN_S

    def flow(self, phase: str, node: str, device: str) -> Flow:
        return self.flows.setdefault((phase, node, device), Flow())

    def carry(self, phase: str, total: int) -> None:
        """Every node sends and receives `total` bytes in the phase, spread evenly over its rails."""
        for node in self.wants:
            for device in self.rails:
                f = self.flow(phase, node, device)
                f.tx = f.rx = total // len(self.rails)

    def put(self, moment: str, node: str, section: str, got: Captured | None) -> None:
        """A section in the tools' own words; None takes it away."""
        self.changed[moment, node, section] = got

    @property
    def phases(self) -> tuple[str, ...]:
        return (*self.facts.runs, *((self.facts.default_run,) if self.facts.default_run else ()))

    def recording(self) -> Recording:
        takes: dict[str, dict[str, Snapshot]] = {}

        def take(moment: str, node: str, sections: Mapping[str, Captured]) -> None:
            own = {k: v for (m, n, k), v in self.changed.items() if (m, n) == (moment, node)}
            merged = {**sections, **own}
            takes.setdefault(moment, {})[node] = Snapshot(node, {k: v for k, v in merged.items() if v is not None})

        for node, start in self.counts.items():
            now = deepcopy(start)
            take("look", node, {"run.apps": Captured(0, "end\n")})
            take(look.MOMENT, node, {look.APPS: Captured(0, "end\n")})
            for phase in ("idle", *self.phases):
                take(f"{phase}.before", node, now.sections())
                begun = now.epoch_s + 0.6
                self._pass(now, phase, node)
                if phase != "idle":
                    take(phase, node, self._run(phase, node, begun, now.epoch_s - 0.8))
                take(f"{phase}.after", node, now.sections())
                now.wait(1.0)
            take("end", node, {"left": Captured(0, "end\n")})
            take(END, node, {"left": Captured(0, "end\n")})
        return Recording(self.probe, "20260101T100000Z-0000beef", "2026-01-01T10:00:00+00:00", "2026-01-01T10:01:10+00:00",
                         self.facts.to_facts(), takes)

    def case(self) -> Case:
        made = self.recording()
        return Case(self.wants, self.snaps, {made.probe: made, **self.more})

    def _pass(self, now: Counts, phase: str, node: str) -> None:
        """What happens to the node's counters in the phase."""
        now.wait(self.idle_s if phase == "idle" else self.run_s)
        if (phase, node) in self.reboots:
            now.reboot()
        for f in now.functions:
            if (phase, node, f.device) in self.resets:
                f.zero()
            flow = self.flows.get((phase, node, f.device), Flow())
            for name, n in {"port_xmit_data": flow.tx // 4, "port_rcv_data": flow.rx // 4, "port_xmit_packets": flow.tx // 4096,
                            "port_rcv_packets": flow.rx // 4096, **flow.sysfs}.items():
                f.sysfs[name] = f.sysfs.get(name, 0) + n
            for name, n in {"rx_write_requests": flow.rx // 131_072, **flow.hw}.items():
                f.hw[name] = (f.hw.get(name, 0) + n) % 2**32
            for way, n in (("tx", flow.tx), ("rx", flow.rx)):
                f.ethtool[f"{way}_vport_rdma_unicast_bytes"] += n
            for name, n in flow.ethtool.items():
                f.ethtool[name] = f.ethtool.get(name, 0) + n
            for other in now.functions:  # what the port's own counters see of it: frames, so some bytes more
                if other is f or (self.mirrors and f.port and other.port == f.port):
                    for way, n, priority in (("tx", flow.tx, flow.tx_priority), ("rx", flow.rx, flow.rx_priority)):
                        for name in (f"{way}_bytes_phy", f"{way}_prio{priority}_bytes"):
                            other.ethtool[name] += n + n // 4096 * 18
                        for name in (f"{way}_packets_phy", f"{way}_prio{priority}_packets"):
                            other.ethtool[name] += n // 4096
                        other.ethtool[f"{way}_prio0_bytes"] += 90_000 if phase != "idle" else 700
        if (phase, node) in self.socket_bytes:
            name, n = self.socket_bytes[phase, node]
            now.nets[name] += n

    def _run(self, run: str, node: str, begun: float, ended: float) -> dict[str, Captured]:
        """The take of a run on a node: started by us (direct), or by mpirun on the first node."""
        row, env = self.rows.get(run, self.row), (*self.env, *(("ALGO Ring",) if run in self.facts.runs and self.facts.algorithm else ()))
        out = {"clock.start": Captured(0, f"{begun:.9f}\n"), "clock.end": Captured(0, f"{ended:.9f}\n"), "left": Captured(0, "end\n")}
        gpu = self.wants[node].gpu
        model, first = gpu.model if gpu else "", node == self.facts.rank_nodes[0]
        text = texts.result(self.hosts, model, row, self.facts.size_bytes)
        for rank, where in enumerate(self.facts.rank_nodes):
            if where == node:
                log = texts.nccl_log(rank, self.hosts, self.rails, self.oob[node], env, self.gdr)
                out[f"nccl.log[{self.hosts[rank]}.{texts.pid(rank)}]"] = Captured(0, log)
                if self.facts.launcher == "direct":
                    out[f"rank[{rank}]"] = Captured(0, text if rank == 0 else "")
        if first:
            out["result.json"] = Captured(0, texts.result_json(self.hosts, model, row, begun + 0.2))
            if self.facts.launcher != "direct":
                out["launcher"] = Captured(0, text)
        return out


def noisy(fleet: Fleet, seed: int) -> Fleet:
    """As fleets differ in health: other clocks and start values, 1..7 % of headers, rails apart by up to 5 %, a run up to 5 % longer,
    somebody's keepalives, and an ECN mark here and there."""
    rng = random.Random(seed)
    fleet.run_s *= rng.uniform(0.95, 1.05)
    fleet.idle_s *= rng.uniform(0.95, 1.05)
    for counts in fleet.counts.values():
        counts.uptime_s, counts.epoch_s = rng.uniform(600, 9e6), counts.epoch_s + rng.uniform(-40, 40)
        for f in counts.functions:
            f.sysfs = {n: v + rng.randrange(2**40) if n.startswith(("port_xmit_d", "port_rcv_d")) else v for n, v in f.sysfs.items()}
    for (phase, _, device), flow in fleet.flows.items():
        if device not in fleet.rails or phase == "idle":
            continue
        split = 1 + rng.uniform(0, 0.05) * (1 if fleet.rails.index(device) % 2 else -1)
        flow.tx, flow.rx = (round(n / 1.02 * rng.uniform(1.03, 1.09) * split) for n in (flow.tx, flow.rx))
        flow.hw["np_ecn_marked_roce_packets"] = rng.choice((0, 0, 3))
    for node in fleet.wants:
        for device in fleet.rails:
            fleet.flow("idle", node, device).tx = rng.randrange(40_000)
    return fleet


def control(fleet: Fleet, interface: str, total: int, leak: int = 0) -> Recording:
    """The control run of the same fleet: over sockets on `interface`, `total` bytes each way; `leak` bytes by RDMA all the same."""
    facts = replace(fleet.facts, runs=("run1",), default_run="", network="Socket", iterations=1, warmup=0, verify=0,
                    added={"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": f"={interface}"})
    run = Fleet(fleet.wants, fleet.snaps, deepcopy(fleet.counts), fleet.rails, facts, fleet.row, fleet.hosts, fleet.oob, probe="control")
    run.socket_bytes = {("run1", n): (interface, total) for n in fleet.wants}
    run.flow("run1", next(iter(fleet.wants)), fleet.rails[0]).tx = leak
    return run.recording()


def repeated(nodes: Sequence[str], times: int) -> tuple[str, ...]:
    return tuple(n for n in nodes for _ in range(times))
