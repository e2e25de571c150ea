"""What to collect around a run: byte, packet and loss counters with the node's own clock. Not part of every snapshot.

Sysfs sections end with /proc/sys/kernel/ostype, as in the ports room: an answer without it was cut, and what it lacks may be there.
"""

from __future__ import annotations

from fabrictool.ports.sections import FILE_END
from fabrictool.snapshot import Each, Section, sysfs, tool

RDMA = "/sys/class/infiniband/"
NET = "/sys/class/net/"
UPTIME, BOOT = "/proc/uptime", "/proc/sys/kernel/random/boot_id"

# Lines of single queues (`rx12_packets`, `ch7_poll`) are most of what mlx5 prints, and none is read. Not by a pipe: it would hide
# ethtool's exit status.
ETHTOOL = """got=$(LC_ALL=C ethtool -S "$1")
rc=$?
[ -z "$got" ] || printf '%s\\n' "$got" | LC_ALL=C sed -E '/^ *(qos_)?(ch|rx|tx)[0-9]+_/d'
exit "$rc"
"""

SECTIONS: tuple[Section, ...] = (
    # Uptime tells a reboot and how long it was between two readings; the other clock belongs to the run's own stamps.
    Section("counters.clock", f"cat {UPTIME} && date +%s.%N && cat {BOOT}"),
    sysfs("counters.rdma", f"{RDMA}{{}}/ports/1/counters/*", f"{RDMA}{{}}/ports/1/hw_counters/*", FILE_END, each=Each.RDMA,
          max_bytes=262_144),
    sysfs("counters.net", *(f"{NET}{{}}/statistics/{f}" for f in ("rx_bytes", "rx_packets", "tx_bytes", "tx_packets")), FILE_END,
          each=Each.NETDEV, max_bytes=16_384),
    Section("counters.ethtool", ETHTOOL, Each.NETDEV, max_bytes=524_288),
    # A second view of hw_counters, for kernels that keep them out of sysfs. Not root's: reading changes nothing.
    tool("counters.stat", "rdma", "-j", "statistic", "show"),
)
