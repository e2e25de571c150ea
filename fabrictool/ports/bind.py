"""Binds the spec's functions to what is on the node. All selectors that are given must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports.model import BoundFunction, Netdev, Ports, RdmaDevice
from fabrictool.ports.parse import is_global
from fabrictool.spec import FunctionSpec, NodeSpec


def _by_mac(mac: str, netdevs: Mapping[str, Netdev], lag: bool) -> list[Netdev]:
    """A bond shares its MAC with its members and a VLAN with its parent: a LAG means the bond, anything else the NIC itself."""
    holders = [n for n in netdevs.values() if n.has_mac(mac)]
    if lag:
        return [n for n in holders if n.kind == "bond"] or holders
    permanent = [n for n in holders if n.permanent_mac == mac.lower()]
    return permanent or [n for n in holders if not n.kind and not n.permanent_mac] or holders


def _candidates(fn: FunctionSpec, ports: Ports, netdevs: Mapping[str, Netdev]) -> dict[str, Observed[tuple[str, ...]]]:
    """selector -> the interfaces it means, best first."""
    out: dict[str, Observed[tuple[str, ...]]] = {}
    if fn.interface is not None:
        named = ports.netdev(fn.interface)
        out[f"interface {fn.interface}"] = Value((named.value.name,)) if isinstance(named, Value) else named
    if fn.mac is not None:
        holders = tuple(n.name for n in _by_mac(fn.mac, netdevs, bool(fn.members)))
        out[f"MAC {fn.mac.lower()}"] = Value(holders) if holders else Absent(f"MAC {fn.mac.lower()}")
    if fn.rdma is not None:
        device = _device(fn.rdma, ports)
        if isinstance(device, Value):
            here = tuple(n for n in device.value.netdevs if n in netdevs)
            out[f"RDMA device {fn.rdma}"] = Value(here) if here else Absent(f"an interface of RDMA device {fn.rdma}")
        else:
            out[f"RDMA device {fn.rdma}"] = device
    return out


def _device(name: str, ports: Ports) -> Observed[RdmaDevice]:
    if isinstance(ports.rdma, Unreadable):
        return ports.rdma
    return Value(ports.rdma[name]) if name in ports.rdma else Absent(f"RDMA device {name}")


def _netdev(fn: FunctionSpec, ports: Ports) -> Observed[Netdev]:
    if isinstance(ports.netdevs, Unreadable):
        return ports.netdevs
    found = _candidates(fn, ports, ports.netdevs)
    if not found:
        return Unreadable(Reason.BLOCKED, "LINK_BINDING: the spec gives no selector (interface, rdma or mac)")
    sets = {k: v.value for k, v in found.items() if isinstance(v, Value)}
    if not sets:
        first = next((v for v in found.values() if isinstance(v, Absent)), None)
        return first or next(v for v in found.values() if isinstance(v, Unreadable))
    common = [n for n in next(iter(sets.values())) if all(n in s for s in sets.values())]
    missing = [k for k, v in found.items() if isinstance(v, Absent)]
    # An RDMA device that is missing (driver not loaded) leaves the interface itself in no doubt; a missing name or MAC does not.
    if not common or any(not k.startswith("RDMA device") for k in missing):
        said = [f"{k} means {'/'.join(v)}" for k, v in sets.items()] + [f"{k} is not on the node" for k in missing]
        return Unreadable(Reason.BLOCKED, f"LINK_BINDING: {', but '.join(said)}")
    if len(common) > 1 and not any(k.startswith("RDMA device") for k in sets):
        return Unreadable(Reason.BLOCKED, f"LINK_BINDING: {', '.join(sets)} means several interfaces: {', '.join(common)}")
    return Value(ports.netdevs[common[0]])


def _rdma(fn: FunctionSpec, netdev: Observed[Netdev], ports: Ports) -> Observed[RdmaDevice]:
    if fn.rdma is not None:
        return _device(fn.rdma, ports)
    if isinstance(ports.rdma, Unreadable):
        return ports.rdma
    if not isinstance(netdev, Value):
        return netdev
    on = [d for d in ports.rdma.values() if netdev.value.name in d.netdevs]
    own = [d for d in on if d.netdevs[0] == netdev.value.name] or on
    if len(own) > 1:
        names = ", ".join(d.name for d in own)
        return Unreadable(Reason.BLOCKED, f"LINK_BINDING: {netdev.value.name} has several RDMA devices ({names}): name one")
    return Value(own[0]) if own else Absent(f"an RDMA device on {netdev.value.name}")


def physical_port(name: str, ports: Ports) -> tuple[str, str] | None:
    """(sys_image_guid, phys_port_name): equal for the functions of one cage. None = the node does not tell."""
    if isinstance(ports.netdevs, Unreadable) or isinstance(ports.rdma, Unreadable) or name not in ports.netdevs:
        return None
    n = ports.netdevs[name]
    guids = [ports.rdma[d].sys_image_guid for d in n.rdma if ports.rdma[d].netdevs[:1] == (name,)]
    guid = next((g.value for g in guids if isinstance(g, Value)), "")
    if not guid.strip("0:") or not isinstance(n.phys_port_name, Value):
        return None
    return guid, n.phys_port_name.value


def _twins(fn: BoundFunction, all_bound: tuple[BoundFunction, ...], ports: Ports) -> tuple[str, ...]:
    """The spec's functions of the same port, then what sysfs shows on the same port, unless the spec puts it on another one."""
    if not isinstance(fn.netdev, Value):
        return ()
    me = fn.netdev.value.name
    port_of = {b.netdev.value.name: b.port for b in all_bound if isinstance(b.netdev, Value)}
    twins = [n for n, p in port_of.items() if p == fn.port]
    mine = physical_port(me, ports)
    if mine is not None and not isinstance(ports.netdevs, Unreadable):
        twins += [n for n in ports.netdevs if n not in port_of and physical_port(n, ports) == mine]
    return tuple(n for n in dict.fromkeys(twins) if n != me)


def _members(fn: FunctionSpec, netdev: Observed[Netdev], ports: Ports) -> tuple[str, ...]:
    if fn.members or not isinstance(netdev, Value) or netdev.value.kind != "bond" or isinstance(ports.netdevs, Unreadable):
        return fn.members
    return tuple(n.name for n in ports.netdevs.values() if n.master == netdev.value.name)


def bind(want: NodeSpec, ports: Ports) -> tuple[BoundFunction, ...]:
    """One for each function of the spec, in the spec's order. A netdev that is not there is Absent; selectors that point at
    different devices make it Unreadable (BLOCKED, `why` starts with LINK_BINDING)."""
    out = []
    for port, spec in want.ports.items():
        for fn in spec.functions:
            netdev = _netdev(fn, ports)
            out.append(BoundFunction(port, fn, netdev, _rdma(fn, netdev, ports), members=_members(fn, netdev, ports)))
    all_bound = tuple(out)
    return tuple(replace(b, twins=_twins(b, all_bound, ports)) for b in all_bound)


def bootstrap(want: NodeSpec, ports: Ports) -> Observed[Netdev]:
    """The socket interface of NCCL, Gloo and the host names. Absent also when the spec names none."""
    return ports.netdev(want.bootstrap) if want.bootstrap else Absent("bootstrap: the spec names no interface")


def bootstrap_address(want: NodeSpec, ports: Ports) -> Observed[str]:
    """The bootstrap interface's first IPv4 address that other nodes can use; without one, its first IPv6 address."""
    dev = bootstrap(want, ports)
    if not isinstance(dev, Value):
        return dev
    usable = [a for a in dev.value.addresses if is_global(a)]
    first = next((a for a in usable if a.version == 4), None) or next(iter(usable), None)
    return Value(str(first.ip)) if first else Absent(f"a usable address on {dev.value.name}")


def rail_address(fn: BoundFunction, want: NodeSpec) -> Observed[str]:
    """The function's address in its rail's subnet."""
    rail = want.fabric.rails.get(fn.want.rail)
    if rail is None:
        return Absent(f"rail {fn.want.rail}: not in the spec")
    if not isinstance(fn.netdev, Value):
        return fn.netdev
    for a in fn.netdev.value.addresses:
        if a.version == 4 and a.ip in rail.subnet:
            return Value(str(a.ip))
    return Absent(f"an address in {rail.subnet} on {fn.netdev.value.name}")
