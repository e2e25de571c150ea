"""A tiny model of one mlx5 port's QoS and what the tools print of it, written from the layout, not from the parsers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

DEFAULT_MAP = {d: d // 8 for d in range(64)}


@dataclass
class Device:
    """`fw`: what DSCPs without an entry map to inside the firmware is not modelled: no tool shows it."""

    app: dict[int, int] = field(default_factory=dict)
    pfc: list[int] = field(default_factory=lambda: [0] * 8)
    prio_tc: list[int] = field(default_factory=lambda: [1, 0, 2, 3, 4, 5, 6, 7])
    tsa: list[str] = field(default_factory=lambda: ["vendor"] * 8)
    prio_buffer: list[int] = field(default_factory=lambda: [0] * 8)
    sizes: list[int] = field(default_factory=lambda: [262016, 0, 0, 0, 0, 0, 0, 0])
    os_controlled: bool = True
    pause: tuple[bool, bool] = (True, True)
    lldpad: bool = False
    flaps: int = 0

    @property
    def trust(self) -> str:
        return "dscp" if self.app else "pcp"

    def run(self, argv: tuple[str, ...]) -> None:
        """One command, with the driver's semantics."""
        match argv:
            case ("ethtool", "-A", _, "rx", rx, "tx", tx):
                self.pause = (rx == "on", tx == "on")
            case ("mlnx_qos", "-i", _, "-d", mode):
                self.os_controlled = mode == "os"
            case ("mlnx_qos", "-i", _, "--trust", "dscp"):
                if not self.app:  # no repair of a map that is there
                    self.app = dict(DEFAULT_MAP)
            case ("mlnx_qos", "-i", _, "--trust", "pcp"):
                self.app = {}
            case ("mlnx_qos", "-i", _, "--dscp2prio", *_rest):
                for word in argv[4::2]:
                    verb, dscp, priority = word.split(",")
                    if verb == "set":
                        self.app[int(dscp)] = int(priority)
                    elif self.app.get(int(dscp)) == int(priority):
                        del self.app[int(dscp)]
            case ("mlnx_qos", "-i", _, "-f", mask):
                new = [int(b) for b in mask.split(",")]
                self.flaps += new != self.pfc
                self.pfc = new
            case ("mlnx_qos", "-i", _, "-p", tcs):
                self.prio_tc = [int(c) for c in tcs.split(",")]
            case _:
                raise AssertionError(f"not a command of this device: {argv}")

    def mlnx_qos(self, era: str = "26.04") -> str:
        """What `mlnx_qos -i IF` prints: 2017, 5.0 (no suffix), 5.9.1 (total_size, default priority), 23.04 and later."""
        out = ["****** WARNING: lldpad service is running and may overwrite your settings ******\n\n"] if self.lldpad else []
        if era != "2017":
            out.append(f"DCBX mode: {'OS' if self.os_controlled else 'Firmware'} controlled\n")
            out.append(f"Priority trust state: {self.trust}\n")
            if self.app:
                out.append("dscp2prio mapping:\n")
                for priority in range(8):
                    dscps = [d for d in sorted(self.app, reverse=True) if self.app[d] == priority]
                    while dscps:
                        out.append(f"\tprio:{priority} dscp:{''.join(f'{d:02d},' for d in dscps[:8])}\n")
                        dscps = dscps[8:]
            if era == "5.9.1":
                out.append("default priority:\n")
            tail = {"5.0": "", "5.9.1": f"total_size={sum(self.sizes)}"}.get(era, f"max_buffer_size={sum(self.sizes)}")
            out.append(f"Receive buffer size (bytes): {''.join(f'{n},' for n in self.sizes)}{tail}\n")
            out.append("Cable len: 7\n")
        out.append("PFC configuration:\n" if era != "2017" else "PFC configuration\n\n")
        out.append("\tpriority    0   1   2   3   4   5   6   7\n")
        out.append("\tenabled     " + "".join(f"{b}   " for b in self.pfc) + "\n")
        if era != "2017":
            out.append("\tbuffer      " + "".join(f"{b}   " for b in self.prio_buffer) + "\n")
        order = range(8) if era not in ("2017", "5.0") else dict.fromkeys(self.prio_tc)  # unsorted before 2023
        for tc in order:
            mapped = [p for p in range(8) if self.prio_tc[p] == tc]
            if mapped:
                weight = ", bw: 50%" if self.tsa[tc] == "ets" else ""
                out.append(f"tc: {tc} ratelimit: unlimited, tsa: {self.tsa[tc]}{weight}\n")
                out += [f"\t priority:  {p}\n" for p in mapped]
        return "".join(out)

    def dcb(self, nic: str = "eth1", newer: bool = False) -> str:
        """The transcript of `dcb -j`; `newer`: three elements to an entry (6.5)."""
        rows = [[d, p, " "] if newer else [d, p] for d, p in sorted(self.app.items())]
        docs = {
            "dcbx": {"host": True, "ieee": True} if self.os_controlled else {"ieee": True},
            "app": {"dscp_prio": rows} if rows else {},
            "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": 7, "prio_pfc": [bool(b) for b in self.pfc]},
            "ets": {"willing": False, "ets_cap": 8, "cbs": False, "tc_bw": [0] * 8, "tc_tsa": self.tsa, "prio_tc": self.prio_tc},
            "buffer": {"prio_buffer": self.prio_buffer, "buffer_size": self.sizes, "total_size": sum(self.sizes)},
        }
        return "".join(f"$ dcb -j {o} show dev {nic}\n{json.dumps(d, separators=(',', ':'))}\n[rc=0]\n" for o, d in docs.items())

    def ethtool(self, nic: str = "eth1") -> str:
        rx, tx = ("on" if b else "off" for b in self.pause)
        return f"Pause parameters for {nic}:\nAutonegotiate:\toff\nRX:\t\t{rx}\nTX:\t\t{tx}\n\n"


def configured(**changes: object) -> Device:
    """As the spec of a Spark wants it."""
    device = Device(app=dict(DEFAULT_MAP), pfc=[0, 0, 0, 1, 0, 0, 0, 0], pause=(False, False))
    for name, value in changes.items():
        setattr(device, name, value)
    return device
