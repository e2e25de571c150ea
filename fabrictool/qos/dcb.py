"""The second reader: iproute2's `dcb -j`, version 5.11 and later, as the transcript that section `qos.dcb` makes.

Each object stands between its command line and `[rc=N]`; an object without that end is unreadable. Old versions lack objects, hang
where the driver lacks a call (<= 6.0), and print an empty line instead of JSON when they fail.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.qos.model import DscpMap, View, blind, unsupported
from fabrictool.snapshot import Captured
from fabrictool.values import Priorities

OBJECTS = ("dcbx", "app", "pfc", "ets", "buffer")
COMMAND = re.compile(r"\$ dcb (?:-j )?(?:-s )?([a-z]+) show dev (.*)")
END = re.compile(r"\[rc=(\d{1,3})\]")
LONGEST = 65_536  # characters; 64 DSCP entries take below 1,000


@dataclass(frozen=True, slots=True)
class Answer:
    """One object's answer. `lines`: stdout and stderr together."""

    rc: int
    lines: tuple[str, ...]


def transcript(text: str) -> dict[str, Answer]:
    """object -> answer, of the answers that came to their end. Only `-j` answers of the first interface named."""
    out: dict[str, Answer] = {}
    name = ""
    held: list[str] = []
    device: str | None = None
    for raw in text.split("\n")[:-1]:
        line = raw.rstrip("\r \t")
        if m := COMMAND.fullmatch(line):
            device = m[2] if device is None else device
            name, held = (m[1] if " -j " in line and m[2] == device else ""), []
        elif m := END.fullmatch(line):
            if name:
                out[name] = Answer(int(m[1]), tuple(held))
            name, held = "", []
        elif len(line) <= LONGEST and line != "[stderr]":
            held.append(line)
    return out


def parse(got: Captured | Unreadable) -> View:
    """All values of one interface, each with its own reason where it could not be read."""
    if isinstance(got, Unreadable):
        return blind(got)
    answers = transcript(got.out)
    if not answers:
        why = f"exit status {got.rc}: {got.tail}" if got.rc else "no whole answer"
        return blind(Unreadable(Reason.FAILED if got.rc else Reason.CUT, f"dcb: {why}"))
    docs = {name: _document(name, answers) for name in OBJECTS}
    if all(isinstance(d, Absent) for d in docs.values()) and docs["pfc"] == Absent(NOT_SUPPORTED):
        return unsupported("dcb: Operation not supported on this interface")
    if not any(isinstance(d, Value) for d in docs.values()):
        silent = [d for d in docs.values() if isinstance(d, Unreadable)]
        return blind(silent[0] if silent else Unreadable(Reason.FAILED, "dcb: the driver lacks every object"))
    app = _app(docs["app"])
    prio_tc = _eight(docs["ets"], "prio_tc", 7)
    buffers = docs["buffer"]
    return View(
        dcb=Value(True),
        os_controlled=_os_controlled(docs["dcbx"]),
        trust=_trust(app),
        dscp_map=app,
        pfc=_pfc(docs["pfc"]),
        prio_tc=_silent(prio_tc, "traffic classes") if isinstance(prio_tc, Absent) else prio_tc,
        ets=_ets(docs["ets"]),
        prio_buffer=_eight(buffers, "prio_buffer", 7),
        buffer_bytes=_eight(buffers, "buffer_size", 2**40),
    )


NOT_SUPPORTED = "not supported by the driver"


def _document(name: str, answers: dict[str, Answer]) -> Observed[dict[str, object]]:
    """The JSON object of one answer; absent when the driver answered that it has no such thing."""
    got = answers.get(name)
    what = f"dcb {name}"
    if got is None:
        hung = next((n for n, a in answers.items() if a.rc in (124, 137)), None)
        if hung:
            return Unreadable(Reason.TIMEOUT, f"{what}: not asked, as `dcb {hung}` hung (a fault of dcb 6.0 and older)")
        return Unreadable(Reason.CUT, f"{what}: no whole answer")
    text = "\n".join(got.lines).strip()
    if got.rc in (124, 137):
        return Unreadable(Reason.TIMEOUT, f"{what}: hung (dcb 6.0 and older does where the driver lacks the call)")
    if got.rc == 127:
        return Unreadable(Reason.TOOL_MISSING, f"{what}: {text[:120] or 'not found'}")
    if got.rc != 0:
        if "Operation not supported" in text:
            return Absent(NOT_SUPPORTED)
        if "Attribute not found" in text:
            return Absent(f"{name} of this driver")
        if "not permitted" in text:
            return Unreadable(Reason.NEEDS_ROOT, f"{what}: {text[:120]}")
        return Unreadable(Reason.FAILED, f"{what}: exit status {got.rc}: {text[:120]}")
    if not text:
        return Unreadable(Reason.EMPTY, f"{what}: exit status 0 and no output")
    try:
        doc = json.loads(text)
    except (ValueError, RecursionError):
        return Unreadable(Reason.GARBLED, f"{what}: not JSON: {text[:60]!r}")
    if not isinstance(doc, dict):
        return Unreadable(Reason.GARBLED, f"{what}: not a JSON object: {text[:60]!r}")
    return Value(doc)


def _os_controlled(doc: Observed[dict[str, object]]) -> Observed[bool]:
    """Only true flags are printed; without `host` the firmware speaks DCBX."""
    if not isinstance(doc, Value):
        return _silent(doc, "DCBX mode")
    if any(not isinstance(v, bool) for v in doc.value.values()):
        return Unreadable(Reason.GARBLED, "dcb dcbx: a flag is not true or false")
    return Value(doc.value.get("host") is True)


def _app(doc: Observed[dict[str, object]]) -> Observed[DscpMap]:
    """`{"dscp_prio":[[26,3],...]}`; 6.5 and later append a blank string to each pair. No entries: absent."""
    if not isinstance(doc, Value):
        return _silent(doc, "DSCP entries")
    rows = doc.value.get("dscp_prio")
    if rows is None or rows == []:
        return Absent("DSCP entries")
    pairs: list[tuple[int, int]] = []
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, list) or len(row) not in (2, 3) or not all(type(n) is int for n in row[:2]):
            return Unreadable(Reason.GARBLED, f"dcb app: not a DSCP entry: {str(row)[:60]}")
        pairs.append((row[0], row[1]))
    try:
        return Value(DscpMap.of(pairs))
    except ValueError as e:
        return Unreadable(Reason.GARBLED, f"dcb app: {e}")


def _trust(app: Observed[DscpMap]) -> Observed[str]:
    """Trust is dscp exactly while DSCP entries exist (mlx5 en_dcbnl)."""
    return app if isinstance(app, Unreadable) else Value("dscp" if isinstance(app, Value) else "pcp")


def _pfc(doc: Observed[dict[str, object]]) -> Observed[Priorities]:
    if not isinstance(doc, Value):
        return _silent(doc, "PFC")
    flags = doc.value.get("prio_pfc")
    if not isinstance(flags, list) or len(flags) != 8 or not all(isinstance(f, bool) for f in flags):
        return Unreadable(Reason.GARBLED, f"dcb pfc: not eight flags: {str(flags)[:60]}")
    return Value(Priorities.from_flags(flags))


def _eight(doc: Observed[dict[str, object]], key: str, top: int) -> Observed[tuple[int, ...]]:
    if not isinstance(doc, Value):
        return doc
    row = doc.value.get(key)
    if not isinstance(row, list) or len(row) != 8 or not all(type(n) is int and 0 <= n <= top for n in row):
        return Unreadable(Reason.GARBLED, f"dcb: {key} is not eight numbers: {str(row)[:60]}")
    return Value(tuple(row))


def _ets(doc: Observed[dict[str, object]]) -> Observed[bool]:
    if not isinstance(doc, Value):
        return _silent(doc, "schedulers")
    tsa = doc.value.get("tc_tsa")
    if not isinstance(tsa, list) or len(tsa) != 8 or not all(isinstance(t, str) for t in tsa):
        return Unreadable(Reason.GARBLED, f"dcb ets: not eight schedulers: {str(tsa)[:60]}")
    return Value("ets" in tsa)


def _silent(doc: Absent | Unreadable, what: str) -> Unreadable:
    """A driver that lacks the object says nothing about what the hardware does."""
    return doc if isinstance(doc, Unreadable) else Unreadable(Reason.FAILED, f"dcb: {what}: {doc.what}")
