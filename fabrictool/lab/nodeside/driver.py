"""What the mlx5 driver does with the settings it is given, on the state model: the semantics behind every stand-in.

Rules follow the kernel's mlx5 en_dcbnl.c: a different PFC mask flaps the link, the same mask does nothing; trust is dscp exactly
while a DSCP entry exists; deleting an entry sets that DSCP's firmware mapping to priority 0. A function whose driver is not
mlx5_core behaves like the kernel's plain DCB tables: no firmware map, no automatic headroom, and an existing entry is refused.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
from collections.abc import Callable, Container
from pathlib import Path

from fabrictool.lab.nodeside.state import Function, Node, default_dscp_map

LOSSY_BUFFER = 20016  # bytes; what a ConnectX gives buffer 0 once a lossless buffer exists
LOSSLESS_BUFFER = 156096  # bytes; buffer 1 then
MAX_CABLE_M = 1000  # exclusive: mlx5 ignores other lengths without a word
TSA = ("strict", "cbs", "ets", "vendor")


class Refused(OSError):
    """The kernel's answer to a netlink request: `errno` and its text."""

    @property
    def text(self) -> str:
        return os.strerror(self.errno or 0)


def refused(number: int) -> Refused:
    return Refused(number, os.strerror(number))


def need_root(root: bool) -> None:
    """Sets need CAP_NET_ADMIN, which rtnetlink asks before it looks for the interface."""
    if not root:
        raise refused(errno.EPERM)


def function(node: Node, interface: str, others: Callable[[], Container[str]] = tuple) -> Function:
    """The function behind an interface with DCB; ENODEV for no such interface, EOPNOTSUPP for one without DCB.

    `others`: names of the node's live interfaces, asked only where the state does not know the name.
    """
    fn = node.functions.get(interface)
    if fn is None:
        there = interface == "lo" or interface in node.nics or interface in others()
        raise refused(errno.EOPNOTSUPP if there else errno.ENODEV)
    if not fn.dcb:
        raise refused(errno.EOPNOTSUPP)
    return fn


def mlx5(fn: Function) -> bool:
    return fn.driver == "mlx5_core"


def sharers(node: Node, fn: Function) -> list[Function]:
    """The functions whose port settings change together: one cage of one card, where the node's twins share; `fn` comes first."""
    if not node.twins_share:
        return [fn]
    same = [f for f in node.functions.values() if f.port == fn.port and f.sys_image_guid == fn.sys_image_guid]
    return [fn] + [f for f in same if f is not fn]


# --- DSCP entries and trust ---------------------------------------------------------------------------------------------------

def entries(fn: Function) -> list[list[int]]:
    """The kernel's DSCP application table: [DSCP, priority] pairs, newest first. Empty under trust pcp."""
    if fn.trust != "dscp":
        return []
    return [list(e) for e in fn.dscp_app] or [[d, fn.dscp_map[d]] for d in range(63, -1, -1)]


def _store(fn: Function, table: list[list[int]]) -> None:
    fn.trust = "dscp" if table else "pcp"
    whole = [[d, fn.dscp_map[d]] for d in range(63, -1, -1)]
    fn.dscp_app = [] if table == whole else table


def set_app(node: Node, fn: Function, dscp: int, prio: int) -> None:
    """Add one entry. The first one flips trust to dscp."""
    if not (0 <= dscp <= 63 and 0 <= prio <= 7):
        raise refused(errno.EINVAL)
    if not mlx5(fn) and [dscp, prio] in entries(fn):
        raise refused(errno.EEXIST)
    for f in sharers(node, fn):
        table = entries(f)
        if mlx5(f):
            table = [e for e in table if e[0] != dscp]
        f.dscp_map = [prio if d == dscp else p for d, p in enumerate(f.dscp_map)]
        _store(f, [[dscp, prio], *table])


def del_app(node: Node, fn: Function, dscp: int, prio: int) -> None:
    """Delete one entry: its DSCP then has priority 0 in firmware. The last one flips trust to pcp."""
    if [dscp, prio] not in entries(fn):
        raise refused(errno.ENOENT)
    for f in sharers(node, fn):
        table = [e for e in entries(f) if e != [dscp, prio]]
        left = [p for d, p in table if d == dscp]
        f.dscp_map = [(left[0] if left else 0) if d == dscp else p for d, p in enumerate(f.dscp_map)]
        _store(f, table)


def set_default_prio(node: Node, fn: Function, prio: int, present: bool) -> None:
    """The default-priority entry of old tools; mlx5 has none and refuses."""
    if mlx5(fn):
        raise refused(errno.EINVAL)
    if present and prio not in fn.default_prio:
        fn.default_prio = [prio, *fn.default_prio]
    elif not present:
        if prio not in fn.default_prio:
            raise refused(errno.ENOENT)
        fn.default_prio = [p for p in fn.default_prio if p != prio]


# --- PFC, headroom, scheduling, DCBX, pause -----------------------------------------------------------------------------------

def set_pfc(node: Node, fn: Function, mask: list[int], delay: int) -> None:
    """PFC per priority, and the cable length in metres. The same mask writes nothing; another one flaps the link."""
    want = [1 if m else 0 for m in mask]
    for f in sharers(node, fn):
        if not mlx5(f) or 0 < delay < MAX_CABLE_M:
            f.cable_len = delay
    if want == fn.pfc:
        return
    group = sharers(node, fn)
    for f in group:
        f.pfc = list(want)
        headroom(f)
    if mlx5(fn):
        flap(node, group)


def headroom(fn: Function) -> None:
    """Automatic headroom: with PFC on, lossless priorities get buffer 1; without, all share buffer 0."""
    if fn.buffers_manual or not fn.buffer_size or not mlx5(fn):
        return
    fn.prio_buffer = list(fn.pfc)
    fn.buffer_size = [LOSSY_BUFFER, LOSSLESS_BUFFER] + [0] * 6 if any(fn.pfc) else [fn.buffer_total] + [0] * 7


def set_buffers(node: Node, fn: Function, prio_buffer: list[int], sizes: list[int]) -> None:
    """Set by hand: turns automatic headroom off. More bytes than there are is refused."""
    if sum(sizes) > fn.buffer_total or min(sizes) < 0:
        raise refused(errno.EINVAL)
    for f in sharers(node, fn):
        f.buffers_manual, f.prio_buffer, f.buffer_size = True, list(prio_buffer), list(sizes)


def set_ets(node: Node, fn: Function, prio_tc: list[int], tsa: list[str], bw: list[int]) -> None:
    """Priority -> traffic class, scheduler and weight (percent) per class. ETS weights must total 100."""
    ets = [b for b, t in ((bw[i], tsa[i]) for i in range(8)) if t == "ets"]
    if mlx5(fn) and ets and sum(ets) != 100:
        raise refused(errno.EINVAL)
    for f in sharers(node, fn):
        f.prio_tc, f.tsa, f.tc_bw = list(prio_tc), list(tsa), list(bw)


def shown_bw(fn: Function) -> list[int]:
    """Weights as the driver reports them: mlx5 says 100 for a class that is not ETS."""
    return [b if not mlx5(fn) or fn.tsa[i] == "ets" else 100 for i, b in enumerate(fn.tc_bw)]


def set_maxrate(node: Node, fn: Function, kbit_per_s: list[int]) -> None:
    for f in sharers(node, fn):
        f.maxrate = list(kbit_per_s)


def set_dcbx(node: Node, fn: Function, host: bool) -> None:
    """Who runs DCBX: the host, or the firmware."""
    for f in sharers(node, fn):
        f.dcbx_host = host
        if not mlx5(f):
            f.dcbx_caps = f.dcbx_caps if host else []


def set_pause(node: Node, fn: Function, rx: bool, tx: bool) -> None:
    """Global (802.3x) pause of the port."""
    for f in sharers(node, fn):
        f.global_pause, f.pause_tx = rx, None if tx == rx else tx


def pause(fn: Function) -> tuple[bool, bool]:
    """(rx, tx)"""
    return fn.global_pause, fn.global_pause if fn.pause_tx is None else fn.pause_tx


# --- flap and power -----------------------------------------------------------------------------------------------------------

def flap(node: Node, group: list[Function], toggle: Callable[[str], None] | None = None) -> None:
    """The port goes down and up: counted, queue pairs on it die, and in a lab node the real interface does the same."""
    for f in group:
        f.flaps += 1
        node.qps.pop(f.rdma, None)
        if toggle is not None or _in_node(node, f.interface):
            (toggle or _toggle)(f.interface)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    return done.stdout.decode("utf-8", "replace")


def _in_node(node: Node, interface: str) -> bool:
    """Only ever toggle a veth of a machine that carries the node's own host name: never a real NIC."""
    if os.geteuid() != 0 or socket.gethostname().split(".")[0] != node.name or not Path("/sys/class/net", interface).exists():
        return False
    return " veth " in _ip("-d", "link", "show", "dev", interface)


def _toggle(interface: str) -> None:
    """Down and up, if it was up. A NIC keeps addresses and routes then; a veth set down does not, so they are put back."""
    up = "UP" in _ip("-o", "link", "show", "dev", interface).partition("<")[2].partition(">")[0].split(",")
    if not up:
        return
    routes = [r.split() for r in _ip("route", "show", "dev", interface).splitlines() if "proto kernel" not in r]
    shown = _ip("-o", "-6", "addr", "show", "dev", interface, "scope", "global").splitlines()
    inet6 = [r.split()[3] for r in shown if len(r.split()) > 3]
    _ip("link", "set", "dev", interface, "down")
    _ip("link", "set", "dev", interface, "up")
    for address in inet6:
        _ip("-6", "addr", "add", address, "dev", interface, "nodad")
    for words in routes:
        _ip("route", "replace", *[w for w in words if w != "linkdown"], "dev", interface)


def power_on(fn: Function) -> None:
    """What a cold boot leaves: nothing of what was set at run time."""
    fresh = Function(fn.interface, fn.rdma, fn.port, fn.rail, fn.bus, fn.rate_gbit, fn.sys_image_guid, fn.node_guid)
    for name in ("trust", "pfc", "prio_tc", "tsa", "tc_bw", "maxrate", "prio_buffer", "cable_len", "global_pause", "pause_tx",
                 "dscp_app", "default_prio", "buffers_manual", "tclass", "ecn", "dcbx_host", "dcbx_caps"):
        setattr(fn, name, getattr(fresh, name))
    fn.dscp_map = default_dscp_map()
    if fn.buffer_size:
        fn.buffer_size = [fn.buffer_total] + [0] * 7


def reboot(node: Node) -> None:
    """All functions powered on afresh, their counters at 0; queue pairs and running sessions are gone."""
    for fn in node.functions.values():
        power_on(fn)
        fn.counts.clear()
    node.qps.clear()
