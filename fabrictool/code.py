"""Every code there is."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """AREA_WHAT, never renamed: users script against these."""

    # link, ports
    LINK_MTU_RUNNING = "LINK_MTU_RUNNING"
    LINK_MTU_PERSISTED = "LINK_MTU_PERSISTED"
    LINK_MTU_RANGE = "LINK_MTU_RANGE"  # the device or its parent cannot take the wanted MTU
    LINK_TWO_OWNERS = "LINK_TWO_OWNERS"
    LINK_NO_OWNER = "LINK_NO_OWNER"  # nothing would set the interface up after a reboot
    LINK_OWNER_UNSUPPORTED = "LINK_OWNER_UNSUPPORTED"
    LINK_DHCP_PROFILE = "LINK_DHCP_PROFILE"
    LINK_DOWN = "LINK_DOWN"
    LINK_ABSENT = "LINK_ABSENT"  # the interface or RDMA device of the spec is not on the node
    LINK_SPEED = "LINK_SPEED"
    LINK_BINDING = "LINK_BINDING"  # selectors of one function point at different devices
    NIC_DEGRADED = "NIC_DEGRADED"
    PCIE_WIDTH = "PCIE_WIDTH"
    PATH_MTU_HOLE = "PATH_MTU_HOLE"
    MGMT_PATH = "MGMT_PATH"
    FABRIC_IN_USE = "FABRIC_IN_USE"
    ARP_FLUX = "ARP_FLUX"  # two rails in one subnet and the kernel answers for both
    # qos
    QOS_TRUST = "QOS_TRUST"
    QOS_DSCP_MAP = "QOS_DSCP_MAP"
    QOS_PFC_MASK = "QOS_PFC_MASK"
    QOS_PFC_WRONG_PRIORITY = "QOS_PFC_WRONG_PRIORITY"
    QOS_SHARED_TC = "QOS_SHARED_TC"
    QOS_BUFFER = "QOS_BUFFER"
    QOS_GLOBAL_PAUSE = "QOS_GLOBAL_PAUSE"
    QOS_NOT_PERSISTED = "QOS_NOT_PERSISTED"
    QOS_OTHER_OWNER = "QOS_OTHER_OWNER"
    QOS_LLDPAD = "QOS_LLDPAD"
    QOS_FW_DCBX = "QOS_FW_DCBX"
    QOS_READERS_DISAGREE = "QOS_READERS_DISAGREE"
    QOS_UNSUPPORTED = "QOS_UNSUPPORTED"  # VF, SF, bond, VLAN: no DCB here
    QOS_ECN = "QOS_ECN"
    # rdma
    RDMA_ABSENT = "RDMA_ABSENT"
    RDMA_DOWN = "RDMA_DOWN"
    RDMA_RATE = "RDMA_RATE"
    RDMA_LINK_LAYER = "RDMA_LINK_LAYER"
    RDMA_ACTIVE_MTU = "RDMA_ACTIVE_MTU"
    RDMA_TCLASS_OVERRIDE = "RDMA_TCLASS_OVERRIDE"
    RDMA_READERS_DISAGREE = "RDMA_READERS_DISAGREE"  # sysfs and `rdma link` tell different states
    NO_ROCEV2_GID = "NO_ROCEV2_GID"
    # env
    GID_PINNED = "GID_PINNED"
    GID_NOT_AUTOMATIC = "GID_NOT_AUTOMATIC"  # the consumer's NCCL is older than 2.21
    ENV_FILE_DRIFT = "ENV_FILE_DRIFT"
    ENV_LINT = "ENV_LINT"
    ENV_NO_SUCH_INTERFACE = "ENV_NO_SUCH_INTERFACE"
    ENV_RESTART_NEEDED = "ENV_RESTART_NEEDED"
    ENV_DEBUG_LEFT_ON = "ENV_DEBUG_LEFT_ON"
    ENV_OVERRIDE = "ENV_OVERRIDE"  # a place with precedence sets another value
    ENV_CUDA_ARCH = "ENV_CUDA_ARCH"
    # names
    NAME_LOOPBACK = "NAME_LOOPBACK"
    NAME_DIFFERS = "NAME_DIFFERS"
    NAME_TEMPLATE = "NAME_TEMPLATE"  # a template would undo the repair at the next boot
    NAME_MDNS = "NAME_MDNS"
    GLOO_LOOPBACK = "GLOO_LOOPBACK"
    # collective: what an AllReduce and its logs show
    TCP_FALLBACK = "TCP_FALLBACK"
    SINGLE_RAIL = "SINGLE_RAIL"  # one of N
    RAIL_IDLE = "RAIL_IDLE"  # some
    LOW_BUSBW = "LOW_BUSBW"
    WRONG_RESULT = "WRONG_RESULT"
    RANK_DIED = "RANK_DIED"
    INIT_HANG = "INIT_HANG"
    RUN_TIMEOUT = "RUN_TIMEOUT"  # a run that had begun did not end within its limit
    LOG_MISSING = "LOG_MISSING"
    NO_RESULT = "NO_RESULT"
    RESULT_UNPARSED = "RESULT_UNPARSED"  # a result row that is cut or not understood
    RESULT_STALE = "RESULT_STALE"  # a result file older than the run
    SIZE_REDUCED = "SIZE_REDUCED"  # the requested size was not run
    SINGLE_NODE = "SINGLE_NODE"
    TRANSPORT_UNKNOWN = "TRANSPORT_UNKNOWN"
    GDR_MISSING = "GDR_MISSING"
    SHM_ON_NVLINK = "SHM_ON_NVLINK"
    NCCL_NO_INTERFACE = "NCCL_NO_INTERFACE"
    NCCL_NO_DEVICE = "NCCL_NO_DEVICE"
    NCCL_WRONG_INTERFACE = "NCCL_WRONG_INTERFACE"  # bootstrap by way of docker, Wi-Fi, link-local ... or differing between ranks
    NCCL_BAD_SETTING = "NCCL_BAD_SETTING"
    NCCL_MIXED = "NCCL_MIXED"  # versions, device counts or GIDs differ between ranks
    RDMA_CONNECT = "RDMA_CONNECT"  # a queue pair could not reach its peer
    RDMA_RETRY_EXCEEDED = "RDMA_RETRY_EXCEEDED"
    RDMA_MEMORY = "RDMA_MEMORY"  # memory could not be registered
    TOO_FEW_GPUS = "TOO_FEW_GPUS"
    BAD_ARGUMENT = "BAD_ARGUMENT"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    GPU_BUSY = "GPU_BUSY"
    LEFT_BEHIND = "LEFT_BEHIND"
    ENV_NOT_PROPAGATED = "ENV_NOT_PROPAGATED"
    BOOTSTRAP_BLOCKED = "BOOTSTRAP_BLOCKED"
    BASELINE_LOW = "BASELINE_LOW"  # worse than the fleet's own recorded baseline
    GLOO_CONNECT = "GLOO_CONNECT"
    NIXL_TCP = "NIXL_TCP"
    UCX_NO_DEVICE = "UCX_NO_DEVICE"
    # counters
    COUNTERS_FLAT = "COUNTERS_FLAT"
    COUNTERS_SHORT = "COUNTERS_SHORT"  # fewer bytes than the collective must have sent
    COUNTERS_INVALID = "COUNTERS_INVALID"  # a device was reset between the two readings
    FOREIGN_TRAFFIC = "FOREIGN_TRAFFIC"
    STRAY_RDMA = "STRAY_RDMA"  # a device that is no rail carried bytes
    PACKET_LOSS = "PACKET_LOSS"
    PRIORITY_WRONG = "PRIORITY_WRONG"
    CONTROL_MOVED = "CONTROL_MOVED"  # RDMA counters moved in a run over sockets
    # system
    VERSIONS_DIFFER = "VERSIONS_DIFFER"
    MEMLOCK = "MEMLOCK"
    OOM_KILLED = "OOM_KILLED"
    GPU_XID = "GPU_XID"
    LINK_EVENTS = "LINK_EVENTS"
    STORAGE_ERROR = "STORAGE_ERROR"
    STORAGE_TIMEOUT = "STORAGE_TIMEOUT"
    HUNG_TASK = "HUNG_TASK"
    PEER_MEMORY = "PEER_MEMORY"  # GPUDirect's kernel side is missing or hindered
    RANK_HANGS = "RANK_HANGS"
    NOTHING_KNOWN = "NOTHING_KNOWN"  # diagnose found nothing that it knows
    # reading and reaching
    TOOL_MISSING = "TOOL_MISSING"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    NEEDS_ROOT = "NEEDS_ROOT"
    UNREADABLE = "UNREADABLE"
    NO_EVIDENCE = "NO_EVIDENCE"  # a judge said nothing at all
    HOST_KEY_CHANGED = "HOST_KEY_CHANGED"
    HOST_KEY_UNKNOWN = "HOST_KEY_UNKNOWN"
    LOGIN_REFUSED = "LOGIN_REFUSED"
    INTERRUPTED = "INTERRUPTED"
    APPLY_STOPPED = "APPLY_STOPPED"  # a node was not touched because an earlier one went wrong
    APPLY_FAILED = "APPLY_FAILED"  # a write did not read back
    UNREACHABLE = "UNREACHABLE"
    BLOCKED = "BLOCKED"  # another finding stands in the way; `why` names it
    LOCKED = "LOCKED"
    SPEC_NOT_ACTED_ON = "SPEC_NOT_ACTED_ON"
    BUG = "BUG"


RESERVED: frozenset[Code] = frozenset()
"""Codes whose meaning stands and that nothing raises yet."""
