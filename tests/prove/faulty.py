"""What single faults leave in a recording of an AllReduce: each bends one healthy fleet of `fleets`, in the tools' own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from fabrictool.snapshot import Captured
from tests.prove import texts
from tests.prove.fleets import A, B
from tests.prove.recordings import RUNS, Fleet

SLOW = "   268435456      67108864     float     sum      -1  35320.0    7.60   11.40       0  35310.0    7.60   11.40       0"
WRONG = "   268435456      67108864     float     sum      -1  17600.0   15.25   22.88       0  17580.0   15.27   22.90    1337"


def logged(fleet: Fleet, change: Callable[[str], str], nodes: Iterable[str] = (), runs: Iterable[str] = RUNS) -> Fleet:
    """The NCCL logs of these nodes (all, if none is named), changed."""
    made = fleet.recording()
    for run in runs:
        for node in nodes or fleet.wants:
            for key, got in made.at(run, node).sections.items():
                if key.startswith("nccl.log["):
                    fleet.put(run, node, key, replace(got, out=change(got.out)))
    return fleet


def no_traffic(fleet: Fleet, runs: Iterable[str] = RUNS) -> Fleet:
    """RDMA counters stand still."""
    for run in runs:
        for node in fleet.wants:
            for device in fleet.rails:
                fleet.flow(run, node, device).tx = fleet.flow(run, node, device).rx = 0
    return fleet


def over_sockets(text: str) -> str:
    """What NCCL logs when it fell back."""
    lines = [ln for ln in text.splitlines() if not any(w in ln for w in ("NET/IB : Using", "NET plugin IB", "_IB_TC", "IB_Q", "IB_S"))]
    told = [ln.replace("NET/IB/0", "NET/Socket/0").replace("NET/IB/1", "NET/Socket/0").replace("Using network IB", "Using network Socket")
            for ln in lines]
    at = next(i for i, ln in enumerate(told) if "Using network" in ln)
    head = told[at].partition("Using network")[0]
    return "\n".join([*told[:at], f"{head}NET/IB : No device found.", f"{head}NET/Socket : Using [0]enp1s0f0np0:10.10.1.11<0>",
                      *told[at:]]) + "\n"


def fallback(fleet: Fleet, runs: Iterable[str] = RUNS) -> Fleet:
    """TCP, with a bandwidth that looks well."""
    for run in runs:
        for node in fleet.wants:
            fleet.socket_bytes[run, node] = ("enp1s0f0np0", 20_000_000_000)
    return logged(no_traffic(fleet, runs), over_sockets, runs=runs)


def one_rail(fleet: Fleet, node: str) -> Fleet:
    """The node's second function carries nothing; the first all of it, at half the speed."""
    for run in RUNS:
        whole = fleet.flow(run, node, A).tx * 2
        fleet.flow(run, node, A).tx = fleet.flow(run, node, A).rx = whole
        fleet.flow(run, node, B).tx = fleet.flow(run, node, B).rx = 0
    fleet.row = SLOW
    return fleet


def printed(fleet: Fleet, change: Callable[[str], str], rc: int = 0, runs: Iterable[str] = RUNS, err: str = "") -> Fleet:
    """Rank 0's own output, changed, and no JSON file."""
    first = fleet.facts.rank_nodes[0]
    for run in runs:
        text = texts.result(fleet.hosts, "NVIDIA GB10", fleet.row, fleet.facts.size_bytes)
        fleet.put(run, first, "rank[0]", Captured(rc, change(text), err))
        fleet.put(run, first, "result.json", None)
    return fleet


def before(word: str) -> Callable[[str], str]:
    """The text up to the line that holds `word`."""
    return lambda text: text[:text.rindex("\n", 0, text.index(word)) + 1]


def died(fleet: Fleet, rank: int, rc: int = 137) -> Fleet:
    """A rank is killed in every run; rank 0 ends with an error."""
    table = before("268435456      67108864")
    said = "spark01: Test NCCL failure common.cu:322 'remote process exited or there was a network error / '\n"
    printed(fleet, lambda text: table(text) + said, rc=3)
    for run in RUNS:
        for other, node in enumerate(fleet.facts.rank_nodes):
            if other:
                fleet.put(run, node, f"rank[{other}]", Captured(rc if other == rank else 3, "", "" if other == rank else said))
    return fleet


def cut_off(fleet: Fleet, rank: int) -> Fleet:
    """Nobody reaches one rank. All wait; when the others' time is over their connections close, and it ends with an error."""
    hangs_in_init(fleet)
    node = fleet.facts.rank_nodes[rank]
    for run in RUNS:
        fleet.put(run, node, f"rank[{rank}]", Captured(5, "", "socketProgress: Connection closed by remote peer"))
    said = f"{node}:{texts.pid(rank)}:9999 [0] NCCL INFO socketProgress: Connection closed by remote peer spark01<42001>\n"
    return logged(fleet, lambda text: text + "\n" + said, (node,))


def mixed(fleet: Fleet, node: str) -> Fleet:
    """One node fell back, and all wait for each other while they connect."""
    hangs_in_init(fleet)
    fleet.changed = {k: v for k, v in fleet.changed.items() if not k[2].startswith("nccl.log")}
    logged(fleet, lambda text: text[:text.index("Connected all rings")].rpartition("\n")[0] + "\n")
    return logged(fleet, over_sockets, (node,))


def gave_up(fleet: Fleet, rank: int) -> Fleet:
    """A queue pair's retries ran out on one rank, which ends with an error; the others are then ended by us."""
    died(fleet, rank, rc=3)
    node = fleet.facts.rank_nodes[rank]
    for run in RUNS:
        for other, at in enumerate(fleet.facts.rank_nodes):
            if other != rank:
                fleet.put(run, at, f"rank[{other}]", Captured(143, fleet.recording().at(run, at).sections[f"rank[{other}]"].out, ""))
    said = (f"\n[2026-01-01 10:00:09] {node}:{texts.pid(rank)}:9999 [0] misc/ibvwrap.cc:1 NCCL WARN NET/IB : Got completion from peer "
            "10.10.1.11<42001> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(0) vendor_err=129 (Send) "
            "localGid ::ffff:10.10.1.12 remoteGids ::ffff:10.10.1.11 hca rocep1s0f0\n")
    return logged(fleet, lambda text: text[:text.index("Connected all rings")].rpartition("\n")[0] + "\n" + said, (node,))


def hangs_in_init(fleet: Fleet) -> Fleet:
    """All wait for each other until their time is over: no table, logs that end at Init START."""
    printed(fleet, before("#                                                              out-of-place"), rc=124)
    for run in RUNS:
        for rank, node in enumerate(fleet.facts.rank_nodes):
            if rank:
                fleet.put(run, node, f"rank[{rank}]", Captured(124, ""))
    return logged(no_traffic(fleet), lambda text: text[:text.index("Init START") + 11])


def row(size: int, ranks: int, busbw: float) -> str:
    """A whole row of nccl-tests at this bus bandwidth, GB/s."""
    algbw = busbw * ranks / (2 * (ranks - 1))
    half = f"{size / algbw / 1000:10.1f} {algbw:7.2f} {busbw:7.2f}       0"
    return f"{size:12d} {size // 4:13d}     float     sum      -1 {half} {half}"


def slow(fleet: Fleet, busbw: float = 18.0) -> Fleet:
    fleet.row = row(fleet.facts.size_bytes, fleet.facts.ranks, busbw)
    return fleet


def wrong(fleet: Fleet, runs: Iterable[str] = RUNS) -> Fleet:
    fleet.rows |= dict.fromkeys(runs, WRONG)
    return fleet


def stale(fleet: Fleet) -> Fleet:
    """The file is one of another day."""
    for run in RUNS:
        old = texts.result_json(fleet.hosts, "NVIDIA GB10", fleet.row, 1e9 + 77)
        fleet.put(run, fleet.facts.rank_nodes[0], "result.json", Captured(0, old))
    return fleet


def reduced(fleet: Fleet) -> Fleet:
    return printed(fleet, lambda text: text.replace("#\n# Using", "# Reducing maxBytes to 134217728 due to memory limitation\n#\n# Using")
                   .replace("   268435456      67108864", "   134217728      33554432")
                   .replace("17600.0", " 8800.0").replace("17580.0", " 8790.0"))


def cut(text: str) -> str:
    """The second half of the row never came."""
    return text.replace("  17580.0   15.27   22.90       0", "  17580.0   15.2")


def lacks(name: str) -> Callable[[str], str]:
    """A log without the lines about a variable."""
    return lambda text: "".join(f"{ln}\n" for ln in text.splitlines() if f"{name} set" not in ln)


def one_device(text: str) -> str:
    return text.replace(f"[0]{A}:1/RoCE [1]{B}:1/RoCE", f"[0]{A}:1/RoCE").replace("NET/IB/1", "NET/IB/0")


def by_docker(text: str) -> str:
    return text.replace("OOB enp1s0f0np0:10.10.1.12", "OOB docker0:172.17.0.1")


def left_behind(fleet: Fleet, node: str) -> Fleet:
    fleet.put("run2", node, "left", Captured(0, "unit ft-20260101T100000Z-0000beef-1\nprocess 4711 all_reduce_perf -b 256M\nend\n"))
    return fleet


def without(fleet: Fleet, node: str, section: str) -> Fleet:
    for run in RUNS:
        fleet.put(run, node, section, None)
        if section == "rank[0]":
            fleet.put(run, node, "result.json", None)
    return fleet


def unlogged(fleet: Fleet, nodes: Iterable[str]) -> Fleet:
    made = fleet.recording()
    for run in RUNS:
        for node in nodes:
            for key in made.at(run, node).sections:
                if key.startswith("nccl.log["):
                    fleet.put(run, node, key, None)
    return fleet


def uncounted(fleet: Fleet, node: str) -> Fleet:
    made = fleet.recording()
    for run in RUNS:
        for moment in (f"{run}.before", f"{run}.after"):
            for key in made.at(moment, node).sections:
                fleet.put(moment, node, key, None)
    return fleet


def foreign(fleet: Fleet, node: str) -> Fleet:
    fleet.flow("idle", node, A).tx = 4_000_000_000
    return fleet
