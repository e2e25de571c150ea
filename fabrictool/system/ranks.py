"""One process of a job as the probe `hang` saw it, and its node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Snapshot
from fabrictool.system import stacks
from fabrictool.system.hang_sections import CLOCK, GPUS, MOVING, SOCKETS, Target
from fabrictool.system.phases import Phase
from fabrictool.system.sockets import Socket, parse
from fabrictool.system.stacks import Stand

RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMIX_RANK", "PMI_RANK")
WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE")


@dataclass(frozen=True, slots=True)
class Hosts:
    """A process's own /etc/hosts: its host name, and what that name stands for there."""

    hostname: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """`stand`: where its stack stands (`tool`: who told). `busy`: utilisation in % of the GPU that it uses; `age_s`: since it started."""

    node: str
    pid: int
    label: str
    stand: Stand
    tool: str
    gone: bool
    env: Observed[Mapping[str, str]]
    hosts: Observed[Hosts]
    log: Observed[str]
    sockets: tuple[Socket, ...] | Unreadable
    busy: Observed[int]
    age_s: Observed[float]

    @property
    def phase(self) -> Phase:
        return self.stand.phase

    @property
    def number(self) -> int | None:
        """Its rank as its environment tells."""
        return self._number(RANK)

    @property
    def world(self) -> int | None:
        return self._number(WORLD)

    def _number(self, names: tuple[str, ...]) -> int | None:
        env = self.env.value if isinstance(self.env, Value) else {}
        return next((int(env[n]) for n in names if re.fullmatch(r"\d{1,6}", env.get(n, ""))), None)

    def get(self, name: str) -> str | None:
        """A variable; None: not set, or not to be told."""
        return self.env.value.get(name) if isinstance(self.env, Value) else None

    def __str__(self) -> str:
        return f"rank {self.number} ({self.label}, pid {self.pid})" if self.number is not None else f"{self.label}, pid {self.pid}"


@dataclass(frozen=True, slots=True)
class NodeView:
    """`moving`: bytes of RDMA that the node sent within three seconds."""

    node: str
    ranks: tuple[Rank, ...]
    sockets: tuple[Socket, ...] | Unreadable
    moving: Observed[int]


def _body(snap: Snapshot, name: str, item: str = "") -> str | Unreadable:
    """The text before the end marker. A process that is gone ended the section with 3."""
    raw = snap.raw(name, item)
    if isinstance(raw, Unreadable):
        return raw
    if raw.rc != 0:
        return Unreadable(Reason.FAILED, raw.tail or f"{name}: exit status {raw.rc}")
    text = raw.out.replace("\r\n", "\n")
    if not (text == "end\n" or text.endswith("\nend\n")):
        return Unreadable(Reason.CUT, f"{name}: the end is missing")
    return text.removesuffix("end\n")


def view(snap: Snapshot, wanted: tuple[Target, ...], born: Mapping[int, float]) -> NodeView:
    """`born`: pid -> when it started, seconds since 1970."""
    every = _sockets(snap, "")
    clock = _body(snap, CLOCK.name)
    m = re.match(r"clock (\d{1,12})\n", clock) if isinstance(clock, str) else None
    busy = _busy(snap)
    ranks = []
    for t in wanted:
        own = _sockets(snap, str(t.pid))
        mine = own if not isinstance(own, Unreadable) and own else every
        if not isinstance(mine, Unreadable):
            mine = tuple(s for s in mine if t.pid in s.pids)
        age: Observed[float] = Value(int(m[1]) - born[t.pid]) if m and t.pid in born else Unreadable(Reason.EMPTY, "its age is not told")
        ranks.append(_rank(snap, t, mine, busy, age))
    return NodeView(snap.node, tuple(ranks), every, _moving(snap))


def _rank(snap: Snapshot, t: Target, sockets: tuple[Socket, ...] | Unreadable, busy: Mapping[int, int] | Unreadable,
          age: Observed[float]) -> Rank:
    stand, tool, gone = _stand(snap, t.pid)
    log = _body(snap, "hang.log", str(t.pid))
    used: Observed[int] = busy if isinstance(busy, Unreadable) else (
        Value(busy[t.pid]) if t.pid in busy else Absent(f"a GPU that process {t.pid} uses"))
    return Rank(snap.node, t.pid, t.label, stand, tool, gone, _env(snap, t.pid), _hosts(snap, t.pid),
                log if isinstance(log, Unreadable) else Value(log), sockets, used, age)


def _stand(snap: Snapshot, pid: int) -> tuple[Stand, str, bool]:
    """Where it stands, who told, and whether the process is gone."""
    raw = snap.raw("hang.stack", str(pid))
    if isinstance(raw, Unreadable):
        return Stand(Phase.UNKNOWN), "", False
    end = re.search(r"(?:^|\n)end (\S{1,20})\n$", raw.out.replace("\r\n", "\n"))
    if raw.rc != 0 or end is None:
        return Stand(Phase.UNKNOWN), "", raw.rc == 3
    dumps = [d for d in stacks.merged(stacks.parse(raw.out)) if d.pid in (pid, None)] or list(stacks.parse(raw.out))
    return (stacks.stand(dumps[0]) if dumps else Stand(Phase.UNKNOWN)), end[1], False


def _env(snap: Snapshot, pid: int) -> Observed[Mapping[str, str]]:
    text = _body(snap, "hang.env", str(pid))
    if isinstance(text, Unreadable):
        return text
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Z][A-Z0-9_]{0,80}", name):
            found.setdefault(name, value)
    return Value(found)


def _hosts(snap: Snapshot, pid: int) -> Observed[Hosts]:
    text = _body(snap, "hang.hosts", str(pid))
    if isinstance(text, Unreadable):
        return text
    name, rows = "", []
    for line in text.split("\n"):
        if line.startswith("hostname "):
            name = line[9:].strip()
        elif line.startswith("h "):
            rows.append(line[2:].split("#")[0].split())
    if not name:
        return Unreadable(Reason.EMPTY, "its host name is not told")
    return Value(Hosts(name, tuple(r[0] for r in rows if name in r[1:])))


def _sockets(snap: Snapshot, pid: str) -> tuple[Socket, ...] | Unreadable:
    """Of the node, or of a process whose network is its own; () where that is the node's."""
    text = _body(snap, SOCKETS.name, pid)
    if isinstance(text, Unreadable):
        return text
    return () if text == "same\n" else parse(text)


def _busy(snap: Snapshot) -> Mapping[int, int] | Unreadable:
    """pid -> utilisation (%) of the busiest GPU that it uses."""
    text = _body(snap, GPUS.name)
    if isinstance(text, Unreadable):
        return text
    gpus, _, apps = text.partition("apps\n")
    load = {m[1]: int(m[2]) for line in gpus.split("\n") if (m := re.fullmatch(r"\d{1,4}, (GPU-\S{1,60}), (\d{1,3}) %", line.strip()))}
    found: dict[int, int] = {}
    for line in apps.split("\n"):
        m = re.fullmatch(r"(\d{1,10}), (GPU-\S{1,60})", line.strip())
        if m and m[2] in load:
            found[int(m[1])] = max(found.get(int(m[1]), 0), load[m[2]])
    return found


def _moving(snap: Snapshot) -> Observed[int]:
    """Bytes sent by all RDMA devices between the two looks; port_xmit_data counts words of four bytes."""
    text = _body(snap, MOVING.name)
    if isinstance(text, Unreadable):
        return text
    before, later, after = text.partition("later\n")
    first, second = _counts(before), _counts(after)
    if not later or not first or set(first) != set(second):
        return Unreadable(Reason.EMPTY, "RDMA counters: not told twice")
    deltas = [int(second[path]) - int(first[path]) for path in first]
    if any(d < 0 for d in deltas):
        return Unreadable(Reason.GARBLED, "RDMA counters went back: a device was reset")
    return Value(sum(deltas) * 4)


def _counts(text: str) -> dict[str, str]:
    found = (re.fullmatch(r"(/\S{1,200}) (\d{1,20})", line) for line in text.split("\n"))
    return {m[1]: m[2] for m in found if m}
