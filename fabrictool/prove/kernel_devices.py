"""GPUs, links, PCIe, disks and file servers, as the kernel's log tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Code, Finding, Reason, Subject, Unreadable, Value
from fabrictool.prove.kernel_window import Window, worst
from fabrictool.snapshot import Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.system.events import Device, Event, Link, Server, Trouble, Xid
from fabrictool.system.xid import Weight, meaning

GRACE_S = 1800  # after a boot links come up one by one: OCI's health checks leave out the first 30 minutes (rdma_link_flapping.py)


@dataclass(frozen=True, slots=True)
class Fabric:
    """The spec's functions by what the kernel calls them: interface names and PCI addresses. `lost`: those whose address the node does not
    tell, as of a NIC that is gone: what is said of an address may be said of them."""

    names: dict[str, Subject]
    buses: dict[str, Subject]
    lost: tuple[str, ...] = ()

    @classmethod
    def of(cls, want: NodeSpec, snap: Snapshot) -> Fabric:
        seen = ports.read(snap)
        names: dict[str, Subject] = {}
        buses: dict[str, Subject] = {}
        lost: list[str] = []
        for fn in ports.bind(want, seen):
            subject = fn.subject(want)
            members = [seen.netdev(m) for m in fn.members]
            if not all(isinstance(d, Value) and isinstance(d.value.bus, Value) for d in (members or [fn.netdev])):
                lost.append(fn.interface)
            for dev in (fn.netdev, *members):
                if isinstance(dev, Value):
                    names[dev.value.name] = subject
                    if isinstance(dev.value.bus, Value):
                        buses[dev.value.bus.value.lower()] = subject
            names.setdefault(fn.interface, subject)
        return cls(names, buses, tuple(lost))

    def of_event(self, interface: str, pci: str) -> Subject | None:
        return self.names.get(interface) or self.buses.get(pci.lower())


def xids(window: Window, events: tuple[Event, ...]) -> Iterator[Finding]:
    recent, older = window.split(e for e in events if isinstance(e, Xid))
    groups: dict[tuple[bool, int, str], list[Xid]] = {}
    for event in recent:
        groups.setdefault((event.switch, event.number, event.pci), []).append(event)
    for (switch, number, pci), mine in groups.items():
        about = window.about(Code.GPU_XID, f"xid.{'switch.' if switch else ''}{number}.{pci}")
        name = f"{'SXid' if switch else 'Xid'} {number} on {pci}"
        who = f", in {mine[-1].process} ({mine[-1].pid})" if mine[-1].process else ""
        if switch:
            fatal, means, fix = mine[-1].fatal, "NVSwitch error", "look at the fabric manager's log; reset GPUs and switches"
        else:
            seen = meaning(number)
            fatal, means, fix = seen.weight is Weight.FATAL, seen.text, seen.fix
        got, wanted = f"{name}{who}: {window.told(mine)}", "no Xid"
        yield about.fail(got, wanted, means, remedy=fix) if fatal else about.warn(got, wanted, means, remedy=fix)
    if not groups:
        yield window.quiet(window.about(Code.GPU_XID, "xid"), "Xid", older)


def links(window: Window, fabric: Fabric, downs: int, events: tuple[Event, ...]) -> Iterator[Finding]:
    """Links, drivers and PCIe of the fabric's functions. `downs`: so many losses of a link are a failure."""
    recent, older = window.split(e for e in events if isinstance(e, Link | Device) and not _storage(e))
    flaps: dict[Subject, list[Link]] = {}
    troubles: dict[tuple[Subject, Trouble], list[Device]] = {}
    others: dict[str, int] = {}
    homeless: list[Event] = []
    found: list[Finding] = []
    for event in recent:
        if fabric.lost and fabric.of_event(event.interface, _address(event)) is None and not event.interface and not _up(event):
            homeless.append(event)
        if isinstance(event, Link):
            subject = fabric.of_event(event.interface, event.pci)
            if subject is not None:
                flaps.setdefault(subject, []).append(event)
            elif not event.up:
                others[event.interface or event.pci] = others.get(event.interface or event.pci, 0) + 1
        else:
            subject = fabric.of_event(event.interface, event.device)
            if subject is None and event.trouble is Trouble.PCIE:
                subject = window.subject
            if subject is not None:
                troubles.setdefault((subject, event.trouble), []).append(event)
            else:
                others[event.interface or event.device] = others.get(event.interface or event.device, 0) + 1
    for subject, seen in flaps.items():
        found += _flaps(window, subject, seen, downs)
    for (subject, trouble), mine in troubles.items():
        found.append(_trouble(window, subject, trouble, mine))
    if homeless:
        why = f"whether it is of the fabric is not known, as the node does not tell the PCI address of {', '.join(fabric.lost)}"
        found.append(window.about(Code.LINK_EVENTS, "link.whose").unknown(
            Unreadable(Reason.BLOCKED, f"{why}: {window.told(homeless)}"), "no such event on the fabric",
            "see the check ports: a NIC that is gone has no interface any more"))
    yield from found
    if not worst(found):
        notes = [f"not of the fabric: {name} {n} times" for name, n in sorted(others.items())[:4]]
        yield window.quiet(window.about(Code.LINK_EVENTS, "link"), "link or NIC event on the fabric", older, notes)


def _address(event: Link | Device) -> str:
    return event.pci if isinstance(event, Link) else event.device


def _up(event: Link | Device) -> bool:
    return isinstance(event, Link) and event.up


def _storage(event: Link | Device) -> bool:
    return isinstance(event, Device) and event.trouble in (Trouble.STORAGE, Trouble.STORAGE_SLOW)


def _flaps(window: Window, subject: Subject, seen: list[Link], downs: int) -> Iterator[Finding]:
    lost = [e for e in seen if not e.up and not _booting(window, e)]
    if not lost:
        return
    about = window.about(Code.LINK_EVENTS, "link.flaps", subject)
    got, wanted = f"link lost {window.told(lost)}", f"fewer than {downs} losses in {window.hours} h"
    remedy = "look at cable, transceiver and the switch port's counters; an `apply` that changed PFC flaps a link too"
    if not seen[-1].up:
        yield about.fail(got, wanted, "the link did not come back in this log", remedy=remedy)
    elif len(lost) >= downs:
        yield about.fail(got, wanted, "the link flaps: each loss kills the RDMA connections on it", remedy=remedy)
    else:
        yield about.warn(got, wanted, "each loss kills the RDMA connections on it", remedy=remedy)


def _booting(window: Window, event: Link) -> bool:
    after = window.log.after_boot_s(event.line)
    return after is not None and after < GRACE_S


_MEANS = {
    Trouble.NIC: ("the NIC's driver or firmware reports an error", "power the node off and on; update the firmware; exchange the NIC"),
    Trouble.NIC_POWER: ("the slot gives the NIC less power than it asks for: it may run slow",
                        "look whether the check `rails` finds it degraded; power the node off and on; look for a BIOS update"),
    Trouble.PCIE: ("a PCIe error that the hardware did not correct: transfers were lost, or the device is gone",
                   "reseat the card; look for a BIOS update; exchange card or riser"),
    Trouble.PCIE_CORRECTED: ("PCIe errors that the hardware corrected: the link is marginal", "watch it; reseat the card when it goes on"),
}


def _trouble(window: Window, subject: Subject, trouble: Trouble, mine: list[Device]) -> Finding:
    device = "" if subject.function else f".{mine[-1].device}"
    about = window.about(Code.LINK_EVENTS, f"link.{trouble.name.lower()}{device}", subject)
    means, fix = _MEANS[trouble]
    got, wanted = f"{trouble} {window.told(mine)}", f"no {trouble}"
    mild = trouble in (Trouble.PCIE_CORRECTED, Trouble.NIC_POWER) or not subject.function
    return about.warn(got, wanted, means, remedy=fix) if mild else about.fail(got, wanted, means, remedy=fix)


def storage(window: Window, events: tuple[Event, ...]) -> Iterator[Finding]:
    recent, older = window.split(e for e in events if isinstance(e, Device) and _storage(e))
    groups: dict[tuple[Trouble, str], list[Device]] = {}
    for event in recent:
        groups.setdefault((event.trouble, event.device), []).append(event)
    for (trouble, device), mine in groups.items():
        slow = trouble is Trouble.STORAGE_SLOW
        about = window.about(Code.STORAGE_TIMEOUT if slow else Code.STORAGE_ERROR, f"storage.{device}")
        yield about.fail(f"{device}: {window.told(mine)}", f"no {trouble}",
                         "a disk did not answer in time" if slow else "a disk, or the file system on it, failed to read or write",
                         remedy="look at the disk (smartctl, nvme smart-log) and at the file system; model files on it may be damaged")
    if not any(t is Trouble.STORAGE for t, _ in groups):
        yield window.quiet(window.about(Code.STORAGE_ERROR, "storage"), "I/O error", [e for e in older if e.trouble is Trouble.STORAGE])
    yield from _servers(window, events, any(t is Trouble.STORAGE_SLOW for t, _ in groups),
                        [e for e in older if e.trouble is Trouble.STORAGE_SLOW])


def _servers(window: Window, events: tuple[Event, ...], slow: bool, old_slow: list[Device]) -> Iterator[Finding]:
    recent, older = window.split(e for e in events if isinstance(e, Server))
    groups: dict[str, list[Server]] = {}
    for event in recent:
        groups.setdefault(event.server, []).append(event)
    found = []
    for server, seen in groups.items():
        lost = [e for e in seen if not e.back]
        if not lost:
            continue
        about = window.about(Code.STORAGE_TIMEOUT, f"server.{server}")
        got, wanted = f"{server}: {window.told(lost)}", "file servers that answer"
        remedy = "look at the server and the way to it; whatever reads from it waits"
        if seen[-1].back:
            found.append(about.warn(f"{got} (it came back)", wanted, "a file server did not answer for a while", remedy=remedy))
        else:
            found.append(about.fail(got, wanted, "a file server does not answer, and did not come back in this log", remedy=remedy))
    yield from found
    if not found and not slow:
        lost_before: list[Event] = [*old_slow, *(e for e in older if not e.back)]
        yield window.quiet(window.about(Code.STORAGE_TIMEOUT, "server"), "disk or file server that did not answer", lost_before)
