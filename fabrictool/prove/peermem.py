"""GPUDirect's kernel side: may the NIC reach GPU memory, is the way between them short, does ACS send it around by the CPU?"""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool import ports
from fabrictool.model import Absent, Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.room import About
from fabrictool.snapshot import Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.system import ask_again, pci, peermem, sections, topology

NEAR = "a GPU behind the same PCIe switches (PIX or PXB)"
LOAD = "modprobe nvidia_peermem, and have it loaded at boot (/etc/modules-load.d/); or use NVIDIA's open kernel modules for dma-buf"


def judge(want: NodeSpec, snap: Snapshot, path: str) -> Iterator[Finding]:
    node = Subject(SubjectKind.NODE, (want.name,))
    about = About(Code.PEER_MEMORY, node, f"{path}.gpudirect", "")
    if want.gpu is None or want.gpu.gpudirect == "none":
        yield about.skip("the spec does not ask for GPUDirect" if want.gpu else "the spec names no GPU")
        return
    if want.gpu.unified_memory:
        yield about.skip("GPU and CPU share one memory: the NIC reaches it without GPUDirect")
        return
    read = snap.raw(sections.MODULES.name)
    if isinstance(read, Unreadable):
        yield about.unknown(read, "nvidia_peermem or dma-buf", ask_again(read, "rails"))
        return
    status = Status.FAIL if want.gpu.gpudirect == "required" else Status.WARN
    yield _memory(about, snap, status)
    yield from _distance(want, snap, path, status)
    yield from _acs(want, snap, path, status)


def _memory(about: About, snap: Snapshot, status: Status) -> Finding:
    got, wanted = peermem.read(snap), "nvidia_peermem or dma-buf"
    for way in (got.module, got.dmabuf):
        if isinstance(way, Value):
            return about.ok(way.value, wanted)
    unread = next((w for w in (got.module, got.dmabuf) if isinstance(w, Unreadable)), None)
    if unread is not None:
        return about.unknown(unread, wanted)
    said = "; ".join(f"no {w.what}" for w in (got.module, got.dmabuf) if isinstance(w, Absent))
    return about.fail(said, wanted, "every byte between NIC and GPU is copied through the node's memory", remedy=LOAD, status=status)


def _distance(want: NodeSpec, snap: Snapshot, path: str, status: Status) -> Iterator[Finding]:
    """NCCL takes GPUDirect up to PXB by itself (NCCL_NET_GDR_LEVEL)."""
    seen = topology.read(snap)
    wanted = NEAR
    if isinstance(seen, Unreadable):
        yield About(Code.PEER_MEMORY, Subject(SubjectKind.NODE, (want.name,)), f"{path}.affinity", "").unknown(seen, wanted)
        return
    for fn in ports.bind(want, ports.read(snap)):
        about = About(Code.PEER_MEMORY, fn.subject(want), f"{path}.affinity", "")
        if not isinstance(fn.rdma, Value):
            yield about.unknown(Unreadable(Reason.BLOCKED, f"RDMA_ABSENT: {fn.rdma_name} is not known on the node"), wanted)
            continue
        near = seen.nearest(fn.rdma_name)
        if not isinstance(near, Value):
            yield about.unknown(near, wanted)
        else:
            yield distance(about, *near.value, status)


def distance(about: About, near: str, gpu: str, status: Status) -> Finding:
    """`near`: how far the nearest GPU is, in the words of nvidia-smi; `status`: of what is too far."""
    if near in ("PIX", "PXB"):
        return about.ok(f"{gpu} is near ({near})", NEAR)
    return about.fail(f"the nearest GPU is {gpu}, across {topology.MEANS[near]} ({near})", NEAR,
                      "NCCL does not use GPUDirect over this distance unless NCCL_NET_GDR_LEVEL says so, and it is slow",
                      status=status if near in ("NODE", "SYS") else Status.WARN,
                      remedy="put NIC and GPU behind one switch; in a virtual machine pass the topology on")


def _acs(want: NodeSpec, snap: Snapshot, path: str, status: Status) -> Iterator[Finding]:
    node = Subject(SubjectKind.NODE, (want.name,))
    wanted = "no redirect (ACS) between NIC and GPU"
    redirects, tree = pci.redirects(snap), pci.ways(snap)
    for lost in (redirects, tree):
        if isinstance(lost, Unreadable):
            yield About(Code.PEER_MEMORY, node, f"{path}.acs", "").unknown(lost, wanted)
            return
    if isinstance(redirects, Unreadable) or isinstance(tree, Unreadable):
        return
    nics, gpus = tree
    for fn in ports.bind(want, ports.read(snap)):
        about = About(Code.PEER_MEMORY, fn.subject(want), f"{path}.acs", "")
        mine = nics.get(fn.rdma_name)
        if mine is None or not gpus:
            what = f"the PCIe address of {fn.rdma_name}" if mine is None else "the PCIe addresses of the GPUs"
            yield about.unknown(Unreadable(Reason.EMPTY, f"{what}: not told"), wanted)
            continue
        between = {g.device: (*below, *(g.below(mine) or ())) for g in gpus if (below := mine.below(g)) is not None}
        on_way = sorted({b for bridges in between.values() for b in bridges})
        bad, unseen = [b for b in on_way if redirects.get(b)], [b for b in on_way if b not in redirects]
        if bad:
            yield about.fail(f"redirect on {', '.join(bad[:6])}", wanted, "traffic between NIC and GPU goes around by the CPU's root port",
                             status=status, remedy="switch ACS off on these bridges (setpci -s BRIDGE ECAP_ACS+6.w=0, again at each boot) "
                             "or in the BIOS; not in a host whose devices are passed on to virtual machines")
        elif unseen:
            yield about.unknown(Unreadable(Reason.EMPTY, f"lspci says nothing of {', '.join(unseen[:6])}"), wanted)
        else:
            yield about.ok(f"none on {len(between)} ways to GPUs" if between else "no PCIe bridge is shared with a GPU", wanted)
