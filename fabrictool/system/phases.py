"""Where in a distributed job a stack stands: the functions that tell, what it means, what to do.

Function names: PyTorch (c10d), gloo, NCCL 2.18 to 2.30, vLLM and SGLang (shm_broadcast), vLLM's NIXL connector; held against dumps
of real jobs that hang in each of the first six.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """In the order in which a job goes through them."""

    STORE = "torch store"
    GLOO_EXCHANGE = "Gloo exchange"
    GLOO_CONNECT = "Gloo connect"
    GLOO_DATA = "Gloo data"
    GROUP = "process group"  # Python frames alone: Gloo or NCCL
    NCCL_ID = "NCCL id"
    NCCL_BOOTSTRAP = "NCCL bootstrap"
    NCCL_CONNECT = "NCCL connect"
    NCCL_INIT = "NCCL init"
    CALL = "collective call"  # Python frames alone: init of a communicator, or data
    DATA = "data"
    ENGINE = "engine IPC"
    NIXL = "NIXL side channel"
    OTHER = "elsewhere"  # in the program's own code, or nothing that this program knows
    UNKNOWN = "not told"  # no stack

    @property
    def init(self) -> bool:
        """A phase that a job leaves within seconds or never."""
        return self in (Phase.STORE, Phase.GLOO_EXCHANGE, Phase.GLOO_CONNECT, Phase.GROUP, Phase.NCCL_ID, Phase.NCCL_BOOTSTRAP,
                        Phase.NCCL_CONNECT, Phase.NCCL_INIT)

    @property
    def waits(self) -> bool:
        """A rank here waits for another one."""
        return self.init or self in (Phase.GLOO_DATA, Phase.CALL, Phase.DATA, Phase.NIXL)


@dataclass(frozen=True, slots=True)
class Sign:
    """`of`: one of these functions is on the stack (their last part, without namespaces and arguments); `under`: and one of these
    further out ("" = any). `file`: the Python file of the function must contain this."""

    phase: Phase
    of: frozenset[str]
    under: frozenset[str] = frozenset()
    file: str = ""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INIT = _names("ncclCommInitRank ncclCommInitRankConfig ncclCommInitRankFunc ncclCommInitAll ncclCommSplit ncclCommInitRankScalable "
               "ncclCommInitRankDev ncclCommInitChildComm")
_MESH = _names("Context::createAndConnectAllPairs Context::connectFullMesh")

# The first that fits counts: what is further in stands before what surrounds it.
SIGNS: tuple[Sign, ...] = (
    Sign(Phase.NIXL, _names("_wait_for_handshake _nixl_handshake _background_nixl_handshake"), file="nixl"),
    Sign(Phase.ENGINE, _names("wait_until_ready acquire_read acquire_write"), file="shm_broadcast"),
    Sign(Phase.GLOO_CONNECT, _names("Pair::waitUntilConnected Pair::connect"), _MESH),
    Sign(Phase.GLOO_EXCHANGE, _names("PrefixStore::wait Store::wait TCPStore::wait TCPStore::doWait FileStore::wait FileStore::get"),
         _MESH),
    Sign(Phase.GLOO_CONNECT, _MESH),
    Sign(Phase.GLOO_DATA, _names("UnboundBuffer::waitRecv UnboundBuffer::waitSend")),
    Sign(Phase.NCCL_CONNECT, _names("ncclProxyConnect ncclProxyCallBlocking ncclIbConnect ncclIbAccept ncclTransportP2pSetup "
                                    "ncclTransportRingConnect ncclTransportTreeConnect ncclIbConnectImpl ncclIbAcceptImpl")),
    Sign(Phase.NCCL_BOOTSTRAP, _names("bootstrapInit bootstrapRecv bootstrapSend bootstrapAllGather bootstrapBarrier bootstrapSplit "
                                      "ncclSocketAccept ncclSocketConnect socketPollConnect socketTryAccept bootstrapIntraNodeAllGather"),
         _INIT),
    Sign(Phase.NCCL_INIT, _INIT),
    Sign(Phase.NCCL_ID, _names("ProcessGroupNCCL::broadcastUniqueNCCLID ProcessGroupNCCL::allgatherUniqueNCCLIDs")),
    Sign(Phase.STORE, _names("TCPStore::doWait TCPStore::wait TCPStore::waitForWorkers TCPStore::doGet PrefixStore::wait FileStore::wait "
                             "_store_based_barrier _create_c10d_store _tcp_rendezvous_handler _env_rendezvous_handler next_rendezvous")),
    Sign(Phase.DATA, _names("cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cudaEventQuery cuStreamSynchronize "
                            "cuCtxSynchronize cuCtxSynchronize_v2 cuEventSynchronize cuEventQuery ncclGroupEnd ncclGroupEndInternal "
                            "WorkNCCL::synchronize WorkNCCL::wait")),
    Sign(Phase.DATA, _names("synchronize"), file="torch/cuda"),
    Sign(Phase.GROUP, _names("_new_process_group_helper _new_group_with_tag"), file="distributed_c10d"),
    Sign(Phase.CALL, _names("all_reduce all_gather all_gather_into_tensor reduce_scatter reduce_scatter_tensor broadcast barrier "
                            "all_to_all_single all_to_all send recv batch_isend_irecv broadcast_object_list all_gather_object"),
         file="distributed_c10d"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a phase means when a rank stays in it."""

    means: str
    do: str


READINGS: Mapping[Phase, Reading] = {
    Phase.STORE: Reading("a rank never came to the store, MASTER_ADDR is wrong there, or a firewall is between",
                         "look which ranks run; compare MASTER_ADDR and MASTER_PORT of all; try the port from each node"),
    Phase.GLOO_EXCHANGE: Reading("another rank has not published its address: it is not there yet, or it died",
                                 "look for the rank that is missing, and at the end of its log"),
    Phase.GLOO_CONNECT: Reading("another rank published an address that cannot be reached: 127.0.1.1, docker0, a wrong interface",
                                "on each node and in each container: what the own name resolves to; set GLOO_SOCKET_IFNAME"),
    Phase.GLOO_DATA: Reading("another rank does not take part in a Gloo collective", "look for the rank that stands elsewhere"),
    Phase.GROUP: Reading("a process group is being made: with which backend only native frames tell", "run py-spy dump --native as root"),
    Phase.NCCL_ID: Reading("rank 0 has not published NCCL's id: it has not come to this collective", "look where rank 0 stands"),
    Phase.NCCL_BOOTSTRAP: Reading("a rank is missing, or the interface of NCCL's bootstrap does not reach it",
                                  "compare NCCL_SOCKET_IFNAME and the `Bootstrap: Using` lines of all ranks"),
    Phase.NCCL_CONNECT: Reading("queue pairs do not come up between two ranks", "look for ibv_modify_qp lines in NCCL's log; check the "
                                "rails with `fabrictool check rdma path_mtu`"),
    Phase.NCCL_INIT: Reading("a communicator is being made", "look for the rank that stands elsewhere"),
    Phase.CALL: Reading("in a collective: whether its communicator is being made or data moves only native frames tell",
                        "run py-spy dump --native as root"),
    Phase.DATA: Reading("the GPU waits: another rank died, packets are lost, or the ranks' collectives do not match",
                        "look for the rank that stands elsewhere; whether RDMA counters move; NCCL's RAS (ncclras)"),
    Phase.ENGINE: Reading("an engine's process waits for its other processes: idle, or one of them died, or advertised a wrong address",
                          "look whether all of its processes are there; VLLM_HOST_IP or SGLANG_HOST_IP on each node"),
    Phase.NIXL: Reading("the other side of a KV transfer does not answer", "VLLM_NIXL_SIDE_CHANNEL_HOST must be an address that others "
                        "reach, not localhost"),
    Phase.OTHER: Reading("in its own code: it does not wait for another rank", "look at its stack"),
    Phase.UNKNOWN: Reading("its stack could not be read", "install py-spy on the node (it needs root), or gdb"),
}
