"""Findings from UCX's lines: RDMA between nodes, or TCP in its place."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.collective import ucx
from fabrictool.collective.linemodel import Proof
from fabrictool.collective.ucxmodel import Carried, Scope, UcxLog
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.room import About

WANT = "RDMA between nodes"
REMEDY = ("let UCX_TLS hold rc and UCX_NET_DEVICES name RDMA devices with their port (`mlx5_0:1`), in the program's own environment; "
          "`ucx_info -d` of the UCX that NIXL loads must list them")


def judge_ucx(log: UcxLog, node: str, path: str, expected: tuple[str, ...] = ()) -> Iterator[Finding]:
    """`node`: whose log it is ("" = as the lines say); `expected`: RDMA devices of the rails."""
    subject = _subject(log, node)
    about = About(Code.NIXL_TCP, subject, f"{path}.transport", "")
    got = ucx.carried(log)
    names = ", ".join(dict.fromkeys(str(lane) for c in log.configs if c.scope in (Scope.INTER_NODE, Scope.UNSAID)
                                    for lane in ucx.data_lanes(c)))[:200]
    if log.no_device:
        # With RDMA all the same, only some of what UCX_NET_DEVICES names is missing.
        yield About(Code.UCX_NO_DEVICE, subject, f"{path}.device", "").fail(
            str(log.no_device[0]), "the devices that UCX_NET_DEVICES names", "UCX finds no such transport or device here", remedy=REMEDY,
            status=Status.WARN if got is Carried.RDMA else Status.FAIL)
    if got is Carried.RDMA:
        yield about.ok(f"{names or ', '.join(ucx.rdma_devices(log))} (a claim of the log: counters prove it)", WANT)
    elif got in (Carried.TCP, Carried.MIXED):
        some = "some endpoints run" if got is Carried.MIXED else "transfers run"
        yield about.fail(_tcp_proof(log) or names, WANT, f"{some} over TCP between nodes: tens of times slower", remedy=REMEDY)
    elif not log.no_device:
        why = "only endpoints inside a node are in the log" if got is Carried.LOCAL else "no endpoint between nodes is in the log"
        yield about.fail(got, WANT, why, status=Status.UNKNOWN,
                         remedy="set UCX_LOG_LEVEL=info, put prefill and decode on different hosts, and let a transfer run")
    for proof in log.unreachable[:1]:
        yield About(Code.UCX_NO_DEVICE, subject, f"{path}.reach", "").fail(
            str(proof), WANT, "no transport that both ends have reaches the peer", remedy=REMEDY)
    for proof in log.incompatible[:1]:
        yield About(Code.VERSIONS_DIFFER, subject, f"{path}.version", "").fail(
            str(proof), "one version of UCX", "the ends run versions of UCX that do not understand each other",
            remedy="use the same image digest on both sides")
    yield from _rails(log, subject, path, expected)


def _subject(log: UcxLog, node: str) -> Subject:
    proofs = (*(c.proof for c in log.configs), *log.no_device, *log.unreachable, *log.incompatible)
    nodes = (node,) if node else tuple(dict.fromkeys(p.node for p in proofs if p.node))
    return Subject(SubjectKind.NODE if len(nodes) == 1 else SubjectKind.FLEET, nodes)


def _tcp_proof(log: UcxLog) -> str:
    found = next((c.proof for c in log.configs if c.scope in (Scope.INTER_NODE, Scope.UNSAID)
                  and any(lane.transport == "tcp" for lane in ucx.data_lanes(c))), None)
    shown: Proof | None = found or next((r.proof for r in log.rows if any(lane.transport == "tcp" for lane, _ in r.lanes)), None)
    return str(shown) if shown else ""


def _rails(log: UcxLog, subject: Subject, path: str, expected: tuple[str, ...]) -> Iterator[Finding]:
    used = ucx.rdma_devices(log)
    if not expected or not used:
        return
    about = About(Code.RAIL_IDLE, subject, f"{path}.rails", "")
    took = [d for d in expected if d in used]
    if len(took) == len(expected):
        yield about.ok(", ".join(used), ", ".join(expected))
    else:
        # NIXL uses at most two rails for one endpoint, so fewer than all are no fault by themselves.
        yield about.warn(", ".join(used), ", ".join(expected), "no endpoint between nodes uses the other rails",
                         remedy="let the RDMA counters decide; UCX_MAX_RMA_RAILS limits how many one endpoint takes")
