"""What a stand-in is: one pure function from a call to an answer.

`standins/<tool with - as _>.py` defines `run(call: Call) -> Answer`. main.py does the rest, in the node's tool
server: locking and saving the state, the generic misbehaviours (hangs, traceback, lies ...), the command log, sysfs afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fabrictool.lab.nodeside.state import Node


@dataclass(frozen=True)
class Link:
    """One live interface of the node, as `ip` shows it. Addresses carry their prefix length: `10.10.1.11/24`. The counters are the
    kernel's own, since the interface was made."""

    name: str
    mac: str
    mtu: int
    up: bool  # administratively
    operstate: str  # UP, DOWN, LOWERLAYERDOWN ...
    carrier: bool
    addresses: tuple[str, ...] = ()
    min_mtu: int = 68
    max_mtu: int = 9978
    rx_bytes: int = 0
    rx_packets: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0


def _nobody(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@dataclass(frozen=True)
class Caller:
    """Who asks: the environment of the process, and a wait of at most so many seconds that tells whether it has gone."""

    environ: Mapping[str, str] = field(default_factory=dict)
    gone: Callable[[float], bool] = _nobody


@dataclass
class Call:
    """`argv`: without the tool's name. `node`: the state; changes made to it are saved, but only when `root`.
    `mode`: the misbehaviour asked for ("ok" normally): the generic ones are done by main.py, the others are the stand-in's.
    `links`: reads the live interfaces (costs one `ip`), so call it only where needed. The process is root's in any case, so that a
    stand-in can read what the real tool's daemon would: what the caller may do is `root`."""

    tool: str
    argv: list[str]
    node: Node
    root: bool
    mode: str = "ok"
    links: Callable[[], Mapping[str, Link]] = field(default=dict)
    caller: Caller = field(default_factory=Caller)


@dataclass(frozen=True)
class Answer:
    """Exit status and both streams, exactly as the real tool would give them (newlines included)."""

    rc: int = 0
    out: str = ""
    err: str = ""
