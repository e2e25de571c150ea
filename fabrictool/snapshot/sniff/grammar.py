"""By which lines each kind of text is known. Patterns are matched at a line's start, on its first 4,096 characters.

`start`: lines that no other kind has. `once`: a line that stands once in one output, so that a second one begins another output.
`rest`: other lines that belong to it; None = any line does (a log, whose lines also interleave with other logs).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.snapshot.sniff.model import LOOK, Kind

TIME = r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
STACK_INDEX = r"#\d{1,4}\s"
IP4 = r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"
VARIABLES = r"(?:NCCL|GLOO|UCX|TP|NIXL|VLLM|SGLANG|CUTE_DSL|TORCH_NCCL|OMPI_MCA|CUDA_VISIBLE|MASTER|RDMAV|MLX5|GID)_[A-Z0-9_]+|HOST_IP"


@dataclass(frozen=True, slots=True)
class Grammar:
    kind: Kind
    start: str
    once: str = ""
    rest: str | None = None


_BLOCK = r"\s+\S"  # an indented line
# In order: the first kind whose `start` matches has the line.
GRAMMARS: tuple[Grammar, ...] = (
    Grammar(Kind.NCCL_LOG, rf"(?:\[?{TIME}\]? )?[\w.-]+:\d+:\d+ (?:\[[\d-]+\] )?(?:\S+:\d+ (?:\(\w+\) )?)?NCCL [A-Z]+ "
                           r"|NCCL version \d|NCCL (?:INFO|WARN) "),
    Grammar(Kind.ALLREDUCE, r"fabrictool-allreduce: rank \d|\{\"algbw_gbytes_per_s\": ?\d",
            once=r"fabrictool-allreduce: rank \d{1,7} on [^\s:]{1,255}: starting$|\{\"algbw_gbytes_per_s\":"),
    Grammar(Kind.NCCL_TESTS, r"# nccl-tests version |# Collective test |# nThread \d|#\s+Rank\s+\d+ (?:Group|Pid|on)|# Using devices"
                             r"|#?\s+size\s+count\s+type|# Out of bounds values|# Avg bus bandwidth|# Reducing maxBytes"
                             r"|# Writing JSON output|\S+: Test (?:NCCL|CUDA|MPI) failure |\S+: Test timeout "
                             r"| \.\. \S+ pid \d+: Test failure|USAGE: \w+_perf|Invalid number of GPUs: \d|invalid size specified for '"
                             r"|\s*\d+\s+\d+\s+(?:u?int\d+|float\d*|half|double|bfloat16|fp8\w*|f8\w*)\s+\w+\s"
                             r"|(?:mpirun|mpiexec|prterun|prun|srun|slurmstepd)(?: noticed|: )|Primary job {1,2}terminated"
                             r"|There are not enough slots available|(?:ORTE|PRTE|PMIX|PRRTE) (?:ERROR|was unable|has lost)",
            once=r"# nccl-tests version |# Collective test starting|# nThread \d"),
    Grammar(Kind.UCX, r"\[\d+\.\d+\] \[\S+:\d+ *:\d+\]|.{0,200}(?:\bUCX {1,2}(?:INFO|WARN|ERROR|DIAG|DEBUG)\b|\b(?:inter|intra)-node cfg#\d"
                      r"|\bep_cfg\[\d+\]: |\bNIXL\b.{0,80}\b(?:UCX|backend|agent|WARN|ERROR|INFO)|\bKV Transfer metrics: "
                      r"|\bNIXL_ERR_\w|no usable transports/devices|network device '\S+' is not available)"),
    Grammar(Kind.KERNEL, rf"(?:<\d+>)?\[ {{0,6}}\d{{1,8}}\.\d{{6}}\]|\[[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d \d{{4}}\] "
                         rf"|(?:<\d+>)?{TIME} \S+ kernel(?:\[\d+\])?: |\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{{6}}[+-]\d\d:\d\d "
                         r"|\{.{0,3000}\"(?:_TRANSPORT|SYSLOG_IDENTIFIER)\" ?: ?\"kernel\""
                         r"|(?:kernel: )?(?:NVRM: Xid|oom-kill:|Out of memory: Killed|Memory cgroup out of memory|mlx5_core [0-9a-f]{4}:)"),
    Grammar(Kind.MLNX_QOS, r"DCBX mode: |Priority trust (?:state|mode)|PFC configuration:?$|dscp2prio mapping:"
                           r"|Receive buffer size \(bytes\)|tc: \d ratelimit|Cable len: \d|default priority:$|\s+prio:\d dscp:"
                           r"|(?:Buffers commands|Rate limit|ETS features) (?:is|are) not supp|.{0,40}lldpad service is running"
                           r"|\s+enabled {3,}[01] {3}[01] ",
            once=r"DCBX mode: |Priority trust (?:state|mode)|PFC configuration",
            rest=r"\s+(?:priority|enabled|buffer|prio:)|\*|.*not supported on your system|Netlink error|Traceback|\s+File "
                 r"|\w*Error: |Command"),
    Grammar(Kind.DCB, r"pfc-cap \d|prio-pfc 0:|willing o|prio-tc 0:|dscp-prio \S|prio-buffer 0:|buffer-size 0:|tc-maxrate 0:|default-prio "
                      r"|Attribute (?:read|write|not found): ",
            rest=r"(?:[a-z]+-)+[a-z]+ |(?:host|lld_managed|cee|ieee|static)\b[ a-z_]*$|total-size|$"),
    Grammar(Kind.IBV_DEVINFO, r"hca_id:\s|No IB devices found|\s*(?:state|max_mtu|active_mtu):\s+(?:PORT_\w+|\d+) \(\d\)"
                              r"|\s+GID\[ *\d+\]:\s", rest=_BLOCK),
    Grammar(Kind.IBSTAT, r"CA '[\w.-]+'$", rest=_BLOCK),
    Grammar(Kind.SHOW_GIDS, r"DEV\s+PORT\s+INDEX\s+GID\b|n_gids_found=\d|[\w.-]+\s+\d+\s+\d+\s+(?:[0-9a-fA-F]{4}:){7}[0-9a-fA-F]{4}",
            once=r"DEV\s+PORT\s+INDEX", rest=r"-{3,}\s"),
    Grammar(Kind.IBDEV2NETDEV, r"\S+ port \d+ ==> \S+ \(\w+\)", rest="$"),
    Grammar(Kind.RDMA_LINK, r"(?:\d+/\d+: )?(?:link )?[\w.-]+/\d+:? .{0,80}\bstate \w+ physical_state ", rest="$"),
    Grammar(Kind.RDMA_STATISTIC, r"link [\w.-]+/\d+ [a-z_]+ \d+ ", rest=_BLOCK),
    Grammar(Kind.IP_TEXT, r"\d+: [\w.@-]+: <[A-Z0-9_,-]*> mtu \d|\d+: [\w.@-]+\s+inet6? \S+/\d"
                          r"|[\w.@-]+\s+(?:UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT)\s+(?:(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"
                          rf"|{IP4}/\d|[0-9a-f:]+/\d|$)", rest=_BLOCK),
    Grammar(Kind.ETHTOOL_STATS, r"NIC statistics:$"
                                r"|\s+(?:rx|tx)\w*_(?:phy|discards?|bytes|packets|pause\w*|prio\d\w*|dropped|errors?): \d+$",
            once="NIC statistics:", rest=r"\s+(?:\[\d+\]: )?\S+: -?\d+$|no stats available|Cannot get stats"),
    Grammar(Kind.ETHTOOL_PAUSE, r"Pause parameters for \S+:", once="Pause", rest=r"\s*(?:Autonegotiate|[RT]X(?: negotiated)?):\s"),
    Grammar(Kind.ETHTOOL, r"Settings for \S+:$", rest=_BLOCK),
    Grammar(Kind.SOCKETS, r"(?:Netid\s+)?State\s+Recv-Q|Recv-Q\s+Send-Q\s+Local|(?:tcp\s+)?(?:ESTAB|SYN-SENT|SYN-RECV|LISTEN|TIME-WAIT"
                          r"|CLOSE-WAIT|FIN-WAIT-\d|LAST-ACK|CLOSING)\s+\d+\s+\d+\s+\S|tcp6?\s+\d+\s+\d+\s+\S+:\S+\s+\S+:\S+\s+[A-Z_12]+",
            rest=r"\d+\s+\d+\s+\S+:\S+\s+\S+:\S+|\s+\S|Proto Recv-Q|Active Internet"),
    Grammar(Kind.HOSTS, rf"\s*(?:{IP4}|::1|f[ef][0-9a-f]{{2}}::\S{{0,40}}|[0-9a-f]{{1,4}}:[0-9a-f:]{{2,40}})"
                        r"(?:[ \t]+(?!(?:dev|via|ether|proto|scope|lladdr)\b)[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9_])?){1,64}"
                        r"[ \t]*(?:#.*)?$", rest="#"),
    Grammar(Kind.NETPLAN, r"network:\s*(?:\{.*|#.*)?$", rest=r"\s+\S|#|\}"),
    Grammar(Kind.NM_KEYFILE, r"\[connection\]$", once=r"\[connection\]", rest=r"\[[\w-]+\]$|[\w.-]+=|#"),
    Grammar(Kind.NETWORKD, r"\[(?:Match|Network|Link)\]$", once=r"\[Match\]", rest=r"\[\w+\]$|\w+=|[#;]"),
    Grammar(Kind.PY_SPY, r"Process \d+: |Python v\d+\.\d|Thread (?:0x)?[0-9A-Fa-f]+ \((?:active|idle)"
                         r"|Error: Failed to get process executable name|Permission Denied: Try running again with elevated permissions",
            once="Process |Error: Failed|Permission Denied:", rest=r"\s+\S|Thread |Caused by:|Stack backtrace:|Reason: "),
    Grammar(Kind.FAULTHANDLER, r"Timeout \((?:\d{1,4} days?, )?\d{1,3}:\d\d:\d\d(?:\.\d{1,6})?\)!$"
                               r"|(?:Current thread|Thread) 0x[0-9A-Fa-f]{1,16} .{0,120}\(most recent call first\):$",
            once=r"Timeout \(", rest=r"\s+\S|(?:Current thread|Thread) "),
    Grammar(Kind.GDB, rf"{STACK_INDEX}+(?:0x[0-9a-f]+\b|[\w:~<>]+.* \()|Thread \d+ \((?:Thread 0x|LWP|process)|\[New LWP \d"
                      r"|PID \d+ - |TID \d+:", rest=r"\s+\S|#\d|\[|warning:|Thread|Using host"),
    Grammar(Kind.UCX_INFO, r"# Memory domain: |#\s+Transport: |#\s+Device: |#\s+Component: ", rest="#"),
    Grammar(Kind.PERFTEST, r"\s+(?:RDMA_Write|RDMA_Read|Send|Write|Read|Atomic\w*|Raw\w*) .{0,40}(?:BW|Latency|Lat) ?.{0,20}Test"
                           r"|\s#bytes\s+#iterations|\s*Unable to find the Infiniband/RoCE device"
                           r"|\s?Couldn't (?:connect to|allocate MR|create IB|listen)|IB device \S+ not found"
                           r"|\s?Failed to (?:modify QP|create MR|status)|\s?Found Incompatibility issue with GID"
                           r"|\s?Unable to (?:init the socket|open file descriptor)|\s?Completion with error|failed to create mr"
                           r"|\s?Conflicting CPU frequency|\* Waiting for client to connect|test_info: \{$",
            rest=r"-{20,}|\s|\*|[a-zA-Z]+ QP|Please|[\w ]+: .*,$|results: \{$|\}|$"),
    Grammar(Kind.NVIDIA_TOPO, r"\s+GPU0\s+(?:GPU\d|NIC\d|CPU Affinity|mlx5_)|(?:GPU|NIC)\d{1,4}\s+(?:X|SYS|NODE|PHB|PXB|PIX|NV\d{1,3})\s",
            once=r"\s+GPU0\s", rest=r"\s+\S|(?:NIC )?Legend:$|\S+\s+(?:SYS|NODE|PHB|PXB|PIX)\s|$"),
    Grammar(Kind.NVIDIA_SMI, r"={10,}NVSMI LOG={10,}$|\| NVIDIA-SMI \d|\+-{89}\+$|NVIDIA-SMI has failed because|No devices were found$"
                             r"|GPU \d{1,3}: .{1,80} \(UUID: GPU-"
                             r"|(?=.*(?:uuid|pci\.|memory\.|_version|gpu))(?:index|name|uuid|timestamp|gpu_name|pci\.bus_id|driver_version)"
                             r"(?:, [a-z_.]{3,60}(?: \[[^\]]{1,9}\])?)+$", rest=r"\s|\||\+|GPU |[A-Z][\w ]{1,40} +: |\d+, |NVIDIA |$"),
    Grammar(Kind.PING, r"PING \S+ ?\(\S+\)|(?:ping6?|connect): (?:local error: |\S+: (?:Name or service|Temporary failure))"
                       r"|From \S+(?: \(\S+\))?:? icmp_seq=\d+ |\d+ bytes from \S+.{0,80}: icmp_seq=\d+|--- \S+ ping statistics ---"
                       r"|\d+ packets transmitted, \d+ ", once="PING ", rest=r"rtt |round-trip |Request timeout|ping6?: |$"),
    Grammar(Kind.PROGRAM, r".{0,300}(?:Gloo connectFullMesh|timed out connecting: SO_ERROR"
                          r"|Unable to resolve hostname to a \(local\) address|Unable to find address for: |\[c10d\]|torch\.distributed"
                          r"|ProcessGroupNCCL|ProcessGroupGloo|TCPStore|shm_broadcast|torch\.OutOfMemoryError|CUDA out of memory"
                          r"|torch\.cuda\.OutOfMemoryError|NCCL error|DistBackendError|Watchdog caught)"
                          r"|ModuleNotFoundError: No module named '"
                          r"|Traceback \(most recent call last\)"),
    Grammar(Kind.ENV, rf"(?:export\s+|declare -x |Environment=\"?|-e ?|\s+-\s+)?(?:{VARIABLES})\s*=|\[Service\]$"
                   rf"|\s*-\s+name:\s+[\"']?(?:{VARIABLES})[\"']?$",
            rest=r"(?:export\s+|declare -x )?[A-Za-z_]\w*=|#|Environment|EnvironmentFile|\[\w+\]$|\w+=|\s+-\s+[A-Z_0-9]+="
                 r"|\s*-\s+name:\s|\s+value:"),
    Grammar(Kind.NCCL_LOG, r".{0,300}\bNCCL (?:INFO|WARN) |.{0,300}\bvia NET/\w|NET/(?:IB|Socket) ?: "),
    # Shortened stamps, dmesg -d, -H and -e. Last, because other programs stamp their lines alike.
    Grammar(Kind.KERNEL, r"(?:<\d+>)?\[(?: {0,6}\d{1,8}\.\d{3,9}(?: <[ +\d.]{3,24}>)?| {0,9}\+\d{1,9}\.\d{3,9}"
                         r"|[A-Z][a-z]{2} {0,2}\d{1,2} \d\d:\d\d"
                         r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} <[ +\d.]{3,24}>)\] \S"),
)
LOGS = frozenset(g.kind for g in GRAMMARS if g.rest is None)
# Kinds whose lines stand inside another kind's output without ending it.
INSIDE: dict[Kind, frozenset[Kind]] = {
    Kind.NCCL_TESTS: frozenset({Kind.NCCL_LOG}),
    Kind.ALLREDUCE: frozenset({Kind.PROGRAM, Kind.FAULTHANDLER}),
    Kind.IBV_DEVINFO: frozenset({Kind.SHOW_GIDS}),
    Kind.NETWORKD: frozenset({Kind.ENV}),
    Kind.PY_SPY: frozenset({Kind.PROGRAM, Kind.GDB}),
    Kind.GDB: frozenset({Kind.PROGRAM, Kind.PY_SPY}),
}

_START = re.compile("|".join(f"(?P<k{i}>{g.start})" for i, g in enumerate(GRAMMARS)))
_ONCE: dict[Kind, re.Pattern[str]] = {g.kind: re.compile(g.once) for g in GRAMMARS if g.once}
_REST: dict[Kind, re.Pattern[str]] = {g.kind: re.compile(g.rest) for g in GRAMMARS if g.rest is not None}


def start(line: str) -> Kind | None:
    """The kind that has lines like this one, and no other kind."""
    m = _START.match(line[:LOOK])
    return GRAMMARS[int((m.lastgroup or "k0")[1:])].kind if m else None


def once(kind: Kind, line: str) -> str:
    """The part of the line that one output of this kind has only once; ""."""
    m = _ONCE[kind].match(line[:LOOK]) if kind in _ONCE else None
    return m[0] if m else ""


def goes_on(kind: Kind, line: str) -> bool:
    """Whether a line that begins nothing may belong to what is going on."""
    if kind in LOGS or kind is Kind.UNKNOWN or not line.strip():
        return True
    return kind in _REST and _REST[kind].match(line[:LOOK]) is not None
