"""What the NICs of a node have counted, as sysfs, ethtool and rdma show it. The numbers are the state's (`Function.counts`); traffic
moves them (wire.py), a boot clears them.

A function counts its own RDMA traffic; a cage counts everything that passes it, and each of its functions shows the cage's numbers.
The kernel's own traffic is what the interface itself counted (`Link`): it is in no RDMA counter. Sources: nic.md 4.3 to 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Function, Node
from fabrictool.lab.nodeside.tool import Link

FCS = 4  # bytes at a frame's end that only the port counts
WORD = 4  # bytes: the unit of port_xmit_data and port_rcv_data
Q_COUNTER = 1 << 32  # the queue counters have 32 bits and wrap

# on Ethernet most of them stay 0, link_downed too
PORT = ("port_xmit_wait", "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards")
QUEUE = (
    "rx_write_requests", "rx_read_requests", "rx_atomic_requests", "rx_dct_connect", "out_of_buffer", "out_of_sequence",
    "duplicate_request", "rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err",
    "resp_local_length_error", "resp_cqe_error", "req_cqe_error", "req_remote_invalid_request", "req_remote_access_errors",
    "resp_remote_access_errors", "resp_cqe_flush_error", "req_cqe_flush_error", "req_transport_retries_exceeded",
    "req_rnr_retries_exceeded", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps",
    "roce_slow_restart_trans")
CONGESTION = ("rp_cnp_ignored", "rp_cnp_handled", "np_ecn_marked_roce_packets", "np_cnp_sent", "rx_icrc_encapsulated")  # 64 bits

PLAIN = (
    "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_csum_complete", "rx_out_of_buffer",
    "rx_vport_unicast_packets", "rx_vport_unicast_bytes", "tx_vport_unicast_packets", "tx_vport_unicast_bytes",
    "rx_vport_rdma_unicast_packets", "rx_vport_rdma_unicast_bytes", "tx_vport_rdma_unicast_packets",
    "tx_vport_rdma_unicast_bytes", "tx_packets_phy", "rx_packets_phy", "rx_crc_errors_phy", "tx_bytes_phy",
    "rx_bytes_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_phy", "rx_symbol_err_phy", "rx_discards_phy",
    "tx_discards_phy", "tx_errors_phy", "link_down_events_phy", "rx_pcs_symbol_err_phy", "rx_corrected_bits_phy",
    "outbound_pci_stalled_wr", "outbound_pci_stalled_wr_events", "tx_pause_storm_warning_events",
    "tx_pause_storm_error_events")
PER_PRIORITY = ("rx_prio{}_bytes", "rx_prio{}_packets", "rx_prio{}_discards", "tx_prio{}_bytes", "tx_prio{}_packets")
PFC_ONLY = ("rx_prio{}_pause", "rx_prio{}_pause_duration", "tx_prio{}_pause", "tx_prio{}_pause_duration",
            "rx_prio{}_pause_transition")
PAUSE_ONLY = ("rx_global_pause", "rx_global_pause_duration", "tx_global_pause", "tx_global_pause_duration",
              "rx_global_pause_transition")
BUFFER = ("rx_prio{}_buf_discard", "rx_prio{}_cong_discard", "rx_prio{}_marked")


def add(fn: Function, name: str, number: int) -> None:
    fn.counts[name] = fn.counts.get(name, 0) + number


def count(fn: Function, name: str) -> int:
    return fn.counts.get(name, 0)


def port_counters(fn: Function) -> dict[str, int]:
    """ports/1/counters. RDMA of this function only."""
    found = {}
    for side, name in (("xmit", "tx"), ("rcv", "rx")):
        found[f"port_{side}_data"] = count(fn, f"{name}_bytes") // WORD
        found[f"port_{side}_packets"] = count(fn, f"{name}_packets")
        found[f"unicast_{side}_packets"] = count(fn, f"{name}_packets")
    return found | {name: count(fn, name) for name in PORT}


def hardware_counters(fn: Function) -> dict[str, int]:
    """ports/1/hw_counters without `lifespan`, which is a setting; the same in `rdma statistic`."""
    return {name: count(fn, name) % Q_COUNTER for name in QUEUE} | {name: count(fn, name) for name in CONGESTION}


def kernel_priority(fn: Function) -> int:
    """Of the kernel's own traffic, which is of DSCP 0 and carries no VLAN tag."""
    return fn.dscp_map[0] if fn.trust == "dscp" else 0


def cage(node: Node, fn: Function) -> list[Function]:
    """The functions of one cage, whether or not they share their settings."""
    return [f for f in node.functions.values() if (f.port, f.sys_image_guid) == (fn.port, fn.sys_image_guid)]


def statistics(node: Node, fn: Function, links: Mapping[str, Link]) -> Iterator[tuple[str, int]]:
    """`ethtool -S`, in the driver's order. Pause keys exist only while the pause they count is on."""
    known = _own(fn, links.get(fn.interface)) | _port(node, fn, links)
    names = [*PLAIN, *(n.format(p) for p in range(8) for n in PER_PRIORITY),
             *(n.format(p) for p in range(8) if fn.pfc[p] for n in PFC_ONLY),
             *(PAUSE_ONLY if any(driver.pause(fn)) else ()), *(n.format(p) for p in range(8) for n in BUFFER)]
    for name in names:
        yield name, known.get(name, 0)


def _own(fn: Function, link: Link | None) -> dict[str, int]:
    """The function's: what the kernel moved, and what RDMA moved."""
    found = {}
    for side in ("rx", "tx"):
        for unit in ("packets", "bytes"):
            by_kernel = getattr(link, f"{side}_{unit}") if link else 0
            found[f"{side}_{unit}"] = by_kernel
            found[f"{side}_vport_unicast_{unit}"] = by_kernel
            found[f"{side}_vport_rdma_unicast_{unit}"] = count(fn, f"{side}_{unit}")
    return found


def _port(node: Node, fn: Function, links: Mapping[str, Link]) -> dict[str, int]:
    """The cage's: summed over its functions, frames with their check sums."""
    found: dict[str, int] = {}

    def total(name: str, number: int) -> None:
        found[name] = found.get(name, 0) + number

    for f in cage(node, fn):
        for name, number in f.counts.items():
            if "prio" in name or name.endswith("_phy") or name.startswith(("tx_pause", "rx_global", "tx_global", "outbound")):
                total(name, number)
        for side in ("rx", "tx"):
            total(f"{side}_bytes_phy", sum(count(f, f"{side}_prio{p}_bytes") for p in range(8)))
            total(f"{side}_packets_phy", sum(count(f, f"{side}_prio{p}_packets") for p in range(8)))
            link = links.get(f.interface)
            if link is not None:
                packets = getattr(link, f"{side}_packets")
                size = getattr(link, f"{side}_bytes") + FCS * packets
                for name, number in ((f"{side}_bytes_phy", size), (f"{side}_packets_phy", packets),
                                     (f"{side}_prio{kernel_priority(f)}_bytes", size),
                                     (f"{side}_prio{kernel_priority(f)}_packets", packets)):
                    total(name, number)
    found["link_down_events_phy"] = max(f.flaps for f in cage(node, fn))
    return found
