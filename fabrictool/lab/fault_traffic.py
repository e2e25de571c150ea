"""Faults that show in traffic: a collective, its counters, its log. Most of them leave nothing that a look at the node would find."""

from __future__ import annotations

from collections.abc import Callable

from fabrictool.lab.errors import LabError
from fabrictool.lab.fault_host import DOCKER_ENV, NCCL_CONF, replaced
from fabrictool.lab.fault_kit import Apply, Fault, LabLike, Scope, first, fixed, on_functions, sh, stuck, targets, unseen
from fabrictool.lab.nodeside.state import Function, Node
from fabrictool.lab.paths import INSIDE
from fabrictool.lab.seen import seen
from fabrictool.lab.toolbox import python_inside

SMALL_MTU = 1500  # bytes
DEGRADED_GBIT = 13  # what such ports were seen to carry (dgx-spark-playbooks pull request 108)
LOST_PER_MILLION = 2000
FAST_TCP_GBYTES = 21.9  # GB/s: a fallback that passes every threshold made for RDMA on a 200G port
WRONG_ELEMENTS = 12
CALLS_TO_LIVE = 20  # collectives until the kernel is out of memory


def on_node(change: Callable[[Node], None]) -> Apply:
    """A fault that is a change of the node's state."""
    def apply(lab: LabLike, node: str, function: str) -> None:
        with lab.edit_state(node) as state:
            change(state)
    return apply


def _set(name: str, value: object) -> Apply:
    return on_node(lambda state: setattr(state, name, value))


def _functions(name: str, value: object) -> Apply:
    return on_functions(lambda state, fn: setattr(fn, name, value))


def lossy(lab: LabLike, node: str, function: str) -> None:
    """On the way to one function."""
    with lab.edit_state(node) as state:
        for fn in targets(state, function, Scope.FUNCTION):
            fn.lost_per_million = LOST_PER_MILLION


def no_verbs(lab: LabLike, node: str, function: str) -> None:
    """ib_uverbs is not loaded: nothing can open an RDMA device."""
    sh(lab, node, "rm -rf /dev/infiniband")


def no_verbs_anywhere(lab: LabLike, node: str, function: str) -> None:
    for name in lab.nodes:
        no_verbs(lab, name, "")


def fast_sockets(lab: LabLike, node: str, function: str) -> None:
    """The same, on CPUs that nearly fill the port with TCP."""
    no_verbs_anywhere(lab, node, function)
    for name in lab.nodes:
        with lab.edit_state(name) as state:
            state.tcp_gbytes = FAST_TCP_GBYTES


def misnamed(lab: LabLike, node: str, function: str) -> None:
    """Somebody copied the files of another machine's NCCL settings: whatever gives ranks their environment."""
    files = [(p, text) for p in (NCCL_CONF, DOCKER_ENV) if (text := lab.read_file(node, p)) is not None]
    if not files:
        raise LabError(f"{node}: there is no NCCL file: apply the spec first")
    for path, text in files:
        lab.write_file(node, path, replaced(text, "NCCL_IB_HCA", "mlx5_77"))


def far_rail(lab: LabLike, node: str, function: str) -> None:
    """On every node the rail's adapter is so far from the GPU that NCCL lays no path over it, though it lists the adapter."""
    rail = first(lab, node, function).rail
    for name in lab.nodes:
        with lab.edit_state(name) as state:
            for fn in state.functions.values():
                fn.far = fn.far or fn.rail == rail


def degraded(state: Node, fn: Function) -> None:
    """The port came up badly: link, PCIe and every register look fine."""
    fn.degraded_gbit = DEGRADED_GBIT


def pair_hole(lab: LabLike, node: str, function: str) -> None:
    """Between this node and the next one only."""
    names = lab.nodes
    if len(names) < 2:
        raise LabError("a hole between two nodes needs two of them")
    other = names[(names.index(node) + 1) % len(names)]
    lab.pair_mtu(first(lab, node, function).rail, node, other, SMALL_MTU)


def background(lab: LabLike, node: str, command: str) -> int:
    """A process that stays, as root. Its number in the node."""
    out = sh(lab, node, f"{command} </dev/null >/dev/null 2>&1 &\necho $!")
    if not out.strip().isdigit():
        raise LabError(f"{node}: the process did not start: {out.strip()[:100]}")
    return int(out)


def foreign(lab: LabLike, node: str, function: str) -> None:
    """Another program of the node sends and receives over RDMA all the time."""
    script = f"{INSIDE}/lib/fabrictool/lab/nodeside/nccl/stream.py"
    device = first(lab, node, function).rdma
    background(lab, node, f"LD_LIBRARY_PATH={INSIDE}/python/lib {python_inside()} -I -S {script} {device}")


def _gpu_program(name: str, kind: str, memory_mib: int) -> Apply:
    """A program that uses the node's GPU: a real process."""
    def apply(lab: LabLike, node: str, function: str) -> None:
        pid = background(lab, node, "sleep 1000000")
        with lab.edit_state(node) as state:
            state.compute.append({"pid": pid, "name": name, "kind": kind, "memory_mib": memory_mib, "gpu": 0})
    return apply


UNCOUNTED = {"rdma_counters": "?BLOCKED@fleet", "lossless_priority": "?BLOCKED@fleet"}  # the run came to no good end
FELL_BACK = {"allreduce": "TCP_FALLBACK@fleet NCCL_NO_DEVICE@each-node COUNTERS_FLAT@each-node",
             "rdma_counters": "COUNTERS_FLAT@each-node", "lossless_priority": "?BLOCKED@each-node"}
APART = "NCCL_MIXED@node NCCL_NO_DEVICE@node INIT_HANG@fleet"

TRAFFIC_FAULTS: tuple[Fault, ...] = (
    Fault("tcp-fallback", "no RDMA device can be opened on any node (/dev/infiniband is missing): NCCL takes sockets", no_verbs_anywhere,
          unseen(), Scope.FLEET, traffic=seen(**FELL_BACK | {"allreduce": FELL_BACK["allreduce"] + " LOW_BUSBW@fleet"})),
    Fault("tcp-fast", "as tcp-fallback, but sockets are nearly as fast as RDMA", fast_sockets, unseen(), Scope.FLEET,
          traffic=seen(**FELL_BACK)),
    Fault("verbs-missing", "no RDMA device can be opened on one node: it takes sockets while its peers take RDMA", no_verbs,
          unseen(), traffic=seen(allreduce=APART, **UNCOUNTED)),
    Fault("hca-misnamed", "the NCCL files name an RDMA device that the node does not have", misnamed, fixed("ENV_FILE_DRIFT"),
          traffic=seen(allreduce=f"{APART} ENV_NOT_PROPAGATED@node", **UNCOUNTED)),
    Fault("rail-idle", "NCCL lays no path over one rail: its adapters are far from the GPUs", far_rail, unseen(), Scope.RAIL,
          traffic=seen(allreduce="SINGLE_RAIL@each-node SINGLE_RAIL@each-node-rail LOW_BUSBW@fleet",
                       rdma_counters="SINGLE_RAIL@each-node-rail")),
    Fault("nic-13g", "the port carries 13 Gb/s, and everything about it looks fine", on_functions(degraded), unseen(), Scope.FUNCTIONS,
          traffic=seen(allreduce="LOW_BUSBW@fleet", rails="NIC_DEGRADED@fleet")),
    Fault("counters-frozen", "the firmware does not count RDMA traffic", _functions("frozen", True), unseen(), Scope.FUNCTIONS,
          traffic=seen(allreduce="COUNTERS_FLAT@node", rdma_counters="COUNTERS_FLAT@node", lossless_priority="?BLOCKED@node")),
    Fault("wrong-priority", "queue pairs get traffic class 0, whatever is asked for", _functions("ignores_class", True), unseen(),
          Scope.FUNCTIONS, traffic=seen(lossless_priority="PRIORITY_WRONG@port ~PRIORITY_WRONG@next-node-port")),
    Fault("packets-lost", "some RDMA packets do not reach the node", lossy, unseen(), Scope.FUNCTION,
          traffic=seen(allreduce="PACKET_LOSS@function PACKET_LOSS@previous-node-function",
                       rdma_counters="PACKET_LOSS@function PACKET_LOSS@previous-node-function")),
    Fault("wrong-result", "the GPU computes wrong sums", _set("wrong_elements", WRONG_ELEMENTS), unseen(),
          traffic=seen(allreduce="WRONG_RESULT@fleet")),
    Fault("rank-dead", "the kernel kills the rank: the node is out of memory", _set("kills_after", CALLS_TO_LIVE), unseen(),
          traffic=seen(allreduce="RANK_DIED@node", **UNCOUNTED)),
    Fault("init-hang", "a program that asks for the GPU waits for ever", _set("gpu_ok", False), unseen(),
          traffic=seen(allreduce="INIT_HANG@node", **UNCOUNTED)),
    Fault("mtu-hole-pair", "between this node and the next one the switch passes 1500 bytes only", pair_hole, unseen(), Scope.FUNCTION,
          traffic=seen(
              allreduce="RDMA_RETRY_EXCEEDED@node* RDMA_RETRY_EXCEEDED@next-node* PACKET_LOSS@function* PACKET_LOSS@next-node-function*",
              rdma_counters="PACKET_LOSS@function* PACKET_LOSS@next-node-function* ?BLOCKED@fleet",
              lossless_priority="?BLOCKED@fleet", path_mtu="PATH_MTU_HOLE@pair")),
    Fault("stale-json", "the result file that nccl-tests leaves is that of an earlier run", _set("old_json", True), unseen(),
          traffic=seen(allreduce="?RESULT_STALE@fleet"), launcher="mpirun"),
    Fault("log-missing", "a plugin of NCCL's on this node turns its log off", _set("nccl_plugin", {"NCCL_DEBUG": "VERSION"}), unseen(),
          traffic=seen(allreduce="?LOG_MISSING@node")),
    Fault("foreign-rdma", "another program moves RDMA data on this node", foreign, unseen(), Scope.FUNCTION,
          {"plan": stuck("FABRIC_IN_USE")["plan"], "apply": stuck("FABRIC_IN_USE")["apply"]},
          traffic=seen(allreduce="?FOREIGN_TRAFFIC@node", rdma_counters="?FOREIGN_TRAFFIC@node", lossless_priority="?BLOCKED@node")),
    Fault("firewall", "nobody can open a TCP connection to the node's ephemeral ports", lambda lab, node, function:
          lab.block_connections(node), unseen(),
          traffic=seen(allreduce="INIT_HANG@some-nodes", bootstrap_tcp="BOOTSTRAP_BLOCKED@node", **UNCOUNTED)),
    Fault("gpu-busy", "a program computes on the GPU", _gpu_program("/usr/bin/python3", "C", 61440), unseen(),
          traffic=seen(allreduce="?GPU_BUSY@node", **UNCOUNTED)),
    Fault("gpu-desktop", "a desktop is shown by the GPU, which nobody has to leave", _gpu_program("/usr/lib/xorg/Xorg", "G", 43),
          unseen(), traffic={}),
)
