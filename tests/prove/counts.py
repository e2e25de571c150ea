"""One node's counters as a driver would keep them, and what sysfs, ethtool and the clocks print of them. Written from the drivers' names,
not from the parsers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.snapshot import Captured

END = "/proc/sys/kernel/ostype:Linux\n"
PORT = ("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "unicast_xmit_packets", "unicast_rcv_packets",
        "port_xmit_discards", "port_rcv_errors", "port_xmit_wait", "symbol_error", "link_downed", "link_error_recovery")
HW = ("out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "duplicate_request", "rnr_nak_retry_err",
      "out_of_buffer", "req_transport_retries_exceeded", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart",
      "rx_icrc_encapsulated", "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "rx_write_requests",
      "rx_read_requests", "rx_atomic_requests", "req_cqe_flush_error", "resp_cqe_flush_error")
ETHTOOL = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_vport_rdma_unicast_packets", "rx_vport_rdma_unicast_bytes",
           "tx_vport_rdma_unicast_packets", "tx_vport_rdma_unicast_bytes", "tx_packets_phy", "rx_packets_phy", "rx_crc_errors_phy",
           "tx_bytes_phy", "rx_bytes_phy", "rx_out_of_range_len_phy", "rx_symbol_err_phy", "rx_discards_phy", "tx_discards_phy",
           "link_down_events_phy", "rx_corrected_bits_phy", "tx_pause_storm_warning_events", "tx_pause_storm_error_events",
           *(f"{way}_prio{p}_{what}" for p in range(8) for way in ("rx", "tx") for what in ("bytes", "packets")),
           *(f"rx_prio{p}_{what}" for p in range(8) for what in ("discards", "buf_discard", "cong_discard", "marked")),
           *(f"{way}_prio3_{what}" for way in ("rx", "tx") for what in ("pause", "pause_duration")), "rx_prio3_pause_transition")


@dataclass
class Function:
    """One RDMA function: `device` and `interface`, its counters by name. `port`: functions with one word here mirror one port."""

    device: str
    interface: str
    port: str = ""
    sysfs: dict[str, int] = field(default_factory=dict)
    hw: dict[str, int] = field(default_factory=dict)
    ethtool: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        base = 5_000_000_000 + 1_000_003 * len(self.device) + sum(map(ord, self.device))
        self.sysfs = {n: base + i for i, n in enumerate(PORT[:6])} | dict.fromkeys(PORT[6:], 0)
        self.hw = dict.fromkeys(HW, 17)
        self.ethtool = {n: base + 7 * i if "bytes" in n or "packets" in n else 0 for i, n in enumerate(ETHTOOL)}

    def zero(self) -> None:
        """The device was reset: the function's own counters begin again. Those of the port stay with its firmware."""
        self.sysfs = dict.fromkeys(self.sysfs, 0)
        self.hw = dict.fromkeys(self.hw, 0)
        self.ethtool = {n: 0 if "vport" in n else v for n, v in self.ethtool.items()}


@dataclass
class Counts:
    """One node. Times in seconds."""

    functions: list[Function]
    nets: dict[str, int]  # interface -> bytes, each way
    uptime_s: float = 86_400.25
    epoch_s: float = 1_767_261_600.5
    boot: str = "0b0c2f0e-6d1c-4c6e-9d65-111111111111"

    def wait(self, seconds: float) -> None:
        self.uptime_s += seconds
        self.epoch_s += seconds
        for name in self.nets:  # somebody is always logged in
            self.nets[name] += 4_000 if name.startswith("enP7") or name == "eth0" else 900

    def reboot(self) -> None:
        self.uptime_s, self.boot = 31.0, "7f3d0a11-0000-4c6e-9d65-222222222222"
        for f in self.functions:
            f.zero()
            f.ethtool = dict.fromkeys(f.ethtool, 0)
        self.nets = dict.fromkeys(self.nets, 0)

    def sections(self) -> dict[str, Captured]:
        out = {"counters.clock": Captured(0, f"{self.uptime_s:.2f} {self.uptime_s * 19:.2f}\n{self.epoch_s:.9f}\n{self.boot}\n")}
        for f in self.functions:
            at = f"/sys/class/infiniband/{f.device}/ports/1"
            lines = [f"{at}/counters/{n}:{v}" for n, v in f.sysfs.items()]
            lines += [f"{at}/hw_counters/{n}:{v}" for n, v in f.hw.items()] + [f"{at}/hw_counters/lifespan:10"]
            out[f"counters.rdma[{f.device}]"] = Captured(0, "\n".join(lines) + "\n" + END)
            out[f"counters.ethtool[{f.interface}]"] = Captured(0, ethtool_text(f.ethtool))
        for name, n in self.nets.items():
            at = f"/sys/class/net/{name}/statistics"
            values = {"rx_bytes": n, "rx_packets": n // 90, "tx_bytes": n + 11, "tx_packets": n // 90 + 3}
            out[f"counters.net[{name}]"] = Captured(0, "".join(f"{at}/{k}:{v}\n" for k, v in values.items()) + END)
            out.setdefault(f"counters.ethtool[{name}]", Captured(0, ethtool_text({"rx_packets": n // 90, "tx_packets": n // 90})))
        rows = [{"ifindex": i, "ifname": f.device, "port": 1, **f.hw} for i, f in enumerate(self.functions)]
        out["counters.stat"] = Captured(0, json.dumps(rows) + "\n")
        return out


def ethtool_text(values: Mapping[str, int]) -> str:
    return "NIC statistics:\n" + "".join(f"     {n}: {v}\n" for n, v in values.items())
