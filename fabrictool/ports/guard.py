"""The safety guard: takes the steps away that could cut the way to the node or break RDMA that is in use.

Runs after all rooms. A step that flaps a link is refused on interfaces that carry the SSH session or the default route
(MGMT_PATH), also through anything that shares the link, and while RDMA queue pairs are up (FABRIC_IN_USE). What cannot be read
counts as "yes".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fabrictool.model import Absent, Code, Finding, Reason, Risk, Run, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports.bind import bind, physical_port
from fabrictool.ports.model import BoundFunction, Netdev, Ports
from fabrictool.room import About
from fabrictool.spec import NodeSpec


def _edges(netdevs: Mapping[str, Netdev], ports: Ports, bound: tuple[BoundFunction, ...]) -> dict[str, set[str]]:
    """Which interfaces share fate: bond or bridge and member, VLAN and parent, functions of one cage or PCI device, VF and PF."""
    edges: dict[str, set[str]] = {n: set() for n in netdevs}
    groups: dict[object, list[str]] = {}

    def join(a: str, b: str) -> None:
        if a in edges and b in edges:
            edges[a].add(b)
            edges[b].add(a)

    for n in netdevs.values():
        join(n.name, n.master)
        join(n.name, n.parent)
        for pci in {n.physfn, n.bus.value if isinstance(n.bus, Value) else ""} - {""}:
            groups.setdefault(("pci", pci), []).append(n.name)
        cage = physical_port(n.name, ports)
        if cage is not None:
            groups.setdefault(("cage", *cage), []).append(n.name)
    for fn in bound:
        for other in (*fn.twins, *fn.members):
            join(fn.interface, other)
    for first, *others in groups.values():
        for other in others:
            join(first, other)
    return edges


def related(name: str, ports: Ports, bound: tuple[BoundFunction, ...]) -> frozenset[str]:
    """`name` and every interface that a flap of it may take down."""
    if isinstance(ports.netdevs, Unreadable):
        return frozenset({name})
    edges = _edges(ports.netdevs, ports, bound)
    seen, todo = {name}, [name]
    while todo:
        for other in edges.get(todo.pop(), set()) - seen:
            seen.add(other)
            todo.append(other)
    return frozenset(seen)


def _touched(f: Finding, ports: Ports, bound: tuple[BoundFunction, ...]) -> frozenset[str]:
    """The interfaces a finding's steps act on: its function or its port's, and every interface named in an argv."""
    out = {f.subject.function} if f.subject.function else {b.interface for b in bound if b.port == f.subject.port}
    if not isinstance(ports.netdevs, Unreadable):
        words = {w for s in f.steps if isinstance(s, Run) for w in (*s.argv, *s.undo)}
        out |= {n.name for n in ports.netdevs.values() if words.intersection(n.names)}
    return frozenset(out or {b.interface for b in bound})


def _carriers(ports: Ports) -> Mapping[str, str] | Unreadable:
    """interface -> what it carries. Not to know the SSH interface or the routes is Unreadable: then nothing may flap."""
    if isinstance(ports.netdevs, Unreadable):
        return ports.netdevs
    if isinstance(ports.ssh_interface, Unreadable):
        return ports.ssh_interface
    if isinstance(ports.ssh_interface, Absent):
        return Unreadable(Reason.EMPTY, ports.ssh_interface.what)
    if isinstance(ports.default_routes, Unreadable):
        return ports.default_routes
    return {
        **dict.fromkeys(ports.default_routes, "the default route"),
        **dict.fromkeys(ports.ssh_routes, "the SSH session"),
        ports.ssh_interface.value: "the SSH session",
    }


def _protected(want: NodeSpec, ports: Ports) -> frozenset[str]:
    seen = (ports.netdev(name) for name in want.protected)
    return frozenset({*want.protected, *(n.value.name for n in seen if isinstance(n, Value))})


def _mgmt(about: About, names: frozenset[str], near: frozenset[str], want: NodeSpec, ports: Ports, flaps: bool) -> Finding | None:
    """The reason of a refusal, or None. `names` is what the steps change, `near` all that shares its fate."""
    wanted = "a port that carries neither the SSH session nor the default route"
    kept = sorted(_protected(want, ports) & (near if flaps else names))
    if kept:
        return about.fail(f"{', '.join(kept)} is protected", wanted, "the spec says that it is never changed",
                          remedy="take it out of `protected`, or set this by hand")
    if not flaps:
        return None
    carried = _carriers(ports)
    if isinstance(carried, Unreadable):
        return replace(about.unknown(carried, wanted), code=Code.MGMT_PATH,
                       why=f"which interface carries the SSH session or the default route is not known ({carried.why})")
    hit = sorted(near & carried.keys())
    if not hit:
        return None
    return about.fail("; ".join(f"{n} carries {carried[n]}" for n in hit), wanted,
                      "the change flaps the link: the node could be lost",
                      remedy="connect over another interface (ssh.host) that shares no port with it, or set it at the console")


def _in_use(about: About, near: frozenset[str], ports: Ports, bound: tuple[BoundFunction, ...]) -> Finding | None:
    wanted = "no RDMA queue pairs up on the port"
    remedy = "stop or drain what uses the port (`rdma resource show qp` names the processes), then apply again"

    def unknown(why: Unreadable) -> Finding:
        return replace(about.unknown(why, wanted), code=Code.FABRIC_IN_USE,
                       why=f"whether RDMA is in use cannot be read, which counts as in use ({why.why})")

    if isinstance(ports.rdma, Unreadable):
        return unknown(ports.rdma)
    buses = {} if isinstance(ports.netdevs, Unreadable) else {
        n.bus.value for n in ports.netdevs.values() if n.name in near and isinstance(n.bus, Value)}
    devices = {d.name for d in ports.rdma.values()
               if near.intersection(d.netdevs) or (isinstance(d.bus, Value) and d.bus.value in buses)}
    devices |= {b.want.rdma for b in bound if b.want.rdma and b.interface in near and b.want.rdma in ports.rdma}
    if not devices:
        return None  # no RDMA device on it: nothing can be in use
    if isinstance(ports.queue_pairs, Unreadable):
        return unknown(ports.queue_pairs)
    busy = [q for q in ports.queue_pairs if q.rdma in devices and not q.housekeeping]
    if not busy:
        return None
    who = sorted({f"{q.comm or '?'} (pid {q.pid})" if q.pid else f"the kernel's {q.comm or '?'}" for q in busy})
    shown = ", ".join(who[:4]) + (" ..." if len(who) > 4 else "")
    return about.fail(f"{len(busy)} queue pairs up on {', '.join(sorted({q.rdma for q in busy}))}: {shown}", wanted,
                      "the change flaps the link, and RDMA queue pairs do not survive that", remedy=remedy)


def _place(f: Finding, names: frozenset[str], want: NodeSpec, bound: tuple[BoundFunction, ...]) -> Subject:
    """One refusal per port of the spec; an interface outside the spec stands for itself."""
    port = f.subject.port or next((b.port for b in bound if b.interface in names), "")
    if port:
        return Subject(SubjectKind.PORT, (want.name,), port)
    return Subject(SubjectKind.NODE, (want.name,), function=",".join(sorted(names)))


def guard(want: NodeSpec, ports: Ports, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in their order, those that are refused without their steps; then the refusals, one per port and code.

    Steps that cannot flap a link pass, except on `protected` interfaces, which get no step at all.
    """
    bound = bind(want, ports)
    out: list[Finding] = []
    refusals: dict[str, Finding] = {}
    for f in findings:
        if not f.steps:
            out.append(f)
            continue
        flaps = f.risk is Risk.FLAP
        names = _touched(f, ports, bound)
        near = frozenset().union(*(related(n, ports, bound) for n in names))
        place = _place(f, names, want, bound)
        if f.room == "qos":  # functions of one cage may share its registers
            names |= {t for b in bound if b.interface in names for t in b.twins}
        no = _mgmt(About(Code.MGMT_PATH, place, "ports.mgmt_path", ""), names, near, want, ports, flaps)
        if no is None and flaps:
            no = _in_use(About(Code.FABRIC_IN_USE, place, "ports.in_use", ""), near, ports, bound)
        if no is None:
            out.append(f)
            continue
        refusals.setdefault(no.id, no)
        out.append(replace(f, steps=(), why=f"{f.why} [not set: {no.code}]".strip(), remedy=f.remedy or no.remedy))
    return (*out, *refusals.values())
