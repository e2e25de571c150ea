"""Symptoms of the verbs layer in NCCL's logs: queue pairs, completions, memory, events. Patterns: nccl.md 2.3."""

from __future__ import annotations

import re
from ipaddress import ip_network

from fabrictool.collective.symptom_model import Rule, Told, Weight, rule
from fabrictool.model import Code

# Status numbers of enum ibv_wc_status.
LOCAL_PROTECTION, FLUSHED, REMOTE_ACCESS, RETRY_EXCEEDED, RNR_EXCEEDED = 4, 5, 10, 12, 13
VENDOR_FLUSHED = 249  # mlx5: the queue pair was already in error
_QP = re.compile(r"Call to ibv_modify_qp failed with (?:error )?(?:(?P<errno>[0-9]{1,3}) )?(?P<what>[A-Za-z][A-Za-z0-9 ]{0,60}?)"
                 r"(?: errno (?P<late>[0-9]{1,3}))?(?P<rest>(?:,|\s*$| retrying|[.;:'(]).{0,400})")
_ON = re.compile(r"on dev (\S{1,64}?):([0-9]{1,3})\b")
_GIDS = re.compile(r"local GID (?:index -?[0-9]{1,4}, local GID )?(?P<local>[0-9A-Fa-f:.]{2,45}), "
                   r"remote GID (?P<remote>[0-9A-Fa-f:.]{2,45})")
_MAPPED = re.compile(r"::ffff:([0-9]{1,3}(?:\.[0-9]{1,3}){3})")
_ERRNO = {"Connection timed out": 110, "Invalid argument": 22, "Network is unreachable": 101, "No such device": 19}
_WC = re.compile(r"Got completion (?:from peer (?P<peer>\S{1,80}) )?with (?:error |status=)(?:IBV_WC_[A-Z_]{1,40}\()?"
                 r"(?P<status>[0-9]{1,3})\b(?P<rest>.{0,400})")
_VENDOR = re.compile(r"vendor[ _]err[ =]([0-9]{1,5})")
_MEMORY = re.compile(r"(?P<call>ibv_(?:create_(?:qp|cq)|alloc_pd|reg_(?:mr|dmabuf_mr)\w{0,16}))\b.{0,40}?failed(?P<rest>.{0,300})")
PEERMEM = "load nvidia_peermem or use dma-buf; switch ACS and the IOMMU's translation off; NCCL_NET_GDR_LEVEL=LOC shows whether it is that"


def _subnets(rest: str) -> str:
    """What the two GIDs of a failed queue pair say."""
    m = _GIDS.search(rest)
    if not m:
        return ""
    pair = [_MAPPED.fullmatch(m[side]) for side in ("local", "remote")]
    if not all(pair):
        return f" (local GID {m['local']}, remote GID {m['remote']})"
    a, b = (p[1] for p in pair if p)
    try:
        other = ip_network(f"{a}/24", strict=False) != ip_network(f"{b}/24", strict=False)
    except ValueError:
        return ""
    return f" ({a} and {b} look like {'different rails' if other else 'one rail'})"


def _queue_pair(m: re.Match[str]) -> Told:
    what = m["what"].strip()
    errno = int(m["errno"] or m["late"] or 0) or next((n for text, n in _ERRNO.items() if what.startswith(text)), 0)
    on = _ON.search(m["rest"])
    where = f" on {on[1]}" if on else ""
    weight = Weight.RETRY if "retrying" in m["rest"] else Weight.CAUSE
    if errno == 22:
        return Told(Code.RDMA_CONNECT, f"a queue pair{where} was refused (invalid argument): NCCL_IB_GID_INDEX points at an empty or wrong "
                    "entry", "unset NCCL_IB_GID_INDEX on NCCL 2.21 and later; look at "
                    "`fabrictool check gids -i INVENTORY`", weight)
    if errno == 101:
        return Told(Code.RDMA_CONNECT, f"no route from the GID{where}: link-local, IPv6 without a route, or the interface has no address"
                    + _subnets(m["rest"]), "give the device's interface its address, or leave the device out of NCCL_IB_HCA", weight)
    if errno == 19:
        return Told(Code.RDMA_CONNECT, f"the GID{where} vanished: its interface went down or lost its address",
                    "look at link state, bond and the kernel log of the node", weight)
    if errno == 110:
        return Told(Code.RDMA_CONNECT, f"a queue pair{where} found no way to its peer{_subnets(m['rest'])}: crossed rails or cables, "
                    "different subnets, or a neighbour that answers on the wrong interface",
                    "compare the subnets of both GIDs; NCCL_CROSS_NIC=0 where rails do not reach each other; "
                    "`fabrictool check path_mtu -i INVENTORY`",
                    weight)
    return Told(Code.RDMA_CONNECT, f"a queue pair{where} could not be set up ({what})", "`fabrictool check rdma gids -i INVENTORY`",
                weight)


def _completion(m: re.Match[str]) -> Told:
    status, vendor = int(m["status"]), _VENDOR.search(m["rest"])
    peer = f" towards {m['peer']}" if m["peer"] else ""
    if status == FLUSHED or (vendor and int(vendor[1]) == VENDOR_FLUSHED):
        return Told(Code.RDMA_RETRY_EXCEEDED, "flushed because its queue pair had failed before", "look for the first error, on any rank",
                    Weight.AFTER)
    if status == RETRY_EXCEEDED:
        return Told(Code.RDMA_RETRY_EXCEEDED, f"packets{peer} were not acknowledged. At once: the RoCE path is dead (GID, VLAN, MTU, "
                    "access list). After minutes: drops (no PFC or ECN, wrong traffic class), a flap, or the peer died",
                    "`fabrictool check path_mtu rdma_counters -i INVENTORY`; look at "
                    "local_ack_timeout_err, out_of_sequence and discards, and at the peer's log")
    if status == RNR_EXCEEDED:
        return Told(Code.RDMA_RETRY_EXCEEDED, f"the receiver{peer} posted no buffer in time: it hangs or died",
                    "look at the peer's own log")
    if status in (LOCAL_PROTECTION, REMOTE_ACCESS):
        return Told(Code.RDMA_MEMORY, "the NIC may not touch the memory that it was given: ACS or IOMMU with GPUDirect, or a stale "
                    "registration", PEERMEM)
    return Told(Code.RDMA_CONNECT, f"a transfer{peer} ended with verbs status {status}", "look at the kernel log of both nodes")


def _memory(m: re.Match[str]) -> Told | None:
    if "Bad address" in m["rest"] and "reg_" in m["call"]:
        return Told(Code.RDMA_MEMORY, f"{m['call']}: GPU memory could not be registered with the NIC", PEERMEM)
    return Told(Code.RDMA_MEMORY, f"{m['call']} failed: memory could not be locked or registered",
                "ulimit -l unlimited (container: --ulimit memlock=-1); on GB10 a kernel with CmaTotal above 0 kB in /proc/meminfo")


def _event(m: re.Match[str]) -> Told:
    return Told(Code.LINK_EVENTS, f"the RDMA device reported: {m[1].strip()}", "look at the port's counters, cable and switch port, "
                "and at `fabrictool check kernel_log -i INVENTORY`")


RULES: tuple[Rule, ...] = (
    Rule(("ibv_modify_qp failed",), _QP, _queue_pair),
    Rule(("Got completion",), _WC, _completion),
    Rule(("ibv_create_", "ibv_reg_", "ibv_alloc_pd"), _MEMORY, _memory),
    Rule(("Got async event",), re.compile(r"Got async event ?: (port error|device fatal|[a-z ]{0,40}catastrophic[a-z ]{0,40})"), _event),
    rule(r"Got async (?:fatal )?event ?: (?:IBV_EVENT_)?(?:PORT_ERR|DEVICE_FATAL)", Code.LINK_EVENTS, "the RDMA device reported that its "
         "port or itself failed", "look at the port's counters, cable and switch port, and at "
         "`fabrictool check kernel_log -i INVENTORY`", "Got async"),
)
