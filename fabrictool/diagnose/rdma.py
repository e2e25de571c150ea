"""RDMA devices as ibv_devinfo, ibstat, show_gids, ibdev2netdev and `rdma` show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabrictool.diagnose.model import Case, Judged, as_pasted, quoted, softened
from fabrictool.diagnose.net import first_lines
from fabrictool.model import Absent, Code, Finding, Observed, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports import BoundFunction, Netdev, RdmaDevice
from fabrictool.rdma import parse, pasted
from fabrictool.rdma.judge import judge_active_mtu, judge_gid, judge_link_layer, judge_rate, judge_state
from fabrictool.rdma.model import GidEntry, PortState, RdmaPort
from fabrictool.rdma.pasted import Seen
from fabrictool.room import About
from fabrictool.snapshot import Captured
from fabrictool.snapshot.sniff import LOOK, Kind, Line

KINDS = frozenset({Kind.IBV_DEVINFO, Kind.IBSTAT, Kind.SHOW_GIDS, Kind.IBDEV2NETDEV, Kind.RDMA_LINK, Kind.RDMA_RESOURCE})
JUMBO = 4096  # the largest RDMA MTU, bytes: it needs an interface MTU of about 4,200


def judge(case: Case) -> Iterator[Judged]:
    piece = case.piece
    if piece.kind is Kind.SHOW_GIDS:
        yield Judged(piece.kind, (piece,), tuple(_gids(case)), unproven=("that NCCL takes this entry: a pinned index wins",))
    elif piece.kind is Kind.RDMA_RESOURCE:
        return
    else:
        seen = _seen(case)
        yield Judged(piece.kind, (piece,), tuple(_devices(case, seen)),
                     unproven=("that traffic between nodes uses these devices: only traffic and its counters show that",))


def _seen(case: Case) -> tuple[Seen, ...] | Unreadable | Absent:
    piece = case.piece
    lines = [ln.text for ln in piece.lines]
    first = next((ln.strip() for ln in lines if ln.strip()), "")
    if "command not found" in first:
        return Unreadable(Reason.TOOL_MISSING, first[:120])
    if "No IB devices found" in first:
        return Absent("RDMA device")
    if piece.kind is Kind.IBV_DEVINFO:
        return pasted.devinfo(lines)
    if piece.kind is Kind.IBSTAT:
        return pasted.ibstat(lines)
    if piece.kind is Kind.IBDEV2NETDEV or not first.startswith("["):
        return pasted.links(lines) or Unreadable(Reason.GARBLED, f"{piece.kind}: no device in it")
    found = parse.links(Captured(piece.rc or 0, piece.text))
    if isinstance(found, (Unreadable, Absent)):
        return found
    if not found:
        return Absent("RDMA device")
    at = first_lines(piece)
    return tuple(Seen(RdmaPort(name, link=Value(one)), at.get(name, 0), at.get(name, 0), netdev=one.netdev) for name, one in found.items())


def _devices(case: Case, seen: tuple[Seen, ...] | Unreadable | Absent) -> Iterator[Finding]:
    piece = case.piece
    about = About(Code.RDMA_ABSENT, case.subject, "rdma.device", "")
    if isinstance(seen, Unreadable):
        yield quoted(about.unknown(seen, "a list of RDMA devices"), piece, piece.lines[:2])
        return
    if isinstance(seen, Absent):
        missing = about.fail("no RDMA device", "one or more", "the kernel has no RDMA device here (in a container: none was given to it)",
                             remedy="load the NIC's driver (mlx5_ib); in a container: --device /dev/infiniband")
        yield quoted(missing, piece, piece.lines[:2])
        return
    wanted = [fn.rdma or fn.interface or "" for port in case.want.ports.values() for fn in port.functions] if case.want else []
    if wanted:
        mine = tuple(s for s in seen if not s.port.name or s.port.name in wanted or s.netdev in wanted)
        for name in wanted:
            if piece.kind is not Kind.IBV_DEVINFO and not any(name in (s.port.name, s.netdev) for s in seen):
                yield quoted(replace(about.fail("not there", name, f"{name} of the spec is not in this list",
                                                remedy="check cable and driver"), subject=case.function(name)), piece, piece.lines[:1])
    else:
        mine = seen
    some_up = any(_up(s) for s in seen)
    for one in mine:
        lines = piece.lines[one.first:one.last + 1]
        for f in _device(case, one, some_up):
            yield quoted(as_pasted(f), piece, _telling(f, one, lines))


def _up(seen: Seen) -> bool:
    link = seen.port.link
    return seen.port.state == Value(PortState.ACTIVE) or (isinstance(link, Value) and link.value.state == "ACTIVE")


def _device(case: Case, one: Seen, some_up: bool) -> Iterator[Finding]:
    port = one.port
    subject = case.function(port.name or one.netdev)
    fn = _bound(case, one)
    state = judge_state(subject, port)
    text = state.got.removesuffix(" (rdma link alone)")
    named = replace(state, got=f"{port.name}: {text}".removeprefix(": "))
    if fn is None and some_up and state.bad:
        named = softened(named, "other ports are up: wrong only if this one belongs to the fabric (NCCL skips ports that are down)")
    yield named
    if isinstance(port.link_layer, Value) and (fn is not None or port.link_layer.value == "Ethernet"):
        yield judge_link_layer(subject, port)  # InfiniBand is no fault by itself
    if case.want is not None and fn is not None:
        compared = (judge_rate(case.want, subject, fn, port), judge_active_mtu(subject, fn, port)) if _up(one) else ()
        yield from (f for f in compared if _told(f))
    else:
        yield from _mtu(subject, one)
    if isinstance(port.gids, Value):
        yield _gid_of(case, fn, subject, port)


def _told(f: Finding) -> bool:
    """Leaves out what this tool does not print."""
    return not f.got.startswith("unreadable (")


def _mtu(subject: Subject, one: Seen) -> Iterator[Finding]:
    """Without the interface's own MTU: smaller than the device can only because the interface is."""
    about = About(Code.RDMA_ACTIVE_MTU, subject, "rdma.active_mtu", "")
    got = one.port.active_mtu
    if not isinstance(got, Value) or not _up(one):
        return
    most = min(one.max_mtu or JUMBO, JUMBO)
    text = f"{one.port.name}: {got.value}".removeprefix(": ")
    if got.value >= most:
        yield about.ok(text, str(most))
    else:
        yield about.warn(text, str(most), f"the interface's MTU is small (1500 gives 1024): each packet carries {got.value} bytes, and"
                         " large packets of a peer with another MTU are lost without an error",
                         remedy="set the interface's MTU to 9000 where the switch carries it, on all nodes")


def _bound(case: Case, one: Seen) -> BoundFunction | None:
    """The spec's function of this name, on an interface that is as the spec says."""
    if case.want is None:
        return None
    for port, spec in case.want.ports.items():
        for fn in spec.functions:
            if one.port.name == fn.rdma or (one.netdev and one.netdev == fn.interface):
                mtu: Observed[int] = Value(case.want.fabric.mtu) if case.want.fabric.mtu else Unreadable(Reason.NOT_COLLECTED, "no mtu")
                netdev = Netdev(fn.interface or one.netdev or "?", mtu=mtu)
                here = case.around.netdevs
                if not isinstance(here, Unreadable) and netdev.name in here:
                    netdev = here[netdev.name]
                return BoundFunction(port, fn, Value(netdev), Value(RdmaDevice(one.port.name)), (), fn.members)
    return None


def _gid_of(case: Case, fn: BoundFunction | None, subject: Subject, port: RdmaPort) -> Finding:
    if case.want is not None and fn is not None:
        judged = judge_gid(case.want, subject, fn, port)
        if not judged.got.startswith("unreadable") and isinstance(fn.netdev, Value) and fn.netdev.value.addresses:
            return judged
    return _has_v2(subject, port.name, port.gids.value if isinstance(port.gids, Value) else ())


def _has_v2(subject: Subject, name: str, gids: Sequence[GidEntry]) -> Finding:
    """Without a spec: NCCL's automatic choice needs one entry of RoCE v2 with an IPv4 address, on each device."""
    about = About(Code.NO_ROCEV2_GID, replace(subject, kind=SubjectKind.FUNCTION, function=subject.function or name), "rdma.gid", "")
    wanted = "a RoCE v2 GID of an IPv4 address"
    good = [g for g in gids if g.gid.ipv4 is not None and g.kind == Value("RoCE v2")]
    if good:
        return about.ok(f"{name}: GID {good[0].index}, RoCE v2, {good[0].gid.ipv4}", wanted)
    blind = next((g.kind for g in gids if isinstance(g.kind, Unreadable)), None)
    if blind is not None:
        return about.unknown(blind, wanted)
    v4 = [g for g in gids if g.gid.ipv4 is not None]
    got = f"{name}: {len(gids)} GIDs, " + ("IPv4 only as RoCE v1" if v4 else "none of an IPv4 address")
    return about.fail(got, wanted, "NCCL finds no usable GID: the interface has no IPv4 address, or RoCE v2 is off",
                      remedy="give the interface its address in the rail's subnet, through its owner; the driver then adds the GIDs")


def _gids(case: Case) -> Iterator[Finding]:
    piece = case.piece
    lines = [ln.text for ln in piece.lines]
    about = About(Code.NO_ROCEV2_GID, case.subject, "rdma.gid", "")
    if "command not found" in lines[0]:
        yield quoted(about.unknown(Unreadable(Reason.TOOL_MISSING, lines[0].strip()[:120]), "a table of GIDs"), piece, piece.lines[:1])
        return
    table = pasted.gid_table(lines)
    if isinstance(table, Unreadable):
        yield quoted(as_pasted(about.unknown(table, "a whole table")), piece, piece.lines[-1:])
        return
    if not table:
        yield quoted(about.fail("no GIDs", "a RoCE v2 GID of an IPv4 address", "no RDMA device has an address",
                                remedy="see `rdma link` and `ip -br addr`: device, interface, address"), piece, piece.lines[-1:])
    usable = any(e.gid.ipv4 is not None and e.kind == Value("RoCE v2") for entries in table.values() for e, _ in entries)
    for name, entries in table.items():
        subject = case.function(name)
        if case.want is not None and not subject.rail:
            continue
        judged = _has_v2(subject, name, [e for e, _ in entries])
        if judged.bad and case.want is None and not any(e.gid.ipv4 for e, _ in entries) and usable:
            judged = softened(judged, "other devices have one: wrong only if this one belongs to the fabric")
        good = [at for e, at in entries if e.gid.ipv4 is not None and e.kind == Value("RoCE v2")]
        yield quoted(judged, piece, [piece.lines[at] for at in (good[:1] or [at for _, at in entries])])


def _telling(f: Finding, one: Seen, lines: Sequence[Line]) -> Sequence[Line]:
    """The device's name and the line of the value."""
    words = {"rdma.state": ("state:", "State:", "state", "==>"), "rdma.active_mtu": ("active_mtu:",), "rdma.rate": ("active_", "Rate:"),
             "rdma.link_layer": ("link_layer:", "Link layer:"), "rdma.gid": ("GID[",)}.get(f.path, ())
    hits = [ln for ln in lines if any(w in ln.text[:LOOK] for w in words) and "phys" not in ln.text[:40].lower()]
    head = [lines[0]] if one.port.name and one.port.name in lines[0].text[:LOOK] else []
    return [*head, *hits[:4]] or lines[:1]
