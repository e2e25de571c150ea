"""From a snapshot to `Ports`: which netdev is which RDMA function, PCI device and physical port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports.model import Netdev, Pcie, Ports, RdmaDevice
from fabrictool.ports.parse import parse_addr, parse_queue_pairs, parse_route_devices, parse_ssh
from fabrictool.ports.sections import NET, RDMA, entries, targets
from fabrictool.snapshot import Snapshot
from fabrictool.values import Rate

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+((vf|sf)\d+)?")  # phys_port_name of a switchdev port (kernel: networking/switchdev)
Entries = Mapping[str, str] | Unreadable


def _pci(target: str) -> str:
    """The last PCI address of a resolved device path: virtio and auxiliary devices hang below one."""
    found = _PCI.findall(target)
    return found[-1] if found else ""


def _one(tree: Entries, path: str) -> Observed[str]:
    """One sysfs value. The kernel refuses to read some (a port name of a NIC that has none): that gives no line, so Absent."""
    if isinstance(tree, Unreadable):
        return tree
    return Value(tree[path]) if tree.get(path) else Absent(path)


def _int(seen: Observed[str]) -> Observed[int]:
    if not isinstance(seen, Value):
        return seen
    return Value(int(seen.value)) if re.fullmatch(r"\d{1,18}", seen.value) else Unreadable(Reason.GARBLED, seen.value[:60])


def _carrier(seen: Observed[str], name: str) -> Observed[bool]:
    if isinstance(seen, Absent):  # EINVAL while the interface is administratively down
        return Unreadable(Reason.EMPTY, f"{name}: no carrier state, the interface is down")
    if isinstance(seen, Unreadable):
        return seen
    return Value(seen.value == "1") if seen.value in ("0", "1") else Unreadable(Reason.GARBLED, f"carrier: {seen.value[:60]}")


def _speed(seen: Observed[str], name: str) -> Observed[Rate]:
    """Mb/s; -1 or 2^32 - 1 means unknown (SPEED_UNKNOWN of linux/ethtool.h)."""
    if isinstance(seen, Unreadable):
        return seen
    if isinstance(seen, Absent) or seen.value in ("-1", "4294967295"):
        return Unreadable(Reason.EMPTY, f"{name}: the driver tells no speed (link down, or a virtual interface)")
    try:
        return Value(Rate.parse(seen.value))
    except ValueError as error:
        return Unreadable(Reason.GARBLED, f"{name}: {error}")


def _pcie(tree: Entries, name: str) -> Observed[Pcie]:
    if isinstance(tree, Unreadable):
        return tree
    at = f"{NET}{name}/device/"
    width, most = _int(_one(tree, at + "current_link_width")), _int(_one(tree, at + "max_link_width"))
    if not isinstance(width, Value):
        return width
    if not isinstance(most, Value):
        return most
    speeds = []
    for file in ("current_link_speed", "max_link_speed"):
        m = re.match(r"(\d{1,9}(?:\.\d{1,9})?) GT/s", tree.get(at + file, ""))
        speeds.append(float(m[1]) if m else None)
    return Value(Pcie(width.value, most.value, *speeds))


def _netdev(base: Netdev, tree: Entries, linked: Entries) -> Netdev:
    at = NET + base.name
    n = replace(
        base, carrier=_carrier(_one(tree, f"{at}/carrier"), base.name), speed=_speed(_one(tree, f"{at}/speed"), base.name),
        phys_port_name=_one(tree, f"{at}/phys_port_name"), phys_switch_id=_one(tree, f"{at}/phys_switch_id"),
        carrier_changes=_int(_one(tree, f"{at}/carrier_changes")), pcie=_pcie(tree, base.name),
    )
    if isinstance(linked, Unreadable):
        return replace(n, driver=linked, bus=linked)
    target, driver = linked.get(f"{at}/device", ""), linked.get(f"{at}/device/driver", "")
    physfn = linked.get(f"{at}/device/physfn", "")
    bus = _pci(target)
    return replace(
        n, device=bool(target), bus=Value(bus) if bus else Absent(f"{base.name}: no PCI device"),
        driver=Value(driver.rsplit("/", 1)[-1]) if driver else Absent(f"{base.name}: no driver"),
        virtual_function=bool(physfn), physfn=_pci(physfn),
    )


def _rdma(tree: Entries, linked: Entries, netdevs: Mapping[str, Netdev] | Unreadable) -> Mapping[str, RdmaDevice] | Unreadable:
    """Every RDMA device. Its netdevs, best first: the owner of its GIDs (`ndevs`), then those with the same device behind them
    (not switchdev representors), then `parent` (soft-RoCE). The rest of `ndevs` are VLANs and the like: last."""
    if isinstance(tree, Unreadable):
        return tree
    if isinstance(linked, Unreadable):
        return linked
    behind: dict[str, list[str]] = {}
    for path, target in linked.items():
        parts = path.split("/")
        if path.startswith(NET) and len(parts) == 6 and parts[5] == "device":
            behind.setdefault(target, []).append(parts[4])
    out = {}
    for name in dict.fromkeys(p.split("/")[4] for p in tree if p.startswith(RDMA)):
        at = RDMA + name
        target = linked.get(f"{at}/device", "")
        slots = [(int(p.rsplit("/", 1)[1]), v) for p, v in tree.items()
                 if p.startswith(f"{at}/ports/1/gid_attrs/ndevs/") and re.fullmatch(r"[0-9]{1,5}", p.rsplit("/", 1)[1]) and v]
        owners = list(dict.fromkeys(v for _, v in sorted(slots)))
        same = [n for n in behind.get(target, ()) if target and not _representor(netdevs, n)]
        parent = [tree[f"{at}/parent"]] if tree.get(f"{at}/parent") and not target else []
        first = [n for n in owners if n in same or _kind(netdevs, n) == "bond"]
        bus = _pci(target)
        out[name] = RdmaDevice(
            name, tuple(dict.fromkeys((*first, *same, *parent, *owners))),
            bus=Value(bus) if bus else Absent(f"{name}: no PCI device"),
            sys_image_guid=_one(tree, f"{at}/sys_image_guid"), node_guid=_one(tree, f"{at}/node_guid"),
        )
    return out


def _representor(netdevs: Mapping[str, Netdev] | Unreadable, name: str) -> bool:
    if isinstance(netdevs, Unreadable) or name not in netdevs:
        return False
    port = netdevs[name].phys_port_name
    return isinstance(port, Value) and _REPRESENTOR.fullmatch(port.value) is not None


def _kind(netdevs: Mapping[str, Netdev] | Unreadable, name: str) -> str:
    return "" if isinstance(netdevs, Unreadable) or name not in netdevs else netdevs[name].kind


def _ssh(snap: Snapshot, netdevs: Mapping[str, Netdev] | Unreadable) -> Observed[str]:
    """The interface that has the address the SSH client connected to."""
    if not snap.ssh:
        return Absent("no SSH session in this snapshot")
    server = parse_ssh(snap.ssh)
    if not isinstance(server, Value):
        return server
    if isinstance(netdevs, Unreadable):
        return netdevs
    address, zone = server.value
    holders = [n.name for n in netdevs.values() if any(str(a.ip) == address for a in n.addresses)]
    if zone and (not holders or zone in holders):
        return Value(zone)
    if len(holders) == 1:
        return Value(holders[0])
    what = "no interface" if not holders else f"several interfaces ({', '.join(holders)})"
    return Unreadable(Reason.GARBLED, f"the SSH session's address {address} is on {what}")


def _routes(snap: Snapshot) -> tuple[str, ...] | Unreadable:
    out: list[str] = []
    for name in ("ports.route4", "ports.route6"):
        text = snap.text(name)
        if isinstance(text, Unreadable):
            raw = snap.raw(name)
            # A kernel without IPv6 has no IPv6 default route: it says so, with exit status 2.
            if name == "ports.route6" and not isinstance(raw, Unreadable) and "not supported" in raw.err:
                continue
            return text
        devices = parse_route_devices(text.value)
        if isinstance(devices, Unreadable):
            return devices
        out += devices
    return tuple(dict.fromkeys(out))


def read(snap: Snapshot) -> Ports:
    """Everything of one node. Never raises on what a node says: what is not understood is Unreadable with its reason."""
    tree, linked = entries(snap, "ports.net"), targets(snap, "ports.links")
    text = snap.text("ports.ip")
    parsed = text if isinstance(text, Unreadable) else parse_addr(text.value)
    netdevs: Mapping[str, Netdev] | Unreadable = parsed if isinstance(parsed, Unreadable) else {
        n.name: _netdev(n, tree, linked) for n in parsed}
    rdma = _rdma(entries(snap, "ports.rdma"), linked, netdevs)
    if not isinstance(netdevs, Unreadable) and not isinstance(rdma, Unreadable):
        netdevs = {k: replace(n, rdma=tuple(d.name for d in rdma.values() if k in d.netdevs)) for k, n in netdevs.items()}
    qps = snap.text("ports.qps")
    out_route = snap.text("ports.ssh_route")
    leaving = parse_route_devices(out_route.value) if isinstance(out_route, Value) else ()
    return Ports(
        netdevs, rdma, _routes(snap), _ssh(snap, netdevs),
        ssh_routes=() if isinstance(leaving, Unreadable) else leaving,
        queue_pairs=parse_queue_pairs(qps.value) if isinstance(qps, Value) else qps,
    )
