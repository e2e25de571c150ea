"""Which RDMA devices NCCL took, against the rails of the spec. NCCL leaves out a port that is down without a word."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.collective.edges import Carrier
from fabrictool.collective.expect import Expect
from fabrictool.collective.logmodel import NcclLog
from fabrictool.collective.transport import Verdict
from fabrictool.model import Code, Finding, Reason, Subject, SubjectKind, Unreadable
from fabrictool.room import About

REMEDY = "see the rdma and env checks of the node: port state, address, NCCL_IB_HCA"


def listed(log: NcclLog, node: str) -> tuple[str, ...] | None:
    """Devices of every list that the node's processes printed; None when none did, or not whole."""
    lists = [h for p in log.processes if p.key.node == node for h in p.hcas]
    if not lists or not all(h.whole for h in lists):
        # A damaged list of one process is no matter where another process of the node printed the same.
        lists = [h for h in lists if h.whole]
    if not lists:
        return None
    return tuple(dict.fromkeys(d for h in lists for entry in h.hcas for d in entry.devices))


def used(got: Verdict, node: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Devices that the node's channels to other nodes use, and indices that nothing names."""
    ends = [end for e in got.edges for at, end in ((e.src_node, e.send), (e.dst_node, e.receive))
            if at == node and end and Carrier.RDMA in end.carriers]
    return (tuple(dict.fromkeys(d for end in ends for d in end.devices)),
            tuple(dict.fromkeys(i for end in ends for i in end.unresolved)))


def judge_rails(got: Verdict, log: NcclLog, node: str, want: Expect, path: str) -> Iterator[Finding]:
    if not want.hcas:
        return
    subject, where, wanted = Subject(SubjectKind.NODE, (node,)), f"{path}.hca", ", ".join(want.hcas)
    seen = listed(log, node)
    if seen is None:
        yield About(Code.RAIL_IDLE, subject, where, "").unknown(
            Unreadable(Reason.NOT_COLLECTED, f"{node}: its logs hold no readable `NET/IB : Using` line"), wanted)
        return
    took = [h for h in want.hcas if h in seen]
    shown = ", ".join(seen) or "none"
    if not took:
        yield About(Code.NCCL_NO_DEVICE, subject, where, "").fail(
            shown, wanted, "NCCL uses no RDMA device of the rails", remedy=REMEDY)
    elif len(took) < len(want.hcas):
        gone = ", ".join(h for h in want.hcas if h not in seen)
        yield About(_code(len(took)), subject, where, "").fail(
            shown, wanted, f"NCCL left out {gone}: down, without an address, or not in NCCL_IB_HCA", remedy=REMEDY)
    else:
        yield About(Code.RAIL_IDLE, subject, where, "").ok(shown, wanted)
        yield from _use(got, node, want, path)
    stray = [d for d in seen if d not in want.hcas]
    if stray:
        yield About(Code.STRAY_RDMA, subject, f"{path}.stray", "").warn(
            ", ".join(stray), wanted, "NCCL took a device that is no rail", remedy="let NCCL_IB_HCA name exactly the rails (`=` in front)")


def _use(got: Verdict, node: str, want: Expect, path: str) -> Iterator[Finding]:
    """Whether the channels use what is in the list."""
    names, unresolved = used(got, node)
    subject, where, wanted = Subject(SubjectKind.NODE, (node,)), f"{path}.hca_used", ", ".join(want.hcas)
    if not names and not unresolved:
        return
    took = [h for h in want.hcas if h in names]
    if len(took) == len(want.hcas):
        yield About(Code.RAIL_IDLE, subject, where, "").ok(", ".join(names), wanted)
    elif unresolved:
        yield About(Code.RAIL_IDLE, subject, where, "").unknown(
            Unreadable(Reason.GARBLED, f"{node}: device index {unresolved[0]} is beyond NCCL's list and nothing names it"), wanted)
    elif len(took) == 1:
        yield About(Code.SINGLE_RAIL, subject, where, "").fail(
            ", ".join(names), wanted, "every channel to other nodes uses the same rail", remedy=REMEDY)
    else:
        idle = ", ".join(h for h in want.hcas if h not in names)
        yield About(Code.RAIL_IDLE, subject, where, "").warn(
            ", ".join(names) or "none", wanted, f"no channel to other nodes uses {idle}",
            remedy="let the RDMA counters decide: fabrictool check rdma_counters")


def _code(count: int) -> Code:
    return Code.SINGLE_RAIL if count == 1 else Code.RAIL_IDLE
