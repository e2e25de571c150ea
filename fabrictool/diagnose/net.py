"""Interfaces as `ip` and `ethtool IF` show them, and open connections as `ss` does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.model import Code, Finding, Reason, Unreadable, Value
from fabrictool.names import hosts
from fabrictool.ports import Netdev, pasted
from fabrictool.ports.parse import parse_addr
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line, Piece

KINDS = frozenset({Kind.IP_JSON, Kind.IP_TEXT, Kind.ETHTOOL, Kind.SOCKETS})
Row = tuple[Netdev, tuple[int, ...], bool]
JUMBO = 4200  # bytes: below, RoCE does not send packets of 4,096
_PORT = re.compile(r"np\d{1,2}$|^(?:roce|ib)")
_NAME = re.compile(r'"([\w.@-]{1,64})"')
_ROW = re.compile(r"(?:(?:tcp6?|udp)\s+)?(?:([A-Z][A-Z-]{3,11}\d?)\s+)?(\d{1,9})\s+(\d{1,9})\s+(\S{1,80}):(\d{1,5}|\*)"
                  r"\s+(\S{1,80}):(\d{1,5}|\*)(?:\s+([A-Z_]{4,11}\d?))?(?:\s+(.{0,300}))?")


def netdevs(piece: Piece) -> tuple[Row, ...] | Unreadable:
    """Interface, its lines (from 0), and whether it has no carrier."""
    if piece.kind is Kind.IP_TEXT:
        shown = pasted.ip_text([ln.text for ln in piece.lines])
        return tuple((s.netdev, s.lines, s.no_carrier) for s in shown) or Unreadable(Reason.GARBLED, "no interface in it")
    found = parse_addr(piece.text)
    if isinstance(found, Unreadable):
        return found
    at = first_lines(piece)
    return tuple((n, (at[n.name],) if n.name in at else (), False) for n in found)


def first_lines(piece: Piece) -> dict[str, int]:
    """Every quoted name of a JSON text and the first line, from 0, in which it stands."""
    out: dict[str, int] = {}
    for i, line in enumerate(piece.lines):
        for name in _NAME.findall(line.text):
            out.setdefault(name, i)
    return out


def judge(case: Case) -> Iterator[Judged]:
    piece = case.piece
    if piece.kind is Kind.SOCKETS:
        yield Judged(piece.kind, (piece,), tuple(_sockets(case)))
    elif piece.kind is Kind.ETHTOOL:
        yield Judged(piece.kind, (piece,), tuple(_ethtool(case)))
    else:
        yield Judged(piece.kind, (piece,), tuple(_interfaces(case)), unproven=("that the switch passes packets of the interface's MTU",))


def _interfaces(case: Case) -> Iterator[Finding]:
    piece, rows = case.piece, netdevs(case.piece)
    if isinstance(rows, Unreadable):
        blind = About(Code.UNREADABLE, case.subject, "link.interfaces", "").unknown(rows, "a list of interfaces")
        yield quoted(blind, piece, piece.lines[:1])
        return
    wanted = {fn.interface for port in case.want.ports.values() for fn in port.functions if fn.interface} if case.want else set()
    for netdev, at, no_carrier in rows:
        lines = [piece.lines[i] for i in at] or piece.lines[:1]
        if case.want is None or netdev.name not in wanted:
            continue
        for f in _against_spec(case, netdev, no_carrier):
            yield quoted(f, piece, lines[:2])
    for name in sorted(wanted - {n.name for n, _, _ in rows}):
        if len(rows) > 1 or (rows and rows[0][0].name == "lo"):
            missing = About(Code.LINK_ABSENT, case.function(name), "ports.interface", "").fail(
                "absent", name, f"{name} of the spec is not in this list",
                remedy="check cable and driver; correct the spec if it is renamed")
            yield quoted(missing, piece, piece.lines[:1])
    yield from _shared_subnets(case, rows)
    if rows and not wanted:
        told = ", ".join(f"{n.name} {n.mtu.value}" for n, _, _ in rows if isinstance(n.mtu, Value) and n.name != "lo")
        text = f"{len(rows)} interfaces" + (f"; MTU: {told}"[:300] if told else "")
        yield About(Code.LINK_MTU_RUNNING, case.subject, "link.seen", "").ok(text)


def _against_spec(case: Case, n: Netdev, no_carrier: bool) -> Iterator[Finding]:
    assert case.want is not None
    subject, mtu = case.function(n.name), case.want.fabric.mtu
    about = About(Code.LINK_MTU_RUNNING, subject, "link.mtu", "")
    if mtu is not None and isinstance(n.mtu, Value):
        if n.mtu.value == mtu:
            yield about.ok(str(mtu))
        else:
            yield about.fail(str(n.mtu.value), str(mtu), "the interface runs with another MTU than fabric.mtu",
                             remedy=f"as root: ip link set dev {n.name} mtu {mtu} (a short outage on mlx5)")
    state = About(Code.LINK_DOWN, subject, "link.state", "")
    if no_carrier or n.operstate in ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT"):
        how = "no carrier" if no_carrier or n.up else "administratively down, or no carrier"
        yield state.fail(how, "up", f"{n.name} has no link", remedy=f"check cable and switch port; ip link set dev {n.name} up")
    elif n.operstate == "UP":
        yield state.ok("up")


def _shared_subnets(case: Case, rows: Sequence[Row]) -> Iterator[Finding]:
    """Two plain interfaces with addresses of one IPv4 network: the kernel may answer ARP for either on either."""
    piece = case.piece
    plain = [(n, at) for n, at, _ in rows if not n.kind and not n.master and not n.parent and _rail(n)]
    for (a, at_a), (b, at_b) in combinations(plain[:64], 2):
        nets = [(x.network, y.network) for x in a.addresses for y in b.addresses if x.version == y.version == 4]
        if any(x.overlaps(y) and not x.is_link_local and x.prefixlen < 32 for x, y in nets):
            net = next(x for x, y in nets if x.overlaps(y))
            about = About(Code.ARP_FLUX, case.subject, f"link.arp.{a.name}.{b.name}", "")
            warned = about.warn(f"{a.name} and {b.name} are both in {net}", "one subnet for each rail",
                                "peers may learn the wrong rail's MAC, unless arp_ignore 1, arp_announce 2, rp_filter 2 are set on both",
                                remedy="give each rail its own subnet, or set the three sysctls on these interfaces")
            yield quoted(warned, piece, [piece.lines[i] for i in (*at_a[-1:], *at_b[-1:])])


def _rail(n: Netdev) -> bool:
    """Whether it may be an interface of the fabric: by its name (a port of a multi-port NIC) or its MTU. Others share a LAN as a rule."""
    return _PORT.search(n.name) is not None or (n.name != "lo" and isinstance(n.mtu, Value) and n.mtu.value >= JUMBO)


def _ethtool(case: Case) -> Iterator[Finding]:
    piece = case.piece
    for seen in pasted.ethtool([ln.text for ln in piece.lines]):
        subject = case.function(seen.name)
        lines: list[Line] = [ln for ln, _ in piece.find(r"Settings for|Speed:|Link detected:")]
        about = About(Code.LINK_DOWN, subject, "link.state", "")
        if seen.link == Value(False):
            down = about.fail(f"{seen.name}: no link", "a link", "the port has no carrier: nothing can use it",
                              remedy="check cable, transceiver and the switch port; `ip link set dev IF up` if it is switched off")
            yield quoted(down, piece, lines)
        elif seen.link == Value(True):
            yield quoted(about.ok(f"{seen.name}: link up"), piece, lines)
        rate = case.want.ports[subject.port].rate_gbit if case.want and subject.port else None
        if rate is not None and isinstance(seen.speed, Value):
            speed = About(Code.LINK_SPEED, subject, "link.speed", "")
            got, want = str(seen.speed.value), f"{rate} Gb/s"
            other = speed.fail(got, want, "the link runs at another rate than the spec says",
                               remedy="check cable, transceiver and the switch port's speed")
            yield quoted(speed.ok(got, want) if seen.speed.value.gbit_per_s == rate else other, piece, lines)


def _sockets(case: Case) -> Iterator[Finding]:
    """Connections that nobody answers, and servers that only this host can reach."""
    piece = case.piece
    syn_only = "syn-sent" in piece.command.lower()
    rows = [(ln, m) for ln in piece.lines if (m := _ROW.fullmatch(ln.text.strip()[:600]))]
    waiting: dict[str, list[Line]] = {}
    for line, m in rows:
        state = (m[1] or m[8] or ("SYN-SENT" if syn_only else "")).replace("_", "-")
        if state == "SYN-SENT":
            waiting.setdefault(m[6].strip("[]"), []).append(line)
    for peer, lines in waiting.items():
        about = About(Code.BOOTSTRAP_BLOCKED, case.subject, f"names.connect.{peer}", "")
        mine = set(lines)
        ports = sorted({m[7] for ln, m in rows if ln in mine})
        if hosts.loopback(peer):
            why = "this process calls itself for another node: a peer published a loopback address"
            about = About(Code.GLOO_LOOPBACK, case.subject, f"names.connect.{peer}", "")
        else:
            why = "no answer to a connection request: a firewall drops it, the address is not reachable from here, or the peer is down"
        blocked = about.fail(f"{len(lines)} waiting for {peer} (port {', '.join(ports[:5])})", "an answer", why,
                             remedy=f"from this node: nc -vz {peer} {ports[0]}; on {peer}: is something listening there (ss -tlnp), and"
                                    " does its firewall (nft list ruleset, ufw status) let the cluster's network in")
        yield quoted(blocked, piece, lines)
    if rows and not waiting:
        yield quoted(About(Code.BOOTSTRAP_BLOCKED, case.subject, "names.connect", "").ok(f"{len(rows)} sockets, none waits for an answer"),
                     piece, [rows[0][0]])
