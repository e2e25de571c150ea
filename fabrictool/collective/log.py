"""NCCL logs of one or many processes and hosts, in one text or several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fabrictool.collective import endpoints, logtext
from fabrictool.collective.loglines import lines
from fabrictool.collective.logmodel import (
    CollNetUse,
    CommLine,
    Edge,
    Endpoint,
    EnvValue,
    GdrLine,
    Hca,
    HcaList,
    Level,
    LogLine,
    NcclLog,
    Process,
    ProcessKey,
    QpInfo,
)

_VERSION = re.compile(r"R?NCCL version ([0-9][0-9A-Za-z.+_-]{0,40})\s*")
_NVLINK = re.compile(r"\bNVS/[0-9]|\+ NV[LS]\[|/NVL\)")  # the topology that the GRAPH subsystem prints
_CONNECTED = re.compile(r"Connected all (?:rings|trees)\b")


def parse(text: str, node: str = "", source: str = "") -> NcclLog:
    """One text, of any number of processes. `node`: whose log it is ("" = the host that each line names)."""
    return of_lines(lines(text, node, source))


def merge(logs: Iterable[NcclLog]) -> NcclLog:
    """Several logs as one. A process that is in more than one is one process."""
    return of_lines(tuple(ln for log in logs for ln in log.lines))


@dataclass(slots=True)
class _Collected:
    """One process while its lines are read."""

    lines: int = 0
    versions: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    hcas: list[HcaList] = field(default_factory=list)
    virtual: list[Hca] = field(default_factory=list)
    sockets: list[Endpoint] = field(default_factory=list)
    bootstrap: list[Endpoint] = field(default_factory=list)
    env: list[EnvValue] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    collnet: list[CollNetUse] = field(default_factory=list)
    comms: list[CommLine] = field(default_factory=list)
    gdr: list[GdrLine] = field(default_factory=list)
    qps: list[QpInfo] = field(default_factory=list)
    providers: list[str] = field(default_factory=list)
    rings: list[tuple[int, ...]] = field(default_factory=list)
    connected: list[LogLine] = field(default_factory=list)
    nvls: bool = False
    nvlink: bool = False
    warnings: list[LogLine] = field(default_factory=list)
    last: LogLine | None = None

    def process(self, key: ProcessKey) -> Process:
        return Process(
            key, self.lines, tuple(dict.fromkeys(self.versions)), tuple(dict.fromkeys(self.networks)), tuple(self.hcas),
            tuple(self.virtual), tuple(dict.fromkeys(self.sockets)), tuple(dict.fromkeys(self.bootstrap)), tuple(self.env),
            tuple(self.edges), tuple(self.collnet), tuple(self.comms), tuple(self.gdr), tuple(self.qps), tuple(self.providers),
            tuple(dict.fromkeys(self.rings)), tuple(self.connected), self.nvls, self.nvlink, tuple(self.warnings), self.last)


def of_lines(all_lines: tuple[LogLine, ...]) -> NcclLog:
    found: dict[ProcessKey, _Collected] = {}
    versions: list[str] = []
    for line in all_lines:
        if line.level is Level.VERSION:
            versions.append(line.text)
        elif line.level not in (Level.OTHER, Level.DAMAGED):
            process = found.setdefault(line.process, _Collected())
            process.lines += 1
            process.last = line
            _take(process, line)
    return NcclLog(tuple(p.process(key) for key, p in found.items()), all_lines, tuple(dict.fromkeys(versions)))


def _take(process: _Collected, line: LogLine) -> None:
    text = line.text
    if line.level in (Level.WARN, Level.ABORT):
        process.warnings.append(line)
    if text.startswith(("Channel ", "Ring ", "Coll")):
        _take_channel(process, line)
    elif " set " in text and text.startswith("NCCL_"):
        if value := logtext.env(line):
            process.env.append(value)
    elif "comm 0x" in text:
        if said := logtext.comm(line):
            process.comms.append(said)
    elif text.startswith("NET/") or "GPU Direct RDMA" in text:
        _take_net(process, line)
    elif name := logtext.network(text):
        process.networks.append(name)
    elif text.startswith("Bootstrap"):
        if chosen := endpoints.bootstrap(text):
            process.bootstrap.append(chosen)
    elif m := _VERSION.fullmatch(text):
        process.versions.append(m[1])
    elif _CONNECTED.match(text):
        process.connected.append(line)
    if text.startswith(("NVLS comm ", "Connected NVLS tree")):
        process.nvls = True
    if "NV" in text and _NVLINK.search(text):
        process.nvlink = True


def _take_channel(process: _Collected, line: LogLine) -> None:
    if edge := logtext.edge(line):
        process.edges.append(edge)
    elif use := logtext.collnet(line):
        process.collnet.append(use)
    elif order := logtext.ring(line.text):
        process.rings.append(order)


def _take_net(process: _Collected, line: LogLine) -> None:
    text = line.text
    if gdr := logtext.gdr(line):
        process.gdr.append(gdr)
    elif listed := logtext.hca_list(line):
        process.hcas.append(listed)
    elif found := endpoints.sockets(text):
        process.sockets.extend(found)
    elif merged := logtext.virtual(text):
        process.virtual.append(merged)
    elif qp := logtext.queue_pair(line):
        process.qps.append(qp)
    elif name := logtext.provider(text):
        process.providers.append(name)
