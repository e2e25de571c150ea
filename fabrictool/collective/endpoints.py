"""Interfaces and addresses as NCCL prints them: `if0:192.0.2.1<0>`."""

from __future__ import annotations

import re

from fabrictool.collective.logmodel import Endpoint

_ENDPOINT = re.compile(r"(?:\[([0-9]{1,4})\])?([A-Za-z0-9_][A-Za-z0-9_.@-]{0,31}):([0-9A-Fa-f.:%A-Za-z_-]{2,64})<([0-9]{1,5})>")
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using (\S{1,120})(?: .{0,80})?")
_SOCKET = re.compile(r"NET/Socket ?: Using (.{1,4000})")


def endpoint(text: str) -> Endpoint | None:
    m = _ENDPOINT.fullmatch(text)
    return Endpoint(m[2], m[3], int(m[1]) if m[1] else None) if m else None


def bootstrap(text: str) -> Endpoint | None:
    m = _BOOTSTRAP.fullmatch(text)
    return endpoint(m[1]) if m else None


def sockets(text: str) -> tuple[Endpoint, ...]:
    """`NET/Socket : Using [0]if0:192.0.2.1<0> [1]if1:...`."""
    m = _SOCKET.fullmatch(text)
    if not m:
        return ()
    return tuple(e for e in map(endpoint, m[1].split()) if e)
