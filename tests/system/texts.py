"""What lspci, nvidia-smi topo and sysfs say of an H20 node: eight GPUs and eight NICs, each pair behind a PCIe switch of its own."""

from __future__ import annotations

DEVICES = tuple(f"mlx5_{i}" for i in (0, 1, 2, 3, 6, 7, 8, 9))
DRIVER_H20 = "/proc/driver/nvidia/version:NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs@U22)\n"
PEERMEM = "/sys/module/nvidia_peermem/initstate:live\n"
LINK_END = "/proc/self/exe -> /usr/bin/dash\n"


def _row(name: str, near: int, first: str) -> str:
    cells = ["PIX" if i == near else "NODE" if i // 4 == near // 4 else "SYS" for i in range(8)]
    return f"{name}\t" + "\t".join(cells) + f"\t{first}\n"


TOPO_H20 = ("\t\x1b[4m" + "\t".join([f"GPU{i}" for i in range(8)] + [f"NIC{i}" for i in range(8)] + ["CPU Affinity", "NUMA Affinity"])
            + "\x1b[0m\n"
            + "".join(f"GPU{g}\t" + "\t".join([" X " if i == g else "NV18" for i in range(8)]
                                              + ["PIX" if i == g else "SYS" for i in range(8)]) + "\t0-47\t0\n" for g in range(8))
            + "".join(_row(f"NIC{n}", n, "\t".join(" X " if i == n else "SYS" for i in range(8))) for n in range(8))
            + "\nLegend:\n\n  X    = Self\n  PIX  = Connection traversing at most a single PCIe bridge\n\nNIC Legend:\n\n"
            + "".join(f"  NIC{i}: {d}\n" for i, d in enumerate(DEVICES)))


def _switch(i: int) -> tuple[str, str, str, str]:
    """(root port, upstream, downstream to the NIC, downstream to the GPU)."""
    return f"0000:{i:02x}:01.0", f"0000:{0x10 + i:02x}:00.0", f"0000:{0x20 + i:02x}:00.0", f"0000:{0x20 + i:02x}:01.0"


LINKS_NIC = "".join(
    f"/sys/class/infiniband/{d}/device -> /sys/devices/pci0000:{i:02x}/{'/'.join(_switch(i)[:3])}/0000:{0x40 + i:02x}:00.0\n"
    for i, d in enumerate(DEVICES)) + LINK_END
LINKS_GPU = "".join(
    f"/sys/bus/pci/drivers/nvidia/0000:{0x60 + i:02x}:00.0 -> /sys/devices/pci0000:{i:02x}/{'/'.join((*_switch(i)[:2], _switch(i)[3]))}"
    f"/0000:{0x60 + i:02x}:00.0\n" for i in range(8)) + "/sys/bus/pci/drivers/nvidia/module -> /sys/module/nvidia\n" + LINK_END


def bridge(bdf: str, on: bool) -> str:
    sign = "+" if on else "-"
    return (f"{bdf} PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])\n"
            "\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+\n"
            "\tCapabilities: [220 v1] Access Control Services\n"
            "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+\n"
            f"\t\tACSCtl:\tSrcValid{sign} TransBlk- ReqRedir{sign} CmpltRedir{sign} UpstreamFwd{sign} EgressCtrl- DirectTrans-\n\n")


ACS_OFF = "".join(bridge(b, False) for i in range(8) for b in _switch(i))
ACS_ON = "".join(bridge(b, i == 3 and b == _switch(3)[2]) for i in range(8) for b in _switch(i))
