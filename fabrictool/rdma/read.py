"""From a snapshot to `Rdma`."""

from __future__ import annotations

from fabrictool import ports
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.rdma import parse
from fabrictool.rdma.model import Rdma, RdmaLink, RdmaPort
from fabrictool.snapshot import Snapshot


def read(snap: Snapshot) -> Rdma:
    """Everything the room knows of one node."""
    links = parse.links(snap.raw("rdma.link"))
    names = sorted({*snap.items("rdma.port"), *snap.items("rdma.gids"), *snap.items("rdma.devinfo")})
    stack: Observed[bool] = Value(True) if not isinstance(links, (Absent, Unreadable)) else links
    return Rdma(ports.read(snap), {n: _port(snap, n, _link(links, n)) for n in names}, stack)


def _link(links: object, name: str) -> Observed[RdmaLink]:
    if isinstance(links, (Absent, Unreadable)):
        return links
    found = links.get(name) if isinstance(links, dict) else None
    return Value(found) if found else Unreadable(Reason.EMPTY, f"rdma -j link: no {name}")


def _port(snap: Snapshot, name: str, link: Observed[RdmaLink]) -> RdmaPort:
    files = snap.sysfs("rdma.port", name)
    phys = parse.numbered(files, "phys_state")
    return RdmaPort(
        name,
        parse.state(files),
        Value(phys.value[1]) if isinstance(phys, Value) else phys,
        parse.rate(files),
        parse.link_layer(files),
        parse.gids(snap.raw("rdma.gids", name)),
        parse.active_mtu(snap.raw("rdma.devinfo", name)),
        parse.override(snap.raw("rdma.tclass", name)),
        link,
    )
