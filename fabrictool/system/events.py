"""What a kernel log tells, each event as a value. A pattern is matched at the beginning of a message only: a program may choose its own
name, and frames of a call trace (`ext4_filemap_fault+0x..`) begin with no pattern."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Union

from fabrictool.system.cgroup import Owner
from fabrictool.system.loglines import Line


@dataclass(frozen=True, slots=True)
class Oom:
    """The kernel killed a process for want of memory. `scope`: the control group whose limit was met; None: the memory of the node.
    `victim`: the control group of the killed process (None: the log does not tell)."""

    line: Line
    process: str
    pid: int | None
    scope: Owner | None
    victim: Owner | None

    @property
    def whose(self) -> Owner | None:
        """The victim's control group; where the log leaves it out, the one whose limit was met."""
        return self.victim or self.scope


@dataclass(frozen=True, slots=True)
class Xid:
    """`pci`: as the driver prints it (0000:41:00). `switch`: an SXid of an NVSwitch, `fatal` as it says itself. `process`: "" = none."""

    line: Line
    number: int
    pci: str
    pid: int | None = None
    process: str = ""
    switch: bool = False
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """An interface lost or got its link. `interface` or `pci` is "" where the driver prints none."""

    line: Line
    interface: str
    pci: str
    up: bool


class Trouble(StrEnum):
    """Kinds of trouble that concern one device."""

    NIC = "NIC error"  # driver or firmware of a network card
    NIC_POWER = "NIC short of power"
    PCIE = "PCIe error"
    PCIE_CORRECTED = "corrected PCIe error"
    STORAGE = "I/O error"
    STORAGE_SLOW = "I/O timeout"


@dataclass(frozen=True, slots=True)
class Device:
    """`device`: a PCI address, a block device or the like; `interface`: where the driver prints one."""

    line: Line
    trouble: Trouble
    device: str
    interface: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """A network file server did not answer, or (`back`) answers again."""

    line: Line
    server: str
    back: bool


@dataclass(frozen=True, slots=True)
class Hung:
    """A task that was blocked for `seconds`; `lockup`: a CPU that was stuck in the kernel."""

    line: Line
    process: str
    pid: int | None
    seconds: int | None
    lockup: bool = False


Event = Union[Oom, Xid, Link, Device, Server, Hung]
