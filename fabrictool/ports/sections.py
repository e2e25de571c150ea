"""What the ports room collects, and the two anchors that tell a whole answer from one that was cut.

Every sysfs section ends with /proc/sys/kernel/ostype and every link section with /proc/self/exe: both exist on any Linux, both
come last, so an answer without them is incomplete and must not be read as "there is nothing".
"""

from __future__ import annotations

from collections.abc import Mapping

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Section, Snapshot, links, sysfs, tool

FILE_END = "/proc/sys/kernel/ostype"
LINK_END = "/proc/self/exe"
NET = "/sys/class/net/"
RDMA = "/sys/class/infiniband/"

_MANY = 4_194_304  # a container host has hundreds of veths, about 1 kB each

SECTIONS: tuple[Section, ...] = (
    tool("ports.ip", "ip", "-d", "-j", "addr", "show", max_bytes=_MANY),
    tool("ports.route4", "ip", "-4", "-j", "route", "show", "default"),
    tool("ports.route6", "ip", "-6", "-j", "route", "show", "default"),
    # Where answers to the SSH client leave: without SSH_CONNECTION there is no client to ask about.
    Section("ports.ssh_route", '[ -n "${SSH_CONNECTION:-}" ] || exit 3; ip -j route get "${SSH_CONNECTION%% *}"'),
    sysfs("ports.net", *(f"{NET}*/{f}" for f in (
        "ifindex", "speed", "carrier", "carrier_changes", "phys_port_name", "phys_switch_id",
        "device/current_link_width", "device/max_link_width", "device/current_link_speed", "device/max_link_speed",
    )), FILE_END, max_bytes=_MANY),
    links("ports.links", f"{NET}*/device", f"{NET}*/device/driver", f"{NET}*/device/physfn", f"{RDMA}*/device", LINK_END),
    sysfs("ports.rdma", *(f"{RDMA}*/{f}" for f in (
        "node_type", "sys_image_guid", "node_guid", "parent", "ports/1/gid_attrs/ndevs/*",
    )), f"{NET}*/ifindex", FILE_END),
    tool("ports.qps", "rdma", "-j", "resource", "show", "qp", root=True, max_bytes=_MANY),
)


def entries(snap: Snapshot, name: str) -> Mapping[str, str] | Unreadable:
    """A sysfs section, with blanks stripped; Unreadable unless it is whole and sysfs is there at all."""
    raw = snap.raw(name)
    if isinstance(raw, Unreadable):
        return raw
    got = snap.sysfs(name)
    if isinstance(got, Unreadable):
        return got
    if FILE_END not in got or not raw.out.endswith("\n"):
        return Unreadable(Reason.CUT, f"{name}: the end is missing")
    if not any(p.startswith(NET) and p.endswith("/ifindex") for p in got):
        return Unreadable(Reason.EMPTY, f"{name}: /sys/class/net is empty, so sysfs is not mounted")
    return {p: v.strip() for p, v in got.items() if p != FILE_END}


def targets(snap: Snapshot, name: str) -> Mapping[str, str] | Unreadable:
    """A links section; Unreadable unless it is whole."""
    raw = snap.raw(name)
    if isinstance(raw, Unreadable):
        return raw
    got = snap.links(name)
    if isinstance(got, Unreadable):
        return got
    if LINK_END not in got or not raw.out.endswith("\n"):
        return Unreadable(Reason.CUT, f"{name}: the end is missing")
    return {p: t.strip() for p, t in got.items() if p != LINK_END}
