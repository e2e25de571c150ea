"""Is everything the spec names on the node, and is it bound without doubt? Read only: nothing here can be set."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.model import Absent, Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports.bind import bind, bootstrap, physical_port
from fabrictool.ports.model import BoundFunction, Netdev, Pcie, Ports
from fabrictool.room import About, Fleet
from fabrictool.spec import NodeSpec


def other_cage(fn: BoundFunction, want: NodeSpec, ports: Ports) -> tuple[str, ...]:
    """RDMA interfaces with a carrier that the spec does not name: a Spark's cable in the other cage shows as p1 up, p0 gone."""
    if isinstance(ports.netdevs, Unreadable):
        return ()
    named = {f.interface for p in want.ports.values() for f in p.functions} | {want.bootstrap, *want.protected}
    bound = {b.interface for b in bind(want, ports)}
    mine = fn.netdev.value.phys_port_name if isinstance(fn.netdev, Value) else None
    return tuple(
        n.name for n in ports.netdevs.values()
        if n.carrier == Value(True) and n.rdma and n.device and not n.virtual_function and not n.kind
        and isinstance(n.phys_port_name, Value) and n.phys_port_name != mine
        and n.name not in bound and not named.intersection(n.names)
    )


def _cable(fn: BoundFunction, want: NodeSpec, ports: Ports) -> str:
    others = other_cage(fn, want, ports)
    if others:
        return f"{', '.join(others)} has a link and is not in the spec: the cable sits in the other cage"
    return "cable/hot-plug? A DGX Spark takes its functions off PCI while no cable is plugged in"


def _present(fn: BoundFunction, want: NodeSpec, ports: Ports) -> Iterator[Finding]:
    about = About(Code.LINK_ABSENT, fn.subject(want), "ports.interface", "")
    binding = About(Code.LINK_BINDING, fn.subject(want), "ports.binding", "")
    if isinstance(fn.netdev, Absent):
        yield about.fail("absent", fn.interface, f"{fn.netdev.what} is not on the node: {_cable(fn, want, ports)}",
                         remedy="plug the cable in, or load the driver; correct the spec when the name is wrong")
        return
    if isinstance(fn.netdev, Unreadable):
        if fn.netdev.reason is Reason.BLOCKED and fn.netdev.why.startswith(Code.LINK_BINDING):
            yield binding.fail("selectors disagree", _selectors(fn), fn.netdev.why.partition(": ")[2],
                               remedy="correct interface, rdma or mac of this function in the spec")
        else:
            yield about.unknown(fn.netdev, fn.interface)
        return
    yield about.ok(fn.interface)
    if fn.want.rdma is None:
        yield binding.ok(fn.interface, _selectors(fn))
    elif isinstance(fn.rdma, Absent):
        yield binding.unknown(Unreadable(Reason.BLOCKED, f"RDMA_ABSENT: {fn.rdma.what} is not on the node"), _selectors(fn))
    elif isinstance(fn.rdma, Unreadable):
        yield binding.unknown(fn.rdma, _selectors(fn))
    elif not fn.rdma.value.netdevs:
        why = f"{fn.want.rdma}: the node does not tell its interface"
        yield binding.unknown(Unreadable(Reason.EMPTY, why), _selectors(fn))
    else:
        yield binding.ok(f"{fn.interface} and {fn.rdma_name} are one device", _selectors(fn))


def _members(fn: BoundFunction, want: NodeSpec, ports: Ports) -> Iterator[Finding]:
    """A LAG's members as the spec names them against those that the bond has: the rooms judge the spec's."""
    if not fn.want.members or not isinstance(fn.netdev, Value) or isinstance(ports.netdevs, Unreadable):
        return
    about = About(Code.LINK_BINDING, fn.subject(want), "ports.members", "")
    wanted = f"{fn.interface} with {', '.join(fn.want.members)}"
    seen = {m: ports.netdev(m) for m in fn.want.members}
    here = {m: s.value for m, s in seen.items() if isinstance(s, Value)}
    names = {n.name for n in here.values()}
    gone = [m for m in seen if m not in here]
    loose = [m for m, n in here.items() if n.master != fn.interface]
    extra = [n.name for n in ports.netdevs.values() if n.master == fn.interface and n.name not in names]
    wrong = [f"{', '.join(which)}: {what}" for which, what in (
        (gone, "not on the node"), (loose, f"not in {fn.interface}"), (extra, f"in {fn.interface}, not in the spec")) if which]
    if wrong:
        yield about.fail("; ".join(wrong), wanted, "a LAG carries its rate only with all its members, and only the spec's are judged",
                         remedy="mend the bond through its owner, or correct `members` in the spec")
    else:
        yield about.ok(wanted)


def _selectors(fn: BoundFunction) -> str:
    pairs = (("interface", fn.want.interface), ("rdma", fn.want.rdma), ("mac", fn.want.mac))
    return ", ".join(f"{k} {v}" for k, v in pairs if v)


def _same_port(want: NodeSpec, bound: tuple[BoundFunction, ...], ports: Ports) -> Iterator[Finding]:
    """The spec's ports against sys_image_guid + phys_port_name. The spec wins; a contradiction is said."""
    known = {b.interface: (b.port, p) for b in bound if (p := physical_port(b.interface, ports)) is not None}
    for port, spec in want.ports.items():
        about = About(Code.LINK_BINDING, Subject(SubjectKind.PORT, (want.name,), port), "ports.same_port", "")
        mine = {i: p for i, (of, p) in known.items() if of == port}
        if len(mine) < len(spec.functions):
            yield about.skip("the node does not tell the physical port of every function: the spec decides")
            continue
        shown = ", ".join(f"{i} on {p[1]} of {p[0]}" for i, p in mine.items())
        strangers = [i for i, (of, p) in known.items() if of != port and p in mine.values()]
        if len(set(mine.values())) > 1:
            yield about.warn(shown, "one physical port", "the spec says one port, sysfs shows several (the spec wins)",
                             remedy="correct `ports` in the spec if these are two cages")
        elif strangers:
            yield about.warn(f"{shown}; also {', '.join(strangers)}", "one port of the spec",
                             "sysfs shows functions of another port of the spec on this physical port (the spec wins)",
                             remedy="list the functions of one cage under one port")
        else:
            yield about.ok(shown, "one physical port")


def _pcie(fn: BoundFunction, want: NodeSpec, ports: Ports, bound: tuple[BoundFunction, ...]) -> Iterator[Finding]:
    if not isinstance(fn.netdev, Value) or isinstance(ports.netdevs, Unreadable):
        return
    about = About(Code.PCIE_WIDTH, fn.subject(want), "ports.pcie", "")
    members = [ports.netdevs[m] for m in fn.members if m in ports.netdevs] or [fn.netdev.value]
    for n in members:
        if isinstance(n.pcie, Absent):
            yield about.skip(f"{n.name}: no PCIe link of its own to read")
        elif isinstance(n.pcie, Unreadable):
            yield about.unknown(n.pcie, "full PCIe width")
        elif n.pcie.value.width >= n.pcie.value.max_width:
            yield about.ok(f"{n.name}: x{n.pcie.value.width}")
        else:
            yield _narrow(about, n, n.pcie.value, fn, want, bound)


def _narrow(about: About, n: Netdev, pcie: Pcie, fn: BoundFunction, want: NodeSpec, bound: tuple[BoundFunction, ...]) -> Finding:
    """A narrow link is a failure when the port's functions together can then no longer carry its rate; else a warning (a x16 card
    in a x8 slot may be meant)."""
    rate = want.ports[fn.port].rate_gbit
    devices = [b.netdev.value.pcie for b in bound if b.port == fn.port and isinstance(b.netdev, Value)]
    carried = [p.value.gbit_per_s for p in devices if isinstance(p, Value)]
    total = sum(c for c in carried if c is not None) if len(carried) == len(devices) and None not in carried else None
    short = rate is None or total is None or total < rate
    why = f"{n.name} runs on {pcie.width} of {pcie.max_width} PCIe lanes"
    if rate is not None and total is not None:
        why += f": {total:.0f} Gb/s for a port of {rate} Gb/s"
    return about.fail(f"{n.name}: x{pcie.width}", f"x{pcie.max_width}", why, status=Status.FAIL if short else Status.WARN,
                      remedy="power the node off and on; reseat the card; look for a BIOS update")


def judge(want: NodeSpec, got: Ports, fleet: Fleet) -> Iterator[Finding]:
    bound = bind(want, got)
    for fn in bound:
        yield from _present(fn, want, got)
        yield from _members(fn, want, got)
        yield from _pcie(fn, want, got, bound)
    yield from _same_port(want, bound, got)
    about = About(Code.LINK_ABSENT, Subject(SubjectKind.NODE, (want.name,)), "ports.bootstrap", "")
    dev = bootstrap(want, got)
    if want.bootstrap is None:
        yield about.skip("the spec names no bootstrap interface")
    elif isinstance(dev, Value):
        yield about.ok(dev.value.name, want.bootstrap)
    elif isinstance(dev, Absent):
        yield about.fail("absent", want.bootstrap, f"bootstrap interface {want.bootstrap} is not on the node",
                         remedy="correct `bootstrap` in the spec, or plug the cable in")
    else:
        yield about.unknown(dev, want.bootstrap)
