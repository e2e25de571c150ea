"""What one run of nccl-tests (or of a program that prints like it) says of itself, whatever its layout: text of any build, JSON 1-3,
rccl-tests' list. No verdicts here: `result` judges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value

NOT_SAID = Unreadable(Reason.NOT_COLLECTED, "the output does not say it")
NO_GATE = Absent("NCCL_TESTS_MIN_BW")


@dataclass(frozen=True, slots=True)
class PerIteration:
    """Times of single iterations (-I), us; `cv_percent` = standard deviation / mean. `by_process_us`: one row per MPI process, one
    column per iteration, the slowest GPU of the process (JSON only)."""

    min_us: float
    max_us: float
    p99_us: float
    cv_percent: float
    by_process_us: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Deviation:
    """What builds before mid-2022 print instead of a count: the largest difference between an element and what it should be, without
    unit. `exceeded`: marked with an asterisk, that is, above the program's own tolerance for the type."""

    largest: float
    exceeded: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """One half of a row, out of place or in place. Bandwidths are decimal GB/s.

    `wrong`: elements that were not as expected; absent = not counted (`N/A`, or a build that prints a `deviation`). From a million on
    the program itself rounds to six digits.
    """

    time_us: float
    algbw_gbytes_per_s: float
    busbw_gbytes_per_s: float
    wrong: Observed[int]
    per_iteration: PerIteration | None = None
    deviation: Deviation | None = None

    @property
    def right(self) -> Observed[bool]:
        """Whether every element was as expected; absent when nobody looked."""
        if isinstance(self.wrong, Value):
            return Value(self.wrong.value == 0)
        return Value(not self.deviation.exceeded) if self.deviation and isinstance(self.wrong, Absent) else self.wrong


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `redop` and `root` are "" and None in the layouts that lack them. A placement that was not run is absent.
    `line`: 1-based, where it began (0: not from text)."""

    size_bytes: int
    count: int
    type: str
    redop: str
    root: int | None
    out_of_place: Placement | Absent
    in_place: Placement | Absent
    line: int = 0

    @property
    def placements(self) -> tuple[Placement, ...]:
        return tuple(p for p in (self.out_of_place, self.in_place) if isinstance(p, Placement))


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a result row that is cut, mixed with another writer's text, or not understood. `cut`: it ends as a row does whose
    later writes never came."""

    line: int
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """One rank. `device`, `pid`, `bus` (PCI, as printed) and `gpu` are None or "" where the layout lacks them."""

    rank: int
    host: str
    device: int | None
    gpu: str = ""
    pid: int | None = None
    bus: str = ""
    group: int = 0


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the program says it will run (the `# nThread` line). Sizes are bytes of the largest buffer per rank. `step`: a factor or
    bytes. `validation`: rounds of verification, 0 = off; `agg` is operations per iteration."""

    threads: int
    gpus_per_thread: int
    min_bytes: int
    max_bytes: int
    step: int
    by_factor: bool
    warmup: int
    iterations: int
    validation: int
    agg: int = 1
    graph: int = 0


class ErrorKind(StrEnum):
    """What stands behind a line of error text."""

    NCCL = "NCCL"  # a call of the library failed: its log says why
    CUDA = "CUDA"
    TIMEOUT = "timeout"  # the program's own -T, the launcher's or Slurm's limit
    GPUS = "too few GPUs"
    ARGUMENT = "bad argument"
    USAGE = "usage shown"  # an unknown option or -h: exit status 0 and nothing run
    DIED = "process died"  # the launcher or the shell saw a process end by a signal
    FOLLOWED = "test failure"  # the program's own trace of where it gave up
    LAUNCHER = "launcher"
    LAST = "last error"  # NCCL's last error text at the end: no failure by itself


@dataclass(frozen=True, slots=True)
class RunError:
    """A line that tells of something wrong. `host`, `rank`: of the process it is about, where the line names them."""

    kind: ErrorKind
    text: str
    host: str = ""
    rank: int | None = None
    line: int = 0


class Bounds(StrEnum):
    """The program's own verdict over all rows."""

    OK = "OK"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class TestRun:
    """Everything one run said.

    `version`: of nccl-tests; `nccl`: of the library, "2.28.9". `table`: its head was seen, so the communicator was up. `missing_rows`:
    how many the parameters ask for that are neither rows nor fragments. `cpu_time`: the time column is not the one that bandwidth is
    made of (-C). `bounds`: the line "Out of bounds values". `average_busbw`: over all sizes and both placements, GB/s: no threshold
    should hang on it. `average_ok`: only where NCCL_TESTS_MIN_BW was set. `concluded`: the closing line was seen. `reduced_bytes`:
    "Reducing maxBytes to". `json_path`: where it says it writes JSON. `started`, `ended`: local time of rank 0's host, "YYYY-MM-DD
    HH:MM:SS" (JSON only). `exit_status`: where a line `rc=N` gives it. `lines`: first and last line in the text, 1-based ((0, 0):
    nothing of nccl-tests was found). `others`: how many more runs the same text holds.
    """

    __test__ = False  # pytest: not a test class

    program: Observed[str] = NOT_SAID
    version: Observed[str] = NOT_SAID
    nccl: Observed[str] = NOT_SAID
    parameters: Observed[Parameters] = NOT_SAID
    devices: tuple[Device, ...] = ()
    rows: tuple[Row, ...] = ()
    fragments: tuple[Fragment, ...] = ()
    table: bool = False
    missing_rows: int = 0
    cpu_time: bool = False
    bounds: Observed[Bounds] = NOT_SAID
    average_busbw: Observed[float] = NOT_SAID
    average_ok: Observed[bool] = NO_GATE
    concluded: bool = False
    reduced_bytes: int | None = None
    errors: tuple[RunError, ...] = ()
    json_path: str = ""
    started: Observed[str] = NOT_SAID
    ended: Observed[str] = NOT_SAID
    exit_status: int | None = None
    lines: tuple[int, int] = (0, 0)
    others: int = 0

    def of_kind(self, *kinds: ErrorKind) -> tuple[RunError, ...]:
        return tuple(e for e in self.errors if e.kind in kinds)

    @property
    def of_nccl_tests(self) -> bool:
        """Whether any line of it is nccl-tests' own, not a launcher's or a shell's."""
        launcher = (ErrorKind.LAUNCHER, ErrorKind.DIED, ErrorKind.TIMEOUT, ErrorKind.LAST)
        told = [o for o in (self.program, self.version, self.parameters, self.bounds, self.average_busbw) if isinstance(o, Value)]
        return bool(self.devices or self.rows or self.fragments or self.table or self.concluded or self.json_path
                    or told or any(e.kind not in launcher or "Test timeout" in e.text for e in self.errors))

    @property
    def ranks(self) -> Observed[int]:
        """How many ranks took part: known only when the list of devices has no gap."""
        if not self.devices:
            return Unreadable(Reason.EMPTY, "no list of devices")
        if sorted(d.rank for d in self.devices) != list(range(len(self.devices))):
            return Unreadable(Reason.GARBLED, "the list of devices has gaps or doubles")
        return Value(len(self.devices))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Their names, in rank order, each once."""
        return tuple(dict.fromkeys(d.host for d in sorted(self.devices, key=lambda d: d.rank)))


@dataclass(frozen=True, slots=True)
class Asked:
    """What the run should have been, as far as the caller knows (None: does not matter or is not known).

    `started_s`, `ended_s`: the clock of rank 0's node, seconds since 1970; `utc_offset_s`: of that node's local time. `result_file`:
    the path from which a JSON result was read.
    """

    size_bytes: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    started_s: float | None = None
    ended_s: float | None = None
    utc_offset_s: int | None = None
    result_file: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended. `rc`: exit status, None = not known; `took_s`, `limit_s`: seconds, where known."""

    rc: int | None = None
    took_s: float | None = None
    limit_s: float | None = None
