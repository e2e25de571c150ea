"""The state that `mlnx_qos -i IF` prints, from MLNX_OFED 4.0 (2017) to DOCA 26.

Keyed on line prefixes. Only lines that end in a newline count, and a value that goes on over several lines counts only when what
follows it was seen: an answer that was cut short can hide a value but never change one. A missing part is unreadable, never "off".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.qos.model import DscpMap, View, blind, unsupported
from fabrictool.snapshot import Captured
from fabrictool.values import Priorities

LONGEST = 2048  # characters; the longest real line (a receive buffer list) stays below 200

TRUST = re.compile(r"Priority trust (?:state|mode): ?(dscp|pcp|none)")
DCBX = re.compile(r"DCBX mode: (OS|Firmware) controlled")
MAP_ROW = re.compile(r"\s+prio:([0-7])\s+dscp:(\d{1,2}(?:,\d{1,2})*),?")
BUFFERS = re.compile(r"Receive buffer size \(bytes\): ?(\d+(?:,\d+){7})(?:,(?:[a-z_]+=\d+)?)?")
EIGHT = re.compile(r"\s+(priority|enabled|buffer)((?:\s+\d){8})")
TC = re.compile(r"tc: ([0-7]) ratelimit: .*tsa: (\w+).*")
TC_PRIORITY = re.compile(r"\s+priority:\s+([0-7])")
HEADERS = ("default priority", "Receive buffer size", "Buffers commands", "Cable len", "PFC configuration", "tc: ")
NO_DCB = "ETS features are not supported on your system"  # the last of the four lines; the other three may come alone
REFUSED = {
    "trust": "Priority trust state is not supported on your system",
    "buffers": "Buffers commands are not supported on your system",
}
CAUSE = re.compile(r"(OSError: .*|Netlink error: .*|FileNotFoundError: .*|(?:ModuleNotFound|Import)Error: .*|AttributeError: .*)")


def cause(got: Captured) -> Unreadable:
    """Why the tool failed: the first error of a traceback is the true one, later ones come from its own error handling."""
    for text in (got.err, got.out):
        for line in text.split("\n"):
            m = CAUSE.match(line[:LONGEST].strip())
            if not m:
                continue
            if m[1].startswith("FileNotFoundError") and "'ps'" in m[1]:
                return Unreadable(Reason.TOOL_MISSING, "mlnx_qos needs `ps` (package procps)")
            if m[1].startswith(("ModuleNotFoundError", "ImportError")):
                return Unreadable(Reason.TOOL_MISSING, f"mlnx_qos is not installed as a whole: {m[1]}")
            if "not permitted" in m[1]:
                return Unreadable(Reason.NEEDS_ROOT, f"mlnx_qos: {m[1]}")
            return Unreadable(Reason.FAILED, f"mlnx_qos: {m[1]}")
    return Unreadable(Reason.FAILED, f"mlnx_qos: exit status {got.rc}: {got.tail or 'no message'}")


def lines_of(text: str) -> list[str]:
    """Whole lines without trailing blanks. Lines too long to be the tool's become empty."""
    return [ln.rstrip(" \t\r") if len(ln) <= LONGEST else "" for ln in text.split("\n")[:-1]]


def parse(got: Captured | Unreadable) -> View:
    """All values of one interface, each with its own reason where it could not be read."""
    if isinstance(got, Unreadable):
        return blind(got)
    lines = lines_of(got.out)
    if got.rc != 0 and NO_DCB in lines and not any(ln.startswith("PFC configuration") for ln in lines):
        return unsupported("mlnx_qos: not supported on this interface")
    text = Print(lines, got)
    view = View(
        dcb=Value(True),
        os_controlled=text.os_controlled(),
        trust=text.trust(),
        dscp_map=text.dscp_map(),
        pfc=text.pfc(),
        prio_tc=text.prio_tc(),
        ets=text.ets(),
        prio_buffer=text.prio_buffer(),
        buffer_bytes=text.buffer_bytes(),
        lldpad=any("lldpad service is running" in ln for ln in lines),
    )
    seen = (view.os_controlled, view.trust, view.pfc, view.prio_tc, view.buffer_bytes)
    if not any(isinstance(v, Value) for v in seen):
        return blind(text.missing("state"))
    return view


@dataclass(frozen=True, slots=True)
class Print:
    """The printed state. Each method gives one value."""

    lines: list[str]
    got: Captured

    def missing(self, what: str) -> Unreadable:
        if self.got.rc != 0:
            return cause(self.got)
        if not self.got.out.strip():
            return Unreadable(Reason.EMPTY, "mlnx_qos: exit status 0 and no output")
        if self._mapped() is None:
            return Unreadable(Reason.CUT, f"mlnx_qos: the output ends before {what}")
        return Unreadable(Reason.EMPTY, f"mlnx_qos: this version does not show {what}")

    def os_controlled(self) -> Observed[bool]:
        said = {m[1] for ln in self.lines if (m := DCBX.fullmatch(ln))}
        if len(said) > 1:
            return Unreadable(Reason.GARBLED, "mlnx_qos: two DCBX modes")
        return Value(said == {"OS"}) if said else self.missing("the DCBX mode")

    def trust(self) -> Observed[str]:
        if REFUSED["trust"] in self.lines:
            return Unreadable(Reason.FAILED, f"mlnx_qos: {REFUSED['trust']}")
        said = {m[1] for ln in self.lines if (m := TRUST.fullmatch(ln))}
        if len(said) > 1:
            return Unreadable(Reason.GARBLED, f"mlnx_qos: trust is printed as {' and '.join(sorted(said))}")
        return Value(said.pop()) if said else self.missing("priority trust")

    def dscp_map(self) -> Observed[DscpMap]:
        trust = self.trust()
        if isinstance(trust, Value) and trust.value != "dscp":
            return Absent("DSCP entries")
        if not isinstance(trust, Value):
            return trust
        if "dscp2prio mapping:" not in self.lines:
            return self.missing("the DSCP map")
        rows = self.lines[self.lines.index("dscp2prio mapping:") + 1:]
        pairs: list[tuple[int, int]] = []
        for row in rows:
            if row.startswith(HEADERS):
                return _dscp_map(pairs)
            m = MAP_ROW.fullmatch(row)
            if not m:
                return Unreadable(Reason.GARBLED, f"mlnx_qos: not a row of the DSCP map: {row[:60]!r}")
            pairs += [(int(d), int(m[1])) for d in m[2].split(",")]
        if self.got.rc != 0 and "Traceback" in self.got.err and len({d for d, _ in pairs}) == 64:
            return _dscp_map(pairs)  # it died after the map, in the buffer query (25.01 and later)
        return self.missing("the end of the DSCP map")

    def _eight(self, word: str) -> Observed[tuple[int, ...]]:
        """A row of the PFC table."""
        start = next((i for i, ln in enumerate(self.lines) if ln in ("PFC configuration:", "PFC configuration")), None)
        if start is None:
            return self.missing("the PFC table")
        rows = [m for ln in self.lines[start:] if (m := EIGHT.fullmatch(ln)) and m[1] == word]
        found = {tuple(int(n) for n in m[2].split()) for m in rows}
        if len(found) > 1:
            return Unreadable(Reason.GARBLED, f"mlnx_qos: two different rows `{word}`")
        return Value(found.pop()) if found else self.missing(f"the PFC table's row `{word}`")

    def pfc(self) -> Observed[Priorities]:
        order, row = self._eight("priority"), self._eight("enabled")
        if not isinstance(row, Value):
            return row
        if order != Value(tuple(range(8))):
            return order if isinstance(order, Unreadable) else Unreadable(Reason.GARBLED, "mlnx_qos: priorities are not 0..7")
        if not set(row.value) <= {0, 1}:
            return Unreadable(Reason.GARBLED, f"mlnx_qos: PFC row holds {row.value}")
        return Value(Priorities.from_flags(row.value))

    def _mapped(self) -> tuple[tuple[int, ...], frozenset[str]] | None:
        """Traffic class of each of the eight priorities, and the schedulers in use; None until all eight were printed, each once."""
        tcs: dict[int, int] = {}
        tsas: set[str] = set()
        tc: int | None = None
        for ln in self.lines:
            if m := TC.fullmatch(ln):
                tc = int(m[1])
                tsas.add(m[2])
            elif (m := TC_PRIORITY.fullmatch(ln)) and tc is not None:
                if int(m[1]) in tcs:
                    return None
                tcs[int(m[1])] = tc
        return (tuple(tcs[p] for p in range(8)), frozenset(tsas)) if len(tcs) == 8 else None

    def prio_tc(self) -> Observed[tuple[int, ...]]:
        mapped = self._mapped()
        return Value(mapped[0]) if mapped else self.missing("the traffic classes of all eight priorities")

    def ets(self) -> Observed[bool]:
        mapped = self._mapped()
        return Value("ets" in mapped[1]) if mapped else self.missing("the schedulers of all traffic classes")

    def _no_buffers(self) -> bool:
        """The driver refused, and the tool went on: without any DCB it says the same words."""
        return REFUSED["buffers"] in self.lines and any(ln.startswith("PFC configuration") for ln in self.lines)

    def prio_buffer(self) -> Observed[tuple[int, ...]]:
        if self._no_buffers():
            return Absent("buffers of this driver")
        row = self._eight("buffer")
        return row if not isinstance(row, Value) or max(row.value) <= 7 else Unreadable(Reason.GARBLED, "mlnx_qos: buffer above 7")

    def buffer_bytes(self) -> Observed[tuple[int, ...]]:
        if self._no_buffers():
            return Absent("buffers of this driver")
        said = {m[1] for ln in self.lines if (m := BUFFERS.fullmatch(ln))}
        if len(said) != 1:
            return Unreadable(Reason.GARBLED, "mlnx_qos: two buffer lists") if said else self.missing("receive buffers")
        return Value(tuple(int(n) for n in said.pop().split(",")))


def _dscp_map(pairs: list[tuple[int, int]]) -> Observed[DscpMap]:
    try:
        return Value(DscpMap.of(pairs))
    except ValueError as e:
        return Unreadable(Reason.GARBLED, f"mlnx_qos: {e}")
