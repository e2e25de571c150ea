"""What the pieces of one node tell about each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fabrictool.diagnose import net
from fabrictool.diagnose.model import NO_OTHER, Around, Case, Wants
from fabrictool.model import Absent, Unreadable
from fabrictool.ports import Netdev
from fabrictool.rdma import parse, pasted
from fabrictool.snapshot import Captured
from fabrictool.snapshot.sniff import Kind, Piece

_CLASS = re.compile(r"\bNCCL_IB_TC(?:=| set (?:by environment )?to )\"?(\d{1,3})\b")
_LISTS = frozenset({Kind.RDMA_LINK, Kind.IBV_DEVINFO, Kind.IBSTAT, Kind.IBDEV2NETDEV})


def cases(pieces: Sequence[Piece], wants: Wants) -> list[Case]:
    """Each piece with what the others of its node show. One file without host names is one node's."""
    by_node: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_node.setdefault(_node(piece), []).append(piece)
    everywhere = _class(pieces)
    known = {node: _around(mine, everywhere) for node, mine in by_node.items()}
    return [Case(p, wants.of(p), known[_node(p)], wants.nodes) for p in pieces]


def _node(piece: Piece) -> str:
    return piece.host or f"{piece.source} {piece.label}"


def _class(pieces: Iterable[Piece]) -> int | None:
    """The one value that all of them give, if there is one."""
    found = {int(m[1]) for p in pieces if p.kind in (Kind.ENV, Kind.NCCL_LOG, Kind.NCCL_TESTS) for _, m in p.find(_CLASS)}
    return found.pop() if len(found) == 1 and max(found) <= 255 else None


def _around(pieces: Sequence[Piece], everywhere: int | None) -> Around:
    own = _class(pieces)
    return Around(_netdevs(pieces), _rdma(pieces), own if own is not None else everywhere)


def _netdevs(pieces: Iterable[Piece]) -> Mapping[str, Netdev] | Unreadable:
    """Only a list that begins with `lo` is a list of all."""
    for piece in pieces:
        if piece.kind in (Kind.IP_JSON, Kind.IP_TEXT):
            rows = net.netdevs(piece)
            if not isinstance(rows, Unreadable) and any(n.name == "lo" for n, _, _ in rows):
                return {n.name: n for n, _, _ in rows}
    return NO_OTHER


def _rdma(pieces: Iterable[Piece]) -> tuple[str, ...] | Unreadable:
    for piece in pieces:
        if piece.kind not in _LISTS or re.search(r"\s-d\b|\blink show \S|\|", piece.command):
            continue  # one device, or filtered: not the whole list
        lines = [ln.text for ln in piece.lines]
        if piece.kind is Kind.RDMA_LINK and lines[0].lstrip().startswith("["):
            found = parse.links(Captured(0, piece.text))
            names = () if isinstance(found, (Absent, Unreadable)) else tuple(found)
        else:
            read = {Kind.IBV_DEVINFO: pasted.devinfo, Kind.IBSTAT: pasted.ibstat}.get(piece.kind, pasted.links)
            names = tuple(s.port.name for s in read(lines))
        if names and all(names):
            return names
    return NO_OTHER
