"""Reads a kernel log: text -> events. Pure; never raises; a line that is cut or damaged is no event.

Message texts: Linux mm/oom_kill.c and mm/memcontrol.c (4.9 to 6.15), drivers/net/ethernet/mellanox/mlx5, drivers/pci/pcie/aer.c,
block/blk-core.c, drivers/nvme/host, fs/ext4, fs/xfs, fs/btrfs, net/sunrpc, kernel/hung_task.c, kernel/watchdog.c; NVIDIA's driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from fabrictool.system.events import Device, Event, Hung, Link, Server, Trouble, Xid
from fabrictool.system.loglines import Line, lines
from fabrictool.system.oom import Kills

BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_NAME = r"[^\s:]{1,64}"
_Make = Callable[[Line, re.Match[str]], Event]


def read(text: str) -> tuple[Event, ...]:
    """All events, in the order of the text."""
    return events(lines(text))


def events(rows: Iterable[Line]) -> tuple[Event, ...]:
    out: list[Event] = []
    kills = Kills()
    for row in rows:
        text = row.text.strip()
        if not _HINT.search(text) or kills.takes(row, text):
            continue
        for pattern, make in _PATTERNS:
            m = pattern.match(text)
            made = make(row, m) if m else None
            if made is not None:
                out.append(made)
                break
    return tuple(sorted((*out, *kills.found()), key=lambda e: e.line.number))


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else None


_XID = re.compile(r"NVRM: (?:GPU at \S{1,64}: )?Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2})?(?:\.[0-7])?)\): "
                  r"(?P<number>\d{1,4}),? ?(?:pid='?(?P<pid><unknown>|\d{1,10})'?, )?(?:name='?(?P<name>[^,']{0,64})'?,? )?")
_SXID = re.compile(rf"nvidia-nvswitch\d{{1,3}}: SXid \(PCI:(?P<pci>{BDF})\): (?P<number>\d{{1,6}}), (?P<weight>Fatal|Non-fatal)", re.I)
_LINK = re.compile(rf"(?:(?:{_NAME}) (?P<pci>{BDF}):? )?(?P<if>{_NAME}): (?:NIC )?[Ll]ink (?:is )?(?P<state>[Dd]own|DOWN|[Uu]p|UP)\b")
_SLAVE = re.compile(rf"(?:bonding: )?{_NAME}: (?:\(slave (?P<if>{_NAME})\): )?link status (?P<state>definitely down|definitely up)"
                    r"(?: for interface (?P<if2>[^\s:,]{1,64}))?")
_NIC = re.compile(
    rf"(?:mlx5_core|mlx5_ib) (?P<dev>{BDF})(?: (?P<if>{_NAME}))?: (?:[a-z0-9_.]{{1,60}}:(?:\d{{1,5}}:)?(?:\(pid \d{{1,10}}\):)? ?)?"
    r"(?:.{0,60}?device's health compromised|Fatal error \d|.{0,40}?firmware internal error|handling bad device here"
    r"|.{0,60}?health recovery f(?:ailed|low aborted)|.{0,80}?timeout\. Will cause a leak|Port module event\[error\]"
    r"|High temperature|.{0,40}?TX timeout detected|(?P<power>Detected insufficient power on the PCIe slot))")
_CABLE = re.compile(rf"mlx5_core (?P<pci>{BDF}): Port module event: module \d{{1,3}}, Cable (?P<state>un)?plugged")
_TX = re.compile(rf"NETDEV WATCHDOG: (?:CPU: \d{{1,5}}: )?(?P<if>{_NAME}) \({_NAME}\)[: ].{{0,20}}transmit queue \d{{1,5}} timed out")
_AER = re.compile(rf"(?:pcieport|pcie_aer|\S{{1,30}}) (?P<port>{BDF}): (?:AER: )?"
                  r"(?:(?:Multiple )?(?P<how>Correct\w{0,8}|Uncorrect\w{0,8}|Fatal|Non-Fatal) "
                  rf".{{0,60}}?(?:from|received:) (?P<dev>{BDF})"
                  r"|PCIe Bus Error: severity=(?P<severity>Correct\w{0,8}|Uncorrect\w{0,8}|Fatal)"
                  r"|device recovery failed|DPC: containment event|pciehp: Slot\([^)]{1,20}\): (?:Link Down|Card not present))")
_BLOCK = re.compile(
    r"(?:blk_update_request: |print_req_error: |end_request: )?(?:critical (?:medium|target|nexus|space allocation) error"
    r"|I/O error|timeout error|recoverable transport error|protection error|device offline error),? dev (?P<a>[^\s,]{1,64})"
    r"|Buffer I/O error on dev(?:ice)? (?P<b>[^\s,]{1,64})|EXT4-fs error \(device (?P<c>[^)\s]{1,64})\)"
    r"|EXT4-fs \((?P<d>[^)\s]{1,64})\): Remounting filesystem read-only"
    r"|XFS \((?P<e>[^)\s]{1,64})\): .{0,120}?(?:I/O [Ee]rror|[Cc]orruption|[Ss]hutting down|has been shut down)"
    r"|BTRFS (?:error|critical) \(device (?P<f>[^)\s:]{1,64})[^)]{0,64}\)|md/raid\S{0,10}:(?P<g>\S{1,64}): Disk failure"
    r"|nvme (?P<h>nvme\d{1,4}): (?:Removing after probe failure|Device not ready; aborting|controller is down; will reset"
    r"|Disabling device after reset failure)|(?P<i>ata\d{1,4})(?:\.\d{1,4})?: (?:exception Emask|failed command)")
_SLOW = re.compile(r"nvme (?P<a>nvme\d{1,4}): I/O (?:tag )?\d{1,6} .{0,60}?timeout"
                   r"|(?:sd|scsi) \S{1,20}: \[(?P<b>\w{1,32})\] .{0,60}?timing out command")
_NFS = re.compile(r"(?:nfs|lockd|NFS): server (?P<server>\S{1,255}) (?P<state>not responding, (?:still trying|timed out)|OK)$"
                  r"|CIFS: (?:VFS: )?\\\\(?P<cifs>[^\s\\]{1,255})(?:\\\S{0,255})? has not responded in \d{1,6} seconds"
                  r"|rpcrdma: connection to (?P<rpc>\S{1,255}) .{0,40}?closed"
                  r"|Lustre: (?P<lustre>\S{1,255}): Connection to \S{1,255} .{0,120}?was lost"
                  r"|ceph: (?P<ceph>mds\d{1,4}) hung$")
_BLOCKED = re.compile(r"INFO: task (?P<name>.{1,64}?):(?P<pid>\d{1,10}) blocked (?:in I/O wait )?for more than (?P<s>\d{1,6}) seconds")
_LOCKUP = re.compile(r"(?:watchdog: )?(?:NMI watchdog: )?BUG: soft lockup - CPU#\d{1,5} stuck for (?P<s>\d{1,6})s! \[(?P<name>.{0,64}?):"
                     r"(?P<pid>\d{1,10})\]|(?:NMI watchdog: |watchdog: )?Watchdog detected hard LOCKUP|rcu: INFO: rcu_\w{1,20} (?:self-)?"
                     r"detected (?:expedited )?stalls?|INFO: rcu_\w{1,20} (?:self-)?detected stalls?")
_HINT = re.compile(r"oom-kill|[Kk]ill(?:ed)? process|killed as a result|Xid|[Ll]ink |link status|mlx5|NETDEV|AER|PCIe|DPC|pciehp"
                   r"|device recovery|error|XFS|BTRFS|EXT4|Disk failure"
                   r"|nvme|ata\d|tim(?:eout|ing out)|server |responded|rpcrdma|Lustre|ceph|blocked |lockup|LOCKUP|rcu_")


def _xid(row: Line, m: re.Match[str]) -> Event:
    name = (m["name"] or "").strip()
    return Xid(row, int(m["number"]), m["pci"].lower(), _number(m["pid"]), "" if name == "<unknown>" else name)


def _link(row: Line, m: re.Match[str]) -> Event | None:
    got: Mapping[str, str | None] = m.groupdict()
    interface = got.get("if") or got.get("if2") or ""
    return Link(row, interface, (got.get("pci") or "").lower(), "up" in m["state"].lower()) if interface else None


def _aer(row: Line, m: re.Match[str]) -> Event:
    mild = (m["how"] or m["severity"] or "").lower().startswith("correct")
    return Device(row, Trouble.PCIE_CORRECTED if mild else Trouble.PCIE, (m["dev"] or m["port"]).lower())


def _device(trouble: Trouble) -> _Make:
    def make(row: Line, m: re.Match[str]) -> Event:
        return Device(row, trouble, next((g for g in m.groups() if g), "?"))

    return make


def _server(row: Line, m: re.Match[str]) -> Event:
    server = m["server"] or m["cifs"] or m["rpc"] or m["lustre"] or m["ceph"] or "?"
    return Server(row, server, m["state"] == "OK")


def _nic(row: Line, m: re.Match[str]) -> Event:
    return Device(row, Trouble.NIC_POWER if m["power"] else Trouble.NIC, m["dev"].lower(), m["if"] or "")


def _hung(row: Line, m: re.Match[str]) -> Event:
    return Hung(row, m["name"], _number(m["pid"]), _number(m["s"]))


def _lockup(row: Line, m: re.Match[str]) -> Event:
    return Hung(row, m["name"] or "", _number(m["pid"]), _number(m["s"]), lockup=True)


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[Line, re.Match[str]], Event | None]], ...] = (
    (_XID, _xid),
    (_SXID, lambda row, m: Xid(row, int(m["number"]), m["pci"].lower(), switch=True, fatal=m["weight"].lower() == "fatal")),
    (_CABLE, lambda row, m: Link(row, "", m["pci"].lower(), m["state"] is None)),
    (_NIC, _nic),
    (_TX, lambda row, m: Device(row, Trouble.NIC, "", m["if"])),
    (_AER, _aer),
    (_LINK, _link),
    (_SLAVE, _link),
    (_SLOW, _device(Trouble.STORAGE_SLOW)),
    (_BLOCK, _device(Trouble.STORAGE)),
    (_NFS, _server),
    (_BLOCKED, _hung),
    (_LOCKUP, _lockup),
)
