"""One run of nccl-tests as its lines come in."""

from __future__ import annotations

import re
from enum import IntEnum

from fabrictool.collective.lines import Piece
from fabrictool.collective.model import NO_GATE, NOT_SAID, Bounds, Device, Parameters, Row, RunError, TestRun
from fabrictool.collective.rows import Joiner, Layout, begins, layout_of, words_of
from fabrictool.model import Observed, Reason, Unreadable, Value


class Stage(IntEnum):
    """How far the output of a run has come. Every head line stands at most once, in this order."""

    NOTHING = -1
    PROMPT = 0  # the command as a person typed it
    USAGE = 1  # usage or an argument error: nothing else follows
    JSON = 2
    VERSION = 3
    START = 4
    PARAMETERS = 5
    BODY = 6


HEADS = (("# Writing JSON output to ", Stage.JSON), ("# skipping json output", Stage.JSON),
         ("# nccl-tests version ", Stage.VERSION), ("# Collective test starting:", Stage.START), ("# nThread ", Stage.PARAMETERS))
PROMPT = re.compile(r"(?:\[?[\w.-]{1,64}@[\w.-]{1,64}[^$#]{0,100})?\$ .*_perf|\[?[\w.-]{1,64}@[\w.-]{1,64}[^$#]{0,100}# .*_perf")
VERSION = re.compile(r"# nccl-tests version (\S{1,40})(?: \(\w{1,40}\))? nccl-headers=[0-9]{1,7} nccl-library=([0-9]{1,7})\s*$")
START = re.compile(r"# Collective test starting: (\S{1,200})\s*$")
PARAMETERS = re.compile(
    r"# nThread ([0-9]{1,9}) nGpus ([0-9]{1,9}) minBytes ([0-9]{1,19}) maxBytes ([0-9]{1,19}) step: ([0-9]{1,19})\((factor|bytes)\) "
    r"warmup iters: ([0-9]{1,9}) iters: ([0-9]{1,9})(?: agg iters: ([0-9]{1,9}))? validation: ([0-9]{1,9})(?: graph: ([0-9]{1,9}))?")
DEVICE = re.compile(r"#\s+Rank\s+([0-9]{1,7})(?:\s+Group\s+([0-9]{1,7}))?(?:\s+Pid\s+([0-9]{1,10}))?\s+on\s+(\S{1,255})\s+"
                    r"device\s+([0-9]{1,4})\s+\[([0-9A-Fa-fx:.]{1,20})\](.{0,120})")
REDUCED = re.compile(r"# Reducing maxBytes to ([0-9]{1,19}) due to memory limitation")
BOUNDS = re.compile(r"(?:^|#)\s*Out of bounds values\s*:\s*([0-9]{1,10}) (OK|FAILED)\b")
AVERAGE = re.compile(r"(?:^|#)\s*Avg bus bandwidth\s*:\s*([0-9][0-9.]{0,20}(?:e[+-][0-9]{2,3})?)(?:\s+(OK|FAILED))?\s*$")
CONCLUDED = re.compile(r"# Collective test concluded: \S")
LIBRARY = re.compile(r"NCCL version ([0-9]{1,3}(?:\.[0-9]{1,3}){1,3})")
RCCL = re.compile(r"rccl-tests: Version (\S{1,80})")
STATUS = re.compile(r"\s*rc=([0-9]{1,3})\s*")


def head_of(text: str) -> Stage | None:
    return next((stage for start, stage in HEADS if text.startswith(start)), None)


def is_prompt(text: str) -> bool:
    return "_perf" in text and bool(PROMPT.match(text.lstrip()))


def library_version(code: int) -> str:
    """`22809` -> `2.28.9`; up to 2.8 a thousand stood for the first number."""
    major, rest = divmod(code, 10_000 if code >= 10_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


class Builder:
    """Takes the pieces of one run. `stream`: the tag of whoever printed its head."""

    def __init__(self) -> None:
        self.stage = Stage.NOTHING
        self.stream = ""
        self.lines = (0, 0)
        self.modern = False  # a build that prints a closing line of its own
        self.layout: Layout | None = None
        self.joiners: dict[str, Joiner] = {}
        self.errors: list[RunError] = []
        self.devices: list[Device] = []
        self.program: Observed[str] = NOT_SAID
        self.version: Observed[str] = NOT_SAID
        self.nccl: Observed[str] = NOT_SAID
        self.parameters: Observed[Parameters] = NOT_SAID
        self.bounds: Observed[Bounds] = NOT_SAID
        self.average: Observed[float] = NOT_SAID
        self.average_ok: Observed[bool] = NO_GATE
        self.concluded = False
        self.reduced: int | None = None
        self.json_path = ""
        self.status: int | None = None

    def touch(self, line: int) -> None:
        first, last = self.lines
        self.lines = (first or line, max(last, line))

    @property
    def closed(self) -> bool:
        return self.concluded or self.status is not None or (not self.modern and isinstance(self.average, Value))

    @property
    def unfinished(self) -> bool:
        """Whether a row was begun, or something like one: too little to tell that this is nccl-tests at all."""
        return any(j.words or j.fragments for j in self.joiners.values())

    def may_go_on(self, stage: Stage) -> bool:
        """Whether a head line of that stage can still be of this run."""
        if self.closed:
            return False
        return self.stage <= stage if stage is Stage.USAGE else self.stage < stage and self.stage is not Stage.USAGE

    def would_begin(self, piece: Piece) -> bool:
        """Whether the piece, after the end of this run, shows that another one began without a head."""
        text = piece.text
        return bool(begins(words_of(piece)) or layout_of(text) or DEVICE.search(text) or BOUNDS.search(text))

    def error(self, error: RunError) -> None:
        self.touch(error.line)
        self.errors.append(error)

    def say(self, piece: Piece) -> None:
        """A head line."""
        self.touch(piece.line)
        text = piece.text.strip()
        broken = Unreadable(Reason.GARBLED, f"line {piece.line}: {text[:80]!r}")
        if text.startswith("# Writing JSON"):
            self.json_path = text.removeprefix("# Writing JSON output to ")[:1024]
        elif self.stage is Stage.VERSION:
            m = VERSION.search(text)
            self.modern = True
            self.version, self.nccl = (Value(m[1]), Value(library_version(int(m[2])))) if m else (broken, broken)
        elif self.stage is Stage.START:
            m = START.search(text)
            self.modern = True
            self.program = Value(m[1]) if m else broken
        elif self.stage is Stage.PARAMETERS:
            m = PARAMETERS.search(text)
            self.modern = self.modern or "unalign" in text
            self.parameters = _parameters(m) if m else broken

    def take(self, piece: Piece) -> bool:
        """Any other line; whether it is one of nccl-tests."""
        text = piece.text
        known = self._footer(text) or self._body(text)
        if not known and not self.closed and "#" not in text:
            known = self.joiners.setdefault(piece.stream, Joiner()).take(piece, self.layout)
        if known:
            self.touch(piece.line)
            self.stage = Stage.BODY
        status = STATUS.fullmatch(text)
        if status:
            self.touch(piece.line)
            self.status = int(status[1])
        return bool(known)

    def _body(self, text: str) -> bool:
        layout = layout_of(text)
        if layout:
            self.layout = layout
            return True
        device = DEVICE.search(text) if "Rank" in text else None
        if device:
            rank, group, pid, host, number, bus, gpu = device.groups()
            self.devices.append(Device(int(rank), host, int(number), gpu.strip(), int(pid) if pid else None, bus, int(group or 0)))
            return True
        reduced = REDUCED.search(text)
        if reduced:
            self.reduced = int(reduced[1])
            return True
        rccl = RCCL.search(text)
        if rccl:
            self.version = Value(rccl[1])
            return True
        library = LIBRARY.search(text)
        if library and not isinstance(self.nccl, Value):
            self.nccl = Value(library[1])
        return False

    def _footer(self, text: str) -> bool:
        bounds, average = BOUNDS.search(text), AVERAGE.search(text)
        if bounds:
            agrees = (int(bounds[1]) == 0) == (bounds[2] == "OK")
            said = Value(Bounds(bounds[2])) if agrees else Unreadable(Reason.GARBLED, f"out of bounds: {bounds[1]} {bounds[2]}")
            self.bounds = self.bounds if self.bounds == Value(Bounds.FAILED) else said
        if average:
            self.average = Value(float(average[1]))
            self.average_ok = Value(average[2] == "OK") if average[2] else NO_GATE
        concluded = bool(CONCLUDED.search(text))
        self.concluded = self.concluded or concluded
        if bounds or average or concluded:
            for joiner in self.joiners.values():
                joiner.give_up()
            return True
        return False

    def done(self) -> TestRun:
        for joiner in self.joiners.values():
            joiner.give_up(cut=True)
        rows = tuple(sorted((r for j in self.joiners.values() for r in j.rows), key=lambda r: r.line))
        fragments = tuple(sorted((f for j in self.joiners.values() for f in j.fragments), key=lambda f: f.line))
        concluded = self.concluded or (not self.modern and isinstance(self.average, Value))
        return TestRun(
            program=self.program, version=self.version, nccl=self.nccl, parameters=self.parameters, devices=tuple(self.devices),
            rows=rows, fragments=fragments, table=self.layout is not None or bool(rows),
            missing_rows=missing(self.parameters, self.reduced, rows, len(fragments)) if concluded else 0,
            cpu_time=bool(self.layout and self.layout.cpu_time), bounds=self.bounds, average_busbw=self.average,
            average_ok=self.average_ok, concluded=concluded, reduced_bytes=self.reduced, errors=tuple(self.errors),
            json_path=self.json_path, exit_status=self.status, lines=self.lines)


def _parameters(m: re.Match[str]) -> Value[Parameters]:
    threads, gpus, low, high, step, unit, warmup, iterations, agg, validation, graph = m.groups()
    return Value(Parameters(int(threads), int(gpus), int(low), int(high), int(step), unit == "factor", int(warmup), int(iterations),
                            int(validation), int(agg or 1), int(graph or 0)))


def missing(parameters: Observed[Parameters], reduced: int | None, rows: tuple[Row, ...], fragments: int) -> int:
    """How many rows a whole table would have more than this one, by nccl-tests' own loop over sizes (TimeTest in its common.cu)."""
    if not isinstance(parameters, Value):
        return 0
    p = parameters.value
    top = min(p.max_bytes, reduced if reduced is not None else p.max_bytes)
    if p.min_bytes > top or p.step < 1 or (p.by_factor and (p.step < 2 or p.min_bytes < 1)):
        return 0
    sizes, size = 0, p.min_bytes
    if p.by_factor:
        while size <= top:
            sizes, size = sizes + 1, size * p.step
    else:
        sizes = (top - size) // p.step + 1
    tables = len({(r.type, r.redop, r.root) for r in rows}) or 1
    return max(0, sizes * tables - len(rows) - fragments)
