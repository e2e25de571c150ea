"""The words for node/listen.py, and what a listener says of itself. `fabrictool.prove.bootstrap_tcp` says what connections mean."""

from __future__ import annotations

import re
from ipaddress import ip_address

from fabrictool.prove.bootstrap_tcp import LISTEN_S, last_line
from fabrictool.snapshot import Captured

CONNECT_S = 3  # TCP's second try comes after 1 s (RFC 6298); two rounds of these fit into LISTEN_S

Words = tuple[str, ...]


def listen(run: str, address: str) -> Words:
    return ("listen", run, str(ip_address(address)), str(LISTEN_S))


def connect(run: str, address: str, port: str) -> Words:
    return ("connect", run, str(ip_address(address)), str(int(port)), str(CONNECT_S))


def stop(run: str, process: str) -> Words:
    return ("stop", run, str(int(process)))


def left(run: str) -> Words:
    return ("left", run)


def listening(got: Captured) -> tuple[str, str] | None:
    """Port and process number of a listener that runs. What a login shell prints stands before it."""
    m = re.fullmatch(r"listening \S{1,64} ([0-9]{1,5}) ([0-9]{1,10})", last_line(got.out)) if got.rc == 0 else None
    return (m[1], m[2]) if m else None
