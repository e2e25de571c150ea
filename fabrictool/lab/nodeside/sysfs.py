"""The fake part of a node's /sys: RDMA devices, PCI devices, and what a veth lacks of a NIC. A view on the state, nothing else.

Laid over the real sysfs, so mtu, operstate, carrier and carrier_changes stay the kernel's own. The set of files is the same for
every state of a node: overlayfs shows changes of a lower file at once, but not always new names.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path

from fabrictool.lab.nodeside import counts
from fabrictool.lab.nodeside.capacity import UNIFIED, gpu_bus
from fabrictool.lab.nodeside.state import Function, Nic, Node, load
from fabrictool.lab.nodeside.tool import Link

GID_SLOTS = 16  # a real mlx5 table has 256; readers must not count on either
EMPTY_GID = ":".join(["0000"] * 8)
WIDTHS = {400: "4X NDR", 200: "4X HDR", 100: "4X EDR", 50: "1X HDR", 40: "4X QDR", 25: "1X EDR", 10: "1X FDR10"}
LIFESPAN_MS = 10  # mlx5 reads its queue counters from the firmware at most that often
ECN_PRIORITY = 3  # the one whose ECN switches the state knows
# The overlay would merge these with the machine's own: a node must show its own devices only.
OPAQUE = ("class/infiniband",)


@dataclass(frozen=True)
class File:
    text: str


@dataclass(frozen=True)
class Symlink:
    target: str


Entry = File | Symlink


def gids(function: Function, link: Link | None) -> list[tuple[str, str]]:
    """(GID, type) per slot as the kernel fills them: each address once as v1 and once as v2, the link-local one first.

    Source of order: nic.md 4.1. An empty slot has the all-zero GID and no type.
    """
    found: list[tuple[str, str]] = []
    addresses = [ip_interface(a).ip for a in link.addresses] if link else []
    for ip in sorted(addresses, key=lambda a: (a.version == 4, a)):
        text = ip.exploded if ip.version == 6 else _mapped(int(ip))
        for kind in ("IB/RoCE v1", "RoCE v2"):
            if function.gid_types == "both" or (function.gid_types == "v1" and kind == "IB/RoCE v1"):
                found.append((text, kind))
    return (found + [(EMPTY_GID, "")] * GID_SLOTS)[:GID_SLOTS]


def _mapped(ip: int) -> str:
    return f"0000:0000:0000:0000:0000:ffff:{ip >> 16:04x}:{ip & 0xffff:04x}"


def active(link: Link | None) -> bool:
    return link is not None and link.up and link.carrier


def _rdma(f: Function, link: Link | None) -> Iterator[tuple[str, Entry]]:
    up = active(link)
    yield "device", Symlink(f"../../../{f.bus}")
    yield "subsystem", Symlink("../../../../../class/infiniband")
    yield "node_type", File("1: CA")
    yield "node_guid", File(f.node_guid)
    yield "sys_image_guid", File(f.sys_image_guid)
    yield "fw_ver", File("28.45.4028")
    yield "hca_type", File("MT4129")
    yield "board_id", File("MT_0000000838")
    yield "node_desc", File(f.rdma)
    yield "tc/1/traffic_class", File(f.tclass)
    rate = f.rate_gbit if up else 40  # a port that is down reads 40 Gb/sec (4X QDR): nic.md 4.1
    yield "ports/1/state", File("4: ACTIVE" if up else "1: DOWN")
    yield "ports/1/phys_state", File("5: LinkUp" if up else "3: Disabled")
    yield "ports/1/rate", File(f"{rate} Gb/sec ({WIDTHS.get(rate, '1X EDR')})")
    yield "ports/1/link_layer", File(f.link_layer)
    yield "ports/1/lid", File("0x0")
    yield "ports/1/sm_lid", File("0x0")
    yield "ports/1/lid_mask_count", File("0")
    for n, (gid, kind) in enumerate(gids(f, link)):
        yield f"ports/1/gids/{n}", File(gid)
        yield f"ports/1/gid_attrs/types/{n}", File(kind)  # really a read error when empty: here an empty file
        yield f"ports/1/gid_attrs/ndevs/{n}", File(f.interface if kind else "")
    yield "ports/1/hw_counters/lifespan", File(str(LIFESPAN_MS))
    yield from _counters(f)


def _counters(f: Function) -> Iterator[tuple[str, File]]:
    for folder, found in (("counters", counts.port_counters(f)), ("hw_counters", counts.hardware_counters(f))):
        for name, number in found.items():
            yield f"ports/1/{folder}/{name}", File(str(number))


def _pci(bus: str, driver: str, interface: str, width: int, full_width: int) -> Iterator[tuple[str, Entry]]:
    here = f"devices/lab/{bus}"
    yield f"{here}/subsystem", Symlink("../../../bus/pci")
    yield f"{here}/driver", Symlink(f"../../../bus/pci/drivers/{driver}")
    yield f"{here}/vendor", File("0x15b3" if driver == "mlx5_core" else "0x10ec")
    yield f"{here}/device", File("0x1021" if driver == "mlx5_core" else "0x8127")
    yield f"{here}/class", File("0x020000")
    yield f"{here}/numa_node", File("0")
    yield f"{here}/current_link_width", File(str(width))
    yield f"{here}/max_link_width", File(str(full_width))
    yield f"{here}/current_link_speed", File("32.0 GT/s PCIe")
    yield f"{here}/max_link_speed", File("32.0 GT/s PCIe")
    yield f"{here}/uevent", File(f"DRIVER={driver}\nPCI_SLOT_NAME={bus}")
    yield f"{here}/net/{interface}/uevent", File(f"INTERFACE={interface}")
    yield f"bus/pci/devices/{bus}", Symlink(f"../../../devices/lab/{bus}")
    yield f"bus/pci/drivers/{driver}/{bus}", Symlink(f"../../../../devices/lab/{bus}")
    yield f"devices/virtual/net/{interface}/device", Symlink(f"../../../lab/{bus}")


def _netdev(f: Function, link: Link | None) -> Iterator[tuple[str, Entry]]:
    yield "speed", File(str(f.rate_gbit * 1000 if active(link) else -1))
    yield "duplex", File("full")
    yield "phys_port_name", File(f.port)
    yield "phys_switch_id", File(f.sys_image_guid.replace(":", ""))
    yield "dev_port", File("0")
    for side in ("np", "rp"):
        for priority in range(8):
            yield f"ecn/roce_{side}/enable/{priority}", File("1" if f.ecn or priority != ECN_PRIORITY else "0")
    yield "ecn/roce_np/cnp_dscp", File("48")
    yield "ecn/roce_np/cnp_802p_prio", File("6")
    yield "ecn/roce_np/min_time_between_cnps", File("4")


def _nic(nic: Nic, link: Link | None) -> Iterator[tuple[str, Entry]]:
    yield "speed", File(str(nic.speed_mbit if active(link) else -1))
    yield "duplex", File("full")


def tree(node: Node, links: Mapping[str, Link]) -> dict[str, Entry]:
    """Every fake entry, by its path below /sys."""
    entries: dict[str, Entry] = {}
    for f in node.functions.values():
        link = links.get(f.interface)
        entries.update(_pci(f.bus, "mlx5_core", f.interface, f.pcie_width, max(f.pcie_width, 4)))
        entries.update({f"devices/virtual/net/{f.interface}/{k}": v for k, v in _netdev(f, link)})
        entries.update({f"devices/lab/{f.bus}/infiniband/{f.rdma}/{k}": v for k, v in _rdma(f, link)})
        entries[f"class/infiniband/{f.rdma}"] = Symlink(f"../../devices/lab/{f.bus}/infiniband/{f.rdma}")
    if node.gpus and node.gpu_direct and node.gpu not in UNIFIED:
        entries["module/nvidia_peermem/initstate"] = File("live")
    if node.gpu not in UNIFIED:
        for bus in (gpu_bus(i) for i in range(node.gpus)):
            entries[f"devices/lab/{bus}/class"] = File("0x030200")
            entries[f"bus/pci/drivers/nvidia/{bus}"] = Symlink(f"../../../../devices/lab/{bus}")
    for nic in node.nics.values():
        entries.update(_pci(nic.bus, nic.driver, nic.interface, 1, 1))
        entries.update({f"devices/virtual/net/{nic.interface}/{k}": v for k, v in _nic(nic, links.get(nic.interface))})
    return entries


def write(root: Path, node: Node, links: Mapping[str, Link]) -> None:
    """Bring the files below `root` to the state. In place, never by rename: the overlay may hold on to the file it has seen."""
    for relative in OPAQUE:
        (root / relative).mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            os.setxattr(root / relative, "trusted.overlay.opaque", b"y")
    own = {path for f in node.functions.values() if _ecn(root, f) == f.ecn for path in _ecn_files(f)}
    for path, entry in tree(node, links).items():
        target = root / path
        if isinstance(entry, Symlink):
            if not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(entry.target)
            continue
        text = entry.text + "\n" if entry.text else ""
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
        elif path in own:
            continue
        _put(target, text)


def _put(target: Path, text: str) -> None:
    """Never empty in between: somebody may read it at this moment."""
    fd = os.open(target, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        data, old = text.encode(), os.fstat(fd).st_size
        if os.pread(fd, max(old, 1), 0) != data:
            os.pwrite(fd, data, 0)
            if old > len(data):
                os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def _ecn_files(f: Function) -> tuple[str, ...]:
    return tuple(f"devices/virtual/net/{f.interface}/ecn/roce_{side}/enable/{ECN_PRIORITY}" for side in ("np", "rp"))


def _ecn(root: Path, f: Function) -> bool | None:
    """What the files say: on only if both sides are on. None: there are no files yet."""
    try:
        return all((root / path).read_text().strip() == "1" for path in _ecn_files(f))
    except OSError:
        return None


def adopt(root: Path, node: Node) -> None:
    """Take over what the node wrote into sysfs itself: the ECN switches are the only files that it can write."""
    for f in node.functions.values():
        seen = _ecn(root, f)
        if seen is not None:
            f.ecn = seen


def forget(shared: Path, function: Function) -> None:
    """Take a function's entries away: it is gone from PCI. The RDMA class shows it no longer at once; names that a running node has
    looked up before may linger in its /sys until the next boot, but no listing has them."""
    root = shared / "sys"
    with open(shared / "sysfs.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for link in (f"class/infiniband/{function.rdma}", f"bus/pci/devices/{function.bus}", f"bus/pci/drivers/mlx5_core/{function.bus}"):
            (root / link).unlink(missing_ok=True)
        for folder in (f"devices/lab/{function.bus}", f"devices/virtual/net/{function.interface}"):
            shutil.rmtree(root / folder, ignore_errors=True)


def show_counters(shared: Path) -> None:
    """Bring only the counters' files to the state: what traffic changes, many times a second."""
    root = shared / "sys"
    with open(shared / "sysfs.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for f in load(shared / "state.json").functions.values():
            for path, file in _counters(f):
                with contextlib.suppress(FileNotFoundError):  # taken off the bus meanwhile
                    _put(root / f"devices/lab/{f.bus}/infiniband/{f.rdma}/{path}", f"{file.text}\n")


def refresh(shared: Path, links: Callable[[], Mapping[str, Link]]) -> None:
    """Write the node's sysfs anew. One writer at a time, each of which looks again: so the last one is right."""
    with open(shared / "sysfs.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write(shared / "sys", load(shared / "state.json"), links())
