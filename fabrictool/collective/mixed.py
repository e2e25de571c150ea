"""What must be alike on all ranks: NCCL's version, and the kind of GID that queue pairs use."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.collective.logmodel import NcclLog
from fabrictool.model import Code, Finding, Subject, SubjectKind
from fabrictool.room import About


def judge_versions(log: NcclLog, path: str) -> Iterator[Finding]:
    """The part behind `+` is the CUDA that it was built with: that may differ."""
    seen: dict[str, list[str]] = {}
    for p in log.processes:
        for version in p.versions:
            seen.setdefault(version.split("+", 1)[0], []).append(p.key.node)
    if not seen:
        return
    nodes = tuple(dict.fromkeys(n for found in seen.values() for n in found))
    about = About(Code.NCCL_MIXED, Subject(SubjectKind.NODE if len(nodes) == 1 else SubjectKind.FLEET, nodes), f"{path}.versions", "")
    if len(seen) == 1:
        yield about.ok(f"NCCL {next(iter(seen))}", "one version")
    else:
        shown = "; ".join(f"{v}: {', '.join(dict.fromkeys(n))}" for v, n in sorted(seen.items()))
        yield about.warn(f"NCCL {shown[:300]}", "one version", "ranks run different builds of NCCL",
                         remedy="use the same image digest, or the same package, on every node")


def judge_gids(log: NcclLog, node: str, path: str) -> Iterator[Finding]:
    """On RoCE a queue pair needs a routable GID. InfiniBand's own are link-local by design."""
    mine = [p for p in log.processes if p.key.node == node]
    if not any(h.link_layer == "RoCE" for p in mine for listed in p.hcas for h in listed.hcas):
        return
    qps = [q for p in mine for q in p.qps]
    if not qps:
        return
    about = About(Code.NO_ROCEV2_GID, Subject(SubjectKind.NODE, (node,)), f"{path}.gid", "")
    local = [q for q in qps if q.gid_link_local]
    if local:
        yield about.warn(f"GID index {local[0].gid_index}: link-local", "an IPv4-mapped GID",
                         "NCCL found no IPv4 GID on a device, so its queue pairs reach only their own segment",
                         remedy="give the device's interface its address, and leave NCCL_IB_GID_INDEX unset on NCCL 2.21 and later")
    else:
        shown = ", ".join(dict.fromkeys(f"GID {q.gid_index} {q.gid_ipv4}".strip() for q in qps[:16]))
        yield about.ok(shown[:300], "an IPv4-mapped GID")
