"""Hand-made reports for tests of what is rendered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from fabrictool.model import Code, Finding, Report, Risk, Run, Status, Subject, SubjectKind, WriteFile
from fabrictool.verdict import RunInfo, assemble, each_room

NODES = ("spark01", "spark02", "spark03", "spark04")
INFO = RunInfo("20261129T200000Z-abc123", "plan", "2026-11-29T20:00:00+00:00", "0.1.0", "d" * 64, True)
OLD_CONF = "NCCL_DEBUG=INFO\nNCCL_IB_TC=0\n"
OLD_SHA = hashlib.sha256(OLD_CONF.encode()).hexdigest()
TEXTS = {OLD_SHA: OLD_CONF}


def at(node: str, function: str = "enp1s0f0np0", rail: str = "a") -> Subject:
    return Subject(SubjectKind.FUNCTION, (node,), "p0", function, rail)


def finding(node: str = "spark01", code: Code = Code.QOS_TRUST, path: str = "qos.trust", got: str = "pcp", want: str = "dscp",
            status: Status = Status.FAIL, **more: object) -> Finding:
    return Finding(code, at(node), path, path.split(".")[-1], got, want, status=status, **more)  # type: ignore[arg-type]


def passing(node: str, path: str) -> Finding:
    return finding(node, path=path, got="as wanted", want="as wanted", status=Status.PASS)


def trust(node: str) -> Finding:
    return finding(node, why="with trust pcp the NIC sorts RoCE packets by their VLAN tag, and these have none",
                   steps=(Run(("mlnx_qos", "-i", "enp1s0f0np0", "--trust", "dscp"),
                              undo=("mlnx_qos", "-i", "enp1s0f0np0", "--trust", "pcp")),))


def pfc(node: str) -> Finding:
    return finding(node, Code.QOS_PFC_MASK, "qos.pfc", "none", "3", why="no priority is lossless, so RoCE drops under load",
                   risk=Risk.FLAP, steps=(Run(("mlnx_qos", "-i", "enp1s0f0np0", "-f", "0,0,0,1,0,0,0,0")),))


def conf(node: str) -> Finding:
    return Finding(Code.ENV_FILE_DRIFT, Subject(SubjectKind.NODE, (node,)), "env.nccl_conf", "nccl_conf", "differs in 2 lines",
                   "as the spec derives it", "consumers would take another traffic class than the switch keeps lossless",
                   steps=(WriteFile("/etc/nccl.conf", "NCCL_IB_HCA=rocep1s0f0\nNCCL_IB_TC=104\n", OLD_SHA),))


def drifted() -> Mapping[str, Sequence[Finding]]:
    """Three equal nodes from the factory, one with a missing tool and a bond that nobody may write to."""
    out: dict[str, list[Finding]] = {}
    for n in NODES[:3]:
        out[n] = [passing(n, "link.mtu"), trust(n), pfc(n), conf(n)]
    odd = "spark04"
    why = "mlnx_qos[enp1s0f0np0]: sh: 1: mlnx_qos: not found"
    out[odd] = [
        finding(odd, Code.LINK_OWNER_UNSUPPORTED, "link.mtu_persisted", "owned by a bond", "9000",
                why="the MTU of a bond is set by its own owner", remedy="set the MTU in the bond's own file"),
        *(finding(odd, Code.TOOL_MISSING, f"qos.{what}", "unreadable (tool missing)", "", Status.UNKNOWN, why=why,
                  remedy="install the tool on the node, or put it on root's PATH") for what in ("trust", "pfc", "dscp_map")),
        finding(odd, Code.ENV_DEBUG_LEFT_ON, "env.debug", "NCCL_DEBUG=INFO", "not set", Status.WARN,
                why="logs grow without end")]
    return out


def plan(by_node: Mapping[str, Sequence[Finding]] | None = None, **info: object) -> Report:
    from dataclasses import replace
    return assemble(replace(INFO, **info), each_room(("link", "qos", "env")), by_node or drifted())  # type: ignore[arg-type]
