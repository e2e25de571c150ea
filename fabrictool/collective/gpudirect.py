"""Whether NIC and GPU exchange data directly, and whether GPUs of a node use NVLink where they have it."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.collective.edges import Carrier
from fabrictool.collective.expect import Expect
from fabrictool.collective.logmodel import Kind, NcclLog, Proof
from fabrictool.collective.transport import Verdict
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.room import About

REMEDY = "load nvidia_peermem or use a kernel with dma-buf, switch ACS off, and put NIC and GPU below one PCIe switch"


def judge_gpudirect(got: Verdict, log: NcclLog, node: str, want: Expect, path: str) -> Iterator[Finding]:
    """Only for channels to other nodes. Its absence is normal on unified memory, and no fault where the GPU is not known."""
    ends = [end for e in got.edges for at, end in ((e.src_node, e.send), (e.dst_node, e.receive))
            if at == node and end and end.carriers == {Carrier.RDMA}]
    if not ends:
        return
    about = About(Code.GDR_MISSING, Subject(SubjectKind.NODE, (node,)), f"{path}.gdr", "")
    direct, total = sum(e.gdr for e in ends), sum(e.lines for e in ends)
    text = f"GPUDirect on {direct} of {total} channel ends"
    if direct == total:
        yield about.ok(text)
    elif want.unified_memory:
        yield about.ok(f"{text}: normal on a GPU with unified memory")
    elif want.gpudirect == "none":
        yield about.skip(f"{text}: the spec does not ask for it")
    elif want.unified_memory is None:
        yield about.skip(f"{text}: normal on GB10 only, and the GPU is not known")
    else:
        why = next((g.target for p in log.processes if p.key.node == node for g in p.gdr if not g.enabled), "")
        yield about.fail(text, "GPUDirect on all", f"data is staged in host memory{f' (disabled for {why[:100]})' if why else ''}",
                         remedy=REMEDY, status=Status.FAIL if want.gpudirect == "required" else Status.WARN)


def judge_shared_memory(got: Verdict, log: NcclLog, node: str, want: Expect, path: str) -> Iterator[Finding]:
    processes = [p for p in log.processes if p.key.node == node]
    by_shm = [e for p in processes for e in p.edges if e.via.kind is Kind.SHM]
    by_p2p = sum(1 for p in processes for e in p.edges if e.via.kind is Kind.P2P)
    nvlink = want.nvlink if want.nvlink is not None else any(p.nvlink for p in processes)
    if not nvlink or not (by_shm or by_p2p):
        return
    about = About(Code.SHM_ON_NVLINK, Subject(SubjectKind.NODE, (node,)), f"{path}.shm", "")
    if by_shm:
        off = next((f"NCCL_P2P_DISABLE={e.value[:20]} is set" for p in processes for e in p.env
                    if e.name == "NCCL_P2P_DISABLE" and e.value != "0"), "")
        yield about.warn(f"{len(by_shm)} channels over host memory: {Proof.of(by_shm[0].line)}", "NVLink between GPUs of a node",
                         off or "peer access between the GPUs is off, or hidden from the container",
                         remedy="unset NCCL_P2P_DISABLE; let every rank see all GPUs; look at `nvidia-smi topo -m`")
    else:
        yield about.ok(f"{by_p2p} channels over P2P", "NVLink between GPUs of a node")
