"""What fabrictool's own AllReduce over PyTorch prints (node/allreduce.py): one line of JSON by rank 0, and a line on stderr for each
step of each rank."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from fabrictool.collective.model import Bounds, Device, ErrorKind, Parameters, Placement, Row, RunError, TestRun
from fabrictool.collective.rows import NOT_RUN
from fabrictool.model import Observed, Reason, Unreadable, Value

MARK = '"fabrictool": "allreduce"'
FORMAT = 1
LONGEST = 4 * 2**20  # characters of the line: 100,000 ranks with a name each
NUMBERS = ("size_bytes", "ranks", "warmup", "iterations", "verify", "wrong")
REALS = ("time_us", "algbw_gbytes_per_s", "busbw_gbytes_per_s")
STEP = re.compile(r"fabrictool-allreduce: rank ([0-9]{1,7}) on ([^\s:]{1,255}): (.{1,300})")
UP = frozenset({"warmed up", "timed", "verified"})  # the communicator is made by the first call
ERRORS = (
    ("there are ", ErrorKind.GPUS), ("PyTorch cannot be imported", ErrorKind.LAUNCHER), ("this PyTorch (", ErrorKind.LAUNCHER),
    ("CUDA cannot be used", ErrorKind.CUDA), ("failed: ", ErrorKind.NCCL),
)
DEADLINE = re.compile(r"Timeout \([0-9:]{4,12}\)!")  # Python's faulthandler
ARGUMENT = re.compile(r"allreduce\S{0,40}: error: .{1,200}")


def parse(out: str, errors: Iterable[str] = ()) -> TestRun:
    """`out`: rank 0's stdout, where NCCL may have written too; `errors`: each rank's stderr."""
    lines = [ln.strip("\r") for ln in out.split("\n")]
    found = [(n, ln) for n, ln in enumerate(lines, 1) if MARK in ln and len(ln) <= LONGEST]
    said = list(told(errors))
    hosts = {e.rank: e.host for e in said if e.rank is not None}
    seen = TestRun(devices=tuple(Device(rank, host, None) for rank, host in sorted(hosts.items())),
                   table=any(e.text in UP for e in said),
                   errors=tuple(e for e in said if e.kind is not ErrorKind.LAST), others=max(0, len(found) - 1))
    return _result(found[-1][1], found[-1][0], seen) if found else seen


def told(errors: Iterable[str]) -> Iterable[RunError]:
    """Every step and error of every rank; mere steps as kind LAST."""
    for text in errors:
        rank, host = None, ""
        for number, line in enumerate(text.split("\n"), 1):
            step = STEP.search(line)
            if step:
                rank, host = int(step[1]), step[2]
                kind = next((k for start, k in ERRORS if step[3].startswith(start)), ErrorKind.LAST)
                yield RunError(kind, step[3].strip(), host, rank, number)
            elif DEADLINE.match(line):
                yield RunError(ErrorKind.TIMEOUT, line.strip()[:300], host, rank, number)
            elif ARGUMENT.search(line):
                yield RunError(ErrorKind.ARGUMENT, line.strip()[:300], host, rank, number)


def _result(line: str, number: int, seen: TestRun) -> TestRun:
    doc = _document(line)
    if doc is None:
        broken = Unreadable(Reason.GARBLED, "the line of the result is not whole")
        return TestRun(devices=seen.devices, table=True, errors=seen.errors, others=seen.others, bounds=broken, average_busbw=broken,
                       lines=(number, number))
    whole = {n: int(doc[n]) for n in NUMBERS}
    time, algbw, busbw = (float(doc[n]) for n in REALS)
    verified: Observed[int] = Value(whole["wrong"])
    row = Row(whole["size_bytes"], whole["size_bytes"] // 4, "float", "sum", None, NOT_RUN,
              Placement(time, algbw, busbw, verified), number)
    devices = tuple(Device(i, host, None, gpu) for i, (host, gpu) in enumerate(zip(doc["hostnames"], doc["devices"], strict=True)))
    parameters = Parameters(1, 1, whole["size_bytes"], whole["size_bytes"], 2, True, whole["warmup"], whole["iterations"], whole["verify"])
    return TestRun(
        program=Value("fabrictool allreduce"), version=Value(f"torch {doc['torch']}"), nccl=Value(doc["nccl"]),
        parameters=Value(parameters), devices=devices, rows=(row,), table=True,
        bounds=Value(Bounds.FAILED if whole["wrong"] else Bounds.OK), average_busbw=Value(busbw), concluded=True, errors=seen.errors,
        lines=(number, number), others=seen.others)


def _document(line: str) -> dict[str, Any] | None:
    """The line's object, if every field is there and fits the others. A log line may stand before it."""
    try:
        doc = json.loads(line[line.index("{"):])
    except (ValueError, RecursionError):
        return None
    if not isinstance(doc, dict) or doc.get("format") != FORMAT:
        return None
    numbers = all(isinstance(doc.get(n), int) and not isinstance(doc[n], bool) and 0 <= doc[n] < 2**63 for n in NUMBERS)
    reals = all(isinstance(doc.get(n), (int, float)) and not isinstance(doc[n], bool) and 0 <= doc[n] < 1e15 for n in REALS)
    texts = all(isinstance(doc.get(n), str) and len(doc[n]) <= 80 for n in ("torch", "nccl"))
    lists = all(isinstance(doc.get(n), list) and all(isinstance(e, str) and 0 < len(e) <= 255 for e in doc[n])
                for n in ("hostnames", "devices"))
    if not (numbers and reals and texts and lists) or doc["verify"] < 1 or doc["size_bytes"] < 4:
        return None
    return doc if doc["ranks"] == len(doc["hostnames"]) == len(doc["devices"]) > 0 else None
