"""JSON documents within pasted text: where each ends, and which tool printed it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from fabrictool.snapshot.sniff.model import Kind, Line

LIMIT = 16 * 2**20  # characters of one document
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]')
_OPENS = re.compile(r"\s*(?:\[\s*(?:\{|\]|$)|\{\s*(?:\"|\}|$))")
_SURE = re.compile(r'\s*(?:\[\s*)?\{\s*"[a-z_]{2,30}"\s*:')
_TESTS_KEYS = re.compile(r'"(?:nccl_version|average_bus_bandw\w+|out_of_bounds|experiment_name|minimum_bytes)"\s*:')


def opens(line: str) -> bool:
    return _OPENS.match(line[:200]) is not None


def surely(line: str) -> bool:
    """Whether a document of some tool begins here: a bracket alone may be anything."""
    return _SURE.match(line[:200]) is not None


def end(lines: Sequence[Line], at: int) -> int:
    """The index after the document that begins at `lines[at]`: after its last bracket, or where nothing more of it can follow."""
    depth, size = 0, 0
    for i in range(at, len(lines)):
        text = lines[i].text
        size += len(text)
        if size > LIMIT:
            return i
        for m in _TOKEN.finditer(text):
            if m[0] in "{[":
                depth += 1
            elif m[0] in "}]":
                depth -= 1
                if depth <= 0:
                    return i + 1
    return len(lines)


def kind_of(text: str) -> Kind | None:
    """None for JSON of a tool that is not known here, and for what only looks like JSON."""
    if _TESTS_KEYS.search(text[:LIMIT]):
        return Kind.NCCL_TESTS_JSON  # also when it is no valid JSON: NaN, bare inf, cut short
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict):
        return _object(data)
    rows = [row for row in data if isinstance(row, dict) and row] if isinstance(data, list) else []
    return _row(rows[0]) if rows else None


def _object(data: dict[str, object]) -> Kind | None:
    keys = {"prio_pfc", "dscp_prio", "default_prio", "prio_tc", "tc_tsa", "prio_buffer", "buffer_size", "tc_maxrate", "pcp_prio"}
    if keys & data.keys():
        return Kind.DCB
    if data.get("fabrictool") == "allreduce":
        return Kind.ALLREDUCE
    if data and data.keys() <= {"host", "ieee", "cee", "lld_managed", "static"}:
        return Kind.DCB
    return None


def _row(row: dict[str, object]) -> Kind | None:
    if "ifname" not in row:
        return None
    if "addr_info" in row or ("mtu" in row and "flags" in row):
        return Kind.IP_JSON
    if "physical_state" in row or ("state" in row and "port" in row):
        return Kind.RDMA_LINK
    if "lqpn" in row or {"pd", "cq", "qp"} <= row.keys():
        return Kind.RDMA_RESOURCE
    if "port" in row and any(isinstance(v, int) and k not in ("port", "ifindex") for k, v in row.items()):
        return Kind.RDMA_STATISTIC
    return None
