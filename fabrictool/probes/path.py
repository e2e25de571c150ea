"""The argv of a DF ping and of its control. `fabrictool.prove.ping` says what their answers mean."""

from __future__ import annotations

from ipaddress import ip_address

from fabrictool.model import Run

COUNT = 3
WAIT_S = 2
QUICK_S = "0.2"  # seconds: the shortest interval that ping allows to users (iputils)
SMALL_BYTES = 56  # ping's own default payload: 84 bytes of IP, below every MTU that IPv4 allows (RFC 791: 576)


def payload(mtu: int, peer: str) -> int:
    """ICMP payload that makes an IP packet of exactly `mtu` bytes: less 28 for IPv4 (20 + 8), less 48 for IPv6 (40 + 8)."""
    return mtu - (48 if ip_address(peer).version == 6 else 28)


def df_ping(mtu: int, source: str, peer: str, *, quick: bool = False) -> Run:
    """The large ping. `source` is the rail address: bound, or the kernel may route through another rail. `quick`: on links that have
    been up for a while."""
    return _ping(payload(mtu, peer), source, peer, quick)


def control_ping(source: str, peer: str, *, quick: bool = False) -> Run:
    """The small ping of the same path."""
    return _ping(SMALL_BYTES, source, peer, quick)


def _ping(size: int, source: str, peer: str, quick: bool) -> Run:
    for address in (source, peer):  # a name or an option in an address's place: ValueError
        ip_address(address)
    pause = ("-i", QUICK_S) if quick else ()
    argv = ("ping", "-n", "-M", "do", "-s", str(size), "-c", str(COUNT), *pause, "-W", str(WAIT_S), "-I", source, peer)
    return Run(argv, timeout_s=COUNT * WAIT_S + 6)
