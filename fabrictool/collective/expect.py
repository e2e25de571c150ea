"""What a node's logs should show, as the spec has it. Everything may be unknown: then nothing is claimed about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.spec import NodeSpec

UNIFIED = ("NVIDIA GB10",)  # its NIC reaches all memory through the CPU: NCCL never uses GPUDirect there (nccl.md 2.2)


@dataclass(frozen=True, slots=True)
class Expect:
    """`hcas`: RDMA devices of the rails; `other_rdma`: devices that are no rail; `bootstrap`: the socket interface ("" = not known);
    `unified_memory`: None = the GPU is not known; `gpudirect`: required, preferred or none; `nvlink`: GPUs of the node are joined by
    NVLink (None = ask the log); `env`: what the ranks must have been started with; `env_shown`: they were started with ENV in
    NCCL_DEBUG_SUBSYS, so that a variable that is not shown was not there."""

    hcas: tuple[str, ...] = ()
    other_rdma: tuple[str, ...] = ()
    bootstrap: str = ""
    unified_memory: bool | None = None
    gpudirect: str = "preferred"
    nvlink: bool | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    env_shown: bool = False


NOTHING = Expect()


def of_spec(want: NodeSpec, hcas: tuple[str, ...], env: Mapping[str, str], *, env_shown: bool = False) -> Expect:
    """`hcas`: the RDMA devices as bound on the node; `env`: the wanted variables (the env room derives them)."""
    gpu = want.gpu
    return Expect(hcas, want.other_rdma, want.bootstrap or "", gpu.unified_memory if gpu else None,
                  gpu.gpudirect if gpu else "preferred", None, env, env_shown)


def of_gpu(model: str) -> Expect:
    """What a GPU's name alone tells, as nccl-tests prints it."""
    return Expect(unified_memory=model in UNIFIED) if model else NOTHING
