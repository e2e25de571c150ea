"""The messages of NCCL that say something about transport: one parser for each kind. A message that does not fit is None, never a guess."""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from fabrictool.collective.endpoints import endpoint
from fabrictool.collective.logmodel import (
    CollNetUse,
    CommEvent,
    CommLine,
    Direction,
    Edge,
    EnvValue,
    Gdr,
    GdrLine,
    Hca,
    HcaList,
    Kind,
    LogLine,
    QpInfo,
    Via,
)

_EDGE = re.compile(r"(?:Channel|Ring) ([0-9]{1,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7})(?:\[(\w{1,16})\])? -> ([0-9]{1,7})(?:\[(\w{1,16})\])?"
                   r"(?: \[(send|receive)\])? via (\S.{0,120})")
_COLLNET = re.compile(r"(?:CollNet|Coll|Channel) [0-9]{1,4}(?:/[0-9]{1,4})? : ([0-9]{1,7})(?:\[\w{1,16}\])? \[(?:send|receive)\] "
                      r"via COLLNET/([^/]{1,64})/([0-9]{1,4})(/GDRDMA(?:\(PCI\))?)?")
_NET = re.compile(r"NET/([A-Za-z][^/]{0,63})/([0-9]{1,4})(?:\(([0-9]{1,7})\))?(/GDRDMA(?:\(PCI\))?)?(/Shared)?")
_P2P = re.compile(r"P2P/((?:MNNVL|CUMEM|IPC|direct pointer|indirect/[0-9]{1,7}\[\w{1,16}\])(?:/[A-Za-z]{1,16}){0,3})")
_SHM = re.compile(r"SHM/?((?:[A-Za-z]{1,16}/?){0,4})(?:\+[A-Za-z]+)?")
_ROW_TAIL = re.compile(r"\s+[-0-9.e+N/A\s]{1,200}$")  # a result row that went on in the same line
_RING = re.compile(r"Channel [0-9]{2,4}/[0-9]{2,4} :((?: +[0-9]{1,7}){1,4096})\s*")
_ENV = re.compile(r"(NCCL_[A-Z0-9_]{1,80}) set (?:by environment )?to (.{0,1024})")
_INTEGER = re.compile(r"-?[0-9]{1,20}\.")
_COMM = re.compile(r"\bcomm (0x[0-9a-fA-F]{1,16}) rank ([0-9]{1,7}) n[rR]anks ([0-9]{1,7})\b(.{0,400})")
_GDR = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for (.{1,160})")
_GID = re.compile(r"\bGID (-?[0-9]{1,4}) \(([0-9A-Fa-f]{1,16})/([0-9A-Fa-f]{1,16})\)")
_USING = re.compile(r"NET/(?:IB|IBext\w{0,16}|gIB) ?: Using ?(.{0,6000})")
_ITEM = re.compile(r"\[([0-9]{1,4})\](?:=?\{([^{}]{1,600})\}|([^\s\[\]{};]{1,100}))")
_DEVICE = re.compile(r"(?:\[[0-9]{1,4}\] ?)?([A-Za-z][A-Za-z0-9_.-]{0,63}):([0-9]{1,3})(?::(-?[0-9]{1,4}):(-?[0-9]{1,4}))?"
                     r"/(RoCE|IB)(/SHARP)?")
_VIRTUAL = re.compile(r"NET/\w{1,16} ?: Made virtual device \[([0-9]{1,4})\] name=(\S{1,600}) speed=[0-9]{1,9} ndevs=([0-9]{1,3})")
_NETWORK = re.compile(r"(?:Using network ([A-Za-z][\w -]{0,60})|Assigned NET plugin ([A-Za-z][\w -]{0,60}) to comm)")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([A-Za-z0-9_;+-]{1,40})")
_DATA_DIRECT = "_dma"


def edge(line: LogLine) -> Edge | None:
    """A channel between two ranks. `Channel 00/02 : 0 1` (ring order) is none."""
    m = _EDGE.fullmatch(line.text)
    if not m or m[3] == m[5]:
        return None
    tail = via(m[8])
    direction = Direction(m[7] or "")
    # NET lines always say their direction; a transport inside the node never does.
    if (tail.kind is Kind.NET) != (direction is not Direction.BOTH) and tail.kind is not Kind.UNKNOWN:
        return None
    return Edge(line, int(m[1]), int(m[3]), int(m[5]), direction, tail)


def via(text: str) -> Via:
    """What stands after `via`. Kind.UNKNOWN for what is not understood: never a guess."""
    text = _ROW_TAIL.sub("", text).strip()
    if m := _NET.fullmatch(text):
        return Via(Kind.NET, m[1], int(m[2]), int(m[3]) if m[3] else None, Gdr((m[4] or "").removeprefix("/")), bool(m[5]))
    if m := _P2P.fullmatch(text):
        return Via(Kind.P2P, m[1])
    if m := _SHM.fullmatch(text):
        return Via(Kind.SHM, m[1].strip("/"))
    return Via(Kind.UNKNOWN, text[:60])


def collnet(line: LogLine) -> CollNetUse | None:
    m = _COLLNET.fullmatch(_ROW_TAIL.sub("", line.text))
    if not m:
        return None
    return CollNetUse(line, int(m[1]), Via(Kind.COLLNET, m[2], int(m[3]), gdr=Gdr((m[4] or "").removeprefix("/"))))


def ring(text: str) -> tuple[int, ...] | None:
    """The ranks in ring order. NCCL shows at most some twenty of them."""
    m = _RING.fullmatch(text)
    return tuple(int(r) for r in m[1].split()) if m else None


def env(line: LogLine) -> EnvValue | None:
    """Numbers are followed by a full stop, words are not."""
    m = _ENV.fullmatch(line.text)
    if not m:
        return None
    value = m[2].strip()
    number = _INTEGER.fullmatch(value) is not None
    return EnvValue(line, m[1], value[:-1] if number else value, number)


def _number(text: str, word: str) -> int | None:
    m = re.search(rf"\b{word} ([0-9]{{1,7}})\b", text)
    return int(m[1]) if m else None


def comm(line: LogLine) -> CommLine | None:
    m = _COMM.search(line.text)
    if not m:
        return None
    rank, size, rest = int(m[2]), int(m[3]), m[4]
    if rank >= size:
        return None
    nodes = _number(rest, "nNodes")
    said = next((e for e in (CommEvent.START, CommEvent.COMPLETE, CommEvent.DESTROY, CommEvent.ABORT) if rest.rstrip().endswith(f"- {e}")),
                CommEvent.OTHER if nodes is None else CommEvent.TOPOLOGY)
    comm_id = re.search(r"\bcommId (0x[0-9a-fA-F]{1,16})\b", rest)
    bus = re.search(r"\bbusId ([0-9a-fA-F]{1,16})\b", rest)
    mnnvl = _number(rest, "MNNVL")
    return CommLine(line, said, m[1], rank, size, comm_id[1] if comm_id else "", _number(rest, "cudaDev"), bus[1] if bus else "",
                    nodes, _number(rest, "localRanks"), bool(mnnvl))


def gdr(line: LogLine) -> GdrLine | None:
    m = _GDR.search(line.text)
    return GdrLine(line, m[1] == "Enabled", m[2].strip()) if m else None


def queue_pair(line: LogLine) -> QpInfo | None:
    """`GID 3 (0/9C0A8C0FFFF0000)`: two 64-bit words as the host (little endian) reads them from the GID's bytes."""
    m = _GID.search(line.text)
    if not m or "NET/" not in line.text:
        return None
    raw = int(m[2], 16).to_bytes(8, "little") + int(m[3], 16).to_bytes(8, "little")
    mapped = str(IPv4Address(raw[12:])) if raw[:12] == b"\0" * 10 + b"\xff\xff" else ""
    return QpInfo(line, _number(line.text, "Port"), _number(line.text, "mtu"), int(m[1]), mapped, raw[:2] == b"\xfe\x80")


def hca_list(line: LogLine) -> HcaList | None:
    """`NET/IB : Using [0]a:1/RoCE [1]b:1/RoCE [RO]; OOB if0:192.0.2.1<0>` and the list of merged devices of 2.20 to 2.23."""
    m = _USING.fullmatch(line.text)
    if not m:
        return None
    listed, _, after = m[1].partition(";")
    hcas: list[Hca] = []
    for item in _ITEM.finditer(listed):
        got = _hca(int(item[1]), item[2] or item[3])
        if got:
            hcas.append(got)
    left = _ITEM.sub("", listed).replace("[RO]", "").strip()
    whole = not left and len(hcas) == len(list(_ITEM.finditer(listed))) and [h.index for h in hcas] == list(range(len(hcas)))
    oob = re.fullmatch(r"\s*OOB (\S{1,120})\s*", after)
    return HcaList(line, tuple(hcas), whole, "[RO]" in listed, endpoint(oob[1]) if oob else None)


def _hca(index: int, text: str) -> Hca | None:
    parts = [_DEVICE.fullmatch(p.strip()) for p in text.split(",")]
    if not all(parts):
        return None
    found = [m for m in parts if m]
    first = found[0]
    names = [plain_name(m[1]) for m in found]
    return Hca(index, tuple(dict.fromkeys(names)), int(first[2]), first[5], int(first[3]) if first[3] else None,
               int(first[4]) if first[4] else None, any(m[1].endswith(_DATA_DIRECT) for m in found), bool(first[6]))


def plain_name(device: str) -> str:
    """A Data Direct name is its device's with `_dma` behind it."""
    return device.removesuffix(_DATA_DIRECT)


def virtual(text: str) -> Hca | None:
    """`Made virtual device [2] name=a+b speed=400000 ndevs=2`; also printed for single devices."""
    m = _VIRTUAL.fullmatch(text.rstrip())
    if not m:
        return None
    names = [plain_name(n) for n in m[2].split("+")]
    return Hca(int(m[1]), tuple(dict.fromkeys(names))) if len(names) == int(m[3]) and all(names) else None


def network(text: str) -> str | None:
    m = _NETWORK.fullmatch(text.rstrip())
    return (m[1] or m[2]).strip() if m else None


def provider(text: str) -> str | None:
    m = _PROVIDER.match(text)
    return m[1].lower() if m else None
