"""Kernel logs in the kernel's own formats, written for these tests: ids, names and numbers are invented."""

from __future__ import annotations

BOX = "a" * 64  # as in tests.env.sample
OTHER = "9c" * 32
POD = "0a1b2c3d-1111-2222-3333-444455556666"

CALM = """\
mlx5_core 0000:01:00.0: firmware version: 28.45.1200
mlx5_core 0000:01:00.0 enp1s0f0np0: Link up
NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.159.04  Release Build  (dvs-builder@U22-I3)
EXT4-fs (nvme0n1p2): mounted filesystem 6c0b with ordered data mode. Quota mode: none.
nfs: server 10.9.0.5 OK
pcieport 0000:00:01.0: AER: enabled with IRQ 41
audit: type=1400 audit(1785571201.101:12): apparmor="STATUS" operation="profile_load"
systemd-journald[611]: Time jumped backwards, rotating.
nvme nvme0: 16/0/0 default/read/poll queues
docker0: port 1(veth12ab) entered forwarding state
"""

FRAMES = """\
CPU: 7 PID: {pid} Comm: {name} Tainted: G           OE      6.14.0-1015-nvidia #15
Call trace:
 dump_backtrace+0x9c/0x128
 dump_header+0x48/0x208
 oom_kill_process+0x258/0x2f8
 ext4_filemap_fault+0x38/0x58
 nfs_file_read+0x74/0xc8
 xfs_filemap_fault+0x64/0x1d0
 blk_mq_submit_bio+0x2a0/0x6f0
"""


def oom(name: str = "python3", pid: int = 4101, task: str = f"/system.slice/docker-{BOX}.scope", limit: str | None = None) -> str:
    """`limit`: the control group whose limit was met; None: the node itself has no memory left."""
    constraint = "CONSTRAINT_MEMCG" if limit else "CONSTRAINT_NONE"
    where = f"oom_memcg={limit}" if limit else "global_oom"
    said = "Memory cgroup out of memory" if limit else "Out of memory"
    return (f"{name} invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0\n"
            f"{FRAMES.format(pid=pid, name=name)}"
            "Mem-Info:\n"
            "active_anon:120 inactive_anon:31042118 isolated_anon:0\n"
            "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name\n"
            f"[   {pid}]     0  {pid} 41943040 30000000 29990000     9000     1000 250000000        0             0 {name}\n"
            f"oom-kill:constraint={constraint},nodemask=(null),cpuset=docker-{BOX}.scope,mems_allowed=0,{where},task_memcg={task},"
            f"task={name},pid={pid},uid=0\n"
            f"{said}: Killed process {pid} ({name}) total-vm:167772160kB, anon-rss:119960000kB, file-rss:36000kB, shmem-rss:4000kB, "
            "UID:0 pgtables:244140kB oom_score_adj:0\n"
            f"oom_reaper: reaped process {pid} ({name}), now anon-rss:0kB, file-rss:36000kB, shmem-rss:4000kB\n")


OLD_OOM = f"""\
Task in /docker/{BOX} killed as a result of limit of /docker/{BOX}
memory: usage 33554432kB, limit 33554432kB, failcnt 8123
Memory cgroup out of memory: Kill process 4101 (python3) score 998 or sacrifice child
Killed process 4102 (ray::Worker) total-vm:167772160kB, anon-rss:33000000kB, file-rss:36000kB, shmem-rss:0kB
"""

XID_79 = "NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
XID_31 = ("NVRM: Xid (PCI:0000:41:00): 31, pid=12345, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 "
          "faulted @ 0x7f00_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ\n")

NIC = {
    "health": "mlx5_core 0000:01:00.0: poll_health:954:(pid 0): device's health compromised - reached miss count",
    "synd": "mlx5_core 0000:01:00.0: print_health_info:428:(pid 0): synd 0x1: firmware internal error",
    "command": "mlx5_core 0000:01:00.0: wait_func:1137:(pid 311): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource",
    "module": "mlx5_core 0000:01:00.0: Port module event[error]: module 0, Cable error, Bus stuck(I2C or data shorted)",
    "queue": "NETDEV WATCHDOG: enp1s0f0np0 (mlx5_core): transmit queue 12 timed out",
    "hot": "mlx5_core 0000:01:00.0: temp_warn:198:(pid 0): High temperature on sensors with bit set 0 1",
}
POWER = "mlx5_core 0000:01:00.0: mlx5_pcie_event:301:(pid 268): Detected insufficient power on the PCIe slot (27W)."
AER = {
    "fatal": "pcieport 0000:00:01.0: AER: Multiple Uncorrected (Fatal) error received: 0000:01:00.0",
    "new": "pcieport 0000:00:01.0: AER: Uncorrectable (Non-Fatal) error message received from 0000:01:00.0",
    "bus": "mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
    "lost": "pcieport 0000:01:00.0: AER: device recovery failed",
}
CORRECTED = {
    "old": "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
    "new": "pcieport 0000:00:01.0: AER: Correctable error message received from 0000:01:00.0",
    "bus": "mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
}
STORAGE = {
    "blk_update_request: I/O error, dev sda, sector 123456 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 0": "sda",
    "I/O error, dev nvme0n1, sector 4096 op 0x1:(WRITE) flags 0x9800 phys_seg 1 prio class 2": "nvme0n1",
    "critical medium error, dev sdb, sector 99 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0": "sdb",
    "Buffer I/O error on dev dm-0, logical block 17, lost async page write": "dm-0",
    "EXT4-fs error (device nvme0n1p2): ext4_find_entry:1690: inode #2: comm python3: reading directory lblock 0": "nvme0n1p2",
    "EXT4-fs (nvme0n1p2): Remounting filesystem read-only": "nvme0n1p2",
    'XFS (dm-3): metadata I/O error in "xfs_da_read_buf+0xd9/0x130 [xfs]" at daddr 0x78 len 8 error 5': "dm-3",
    "BTRFS error (device sdc1 state EA): bdev /dev/sdc1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0": "sdc1",
    "md/raid1:md127: Disk failure on sdd1, disabling device.": "md127",
    "nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10": "nvme1",
    "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen": "ata1",
}
SLOW = {
    "nvme nvme0: I/O 45 QID 7 timeout, aborting": "nvme0",
    "nvme nvme0: I/O tag 45 (102d) opcode 0x1 (I/O Cmd) QID 7 timeout, aborting req_op:WRITE(1) size:4096": "nvme0",
}
NFS_LOST = "nfs: server 10.9.0.5 not responding, still trying"
NFS_BACK = "nfs: server 10.9.0.5 OK"
HUNG = "INFO: task python3:4101 blocked for more than 122 seconds."
LOCKUPS = ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4101]", "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3",
           "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "rcu: INFO: rcu_sched self-detected stall on CPU")

STAMPS = {
    "dmesg": "[{up:>12.6f}] {text}",
    "dmesg, shortened": "[{up:.3f}] {text}",
    "dmesg -d": "[{up:>12.6f} <    1.000000>] {text}",
    "dmesg -H": "[  +1.000000] {text}",
    "dmesg -e": "[Aug  1 10:00] {text}",
    "dmesg -T -d": "[Sat Aug  1 10:00:{s:02d} 2026 <    1.000000>] {text}",
    "dmesg with caller": "[{up:>12.6f}][ T4101] {text}",
    "dmesg -x": "kern  :err   : [{up:>12.6f}] {text}",
    "dmesg -r": "<4>[{up:>12.6f}] {text}",
    "dmesg -T": "[Sat Aug  1 10:00:{s:02d} 2026] {text}",
    "dmesg iso": "2026-08-01T10:00:{s:02d},123456+02:00 {text}",
    "journal short": "Aug 01 10:00:{s:02d} spark01 kernel: {text}",
    "syslog": "Aug  1 10:00:{s:02d} spark01 kernel: [{up:>12.6f}] {text}",
    "journal short-iso": "2026-08-01T10:00:{s:02d}+0200 spark01 kernel: {text}",
    "journal short-iso, new": "2026-08-01T10:00:{s:02d}+02:00 spark01 kernel: {text}",
    "rsyslog": "2026-08-01T10:00:{s:02d}.123456+02:00 spark01 kernel: [{up:>12.6f}] {text}",
    "kmsg": "4,1234,{us},-;{text}",
    "plain": "{text}",
}
START = 1785571200.0  # 2026-08-01T10:00:00+02:00


def stamped(text: str, style: str = "journal short-iso") -> str:
    """Each line with its stamp, a second apart."""
    rows = [STAMPS[style].format(text=ln, s=i % 60, up=4000.5 + i, us=int((4000.5 + i) * 1e6)) for i, ln in enumerate(text.splitlines())]
    return "\n".join(rows) + "\n"
