"""The kinds of nodes a lab can have. Names and topology as on the real machines (DGX Spark: one CX-7, two PCIe functions of one
cage; H20: eight one-port NICs and two for storage; plain: one NIC, nothing owns its interface)."""

from __future__ import annotations

from fabrictool.lab.errors import LabError
from fabrictool.lab.nodeside.state import Nic
from fabrictool.lab.plan import Device, Owner, Profile

COMMON = frozenset({"mlnx_qos", "dcb", "rdma", "ethtool", "ibv_devinfo", "nvidia-smi", "systemctl", "udevadm", "docker", "dmesg",
                    "journalctl", "systemd-run", "lspci"})

SPARK = Profile(
    "spark", "spark", "spark", Nic("enP7s7", "0007:01:00.0", "r8127", 10000),
    (Device("enp1s0f0np0", "rocep1s0f0", "p0", "a", "0000:01:00.0", 200),
     Device("enP2p1s0f0np0", "roceP2p1s0f0", "p0", "b", "0002:01:00.0", 200)),
    {"a": "10.10.1", "b": "10.10.2"}, "enp1s0f0np0", Owner.NETWORK_MANAGER, "26.07", True, "NVIDIA GB10", 1,
    COMMON | {"nmcli", "netplan", "networkctl"}, 4)

_H20_RDMA = (0, 1, 2, 3, 6, 7, 8, 9)  # mlx5_4 and mlx5_5 are storage

H20 = Profile(
    "h20", "gpu", "h20", Nic("bond1", "0000:31:00.0", "ixgbe", 25000),
    (*(Device(f"ens{i}np0", f"mlx5_{r}", f"p{i}", f"r{i}", f"0000:{0x41 + 0x10 * (i // 4) + i % 4:02x}:00.0", 400)
       for i, r in enumerate(_H20_RDMA)),
     *(Device(f"ens2{i}np0", f"mlx5_{4 + i}", f"s{i}", "", f"0000:{0xa1 + i:02x}:00.0", 200) for i in range(2))),
    {f"r{i}": f"10.20.{i}" for i in range(8)}, "bond1", Owner.NETWORKD, "5.9.1", False, "NVIDIA H20", 8,
    COMMON | {"netplan", "networkctl"}, 16)

PLAIN = Profile(
    "plain", "node", "plain", Nic("eth0", "0000:02:00.0", "igb", 1000),
    (Device("eth1", "mlx5_0", "p0", "a", "0000:03:00.0", 100),),
    {"a": "10.10.1"}, "eth1", Owner.NONE, "26.04", True, "NVIDIA L40S", 1, COMMON, 16)

PROFILES = {p.name: p for p in (SPARK, H20, PLAIN)}


def profile(name: str) -> Profile:
    if name not in PROFILES:
        raise LabError(f"no profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
