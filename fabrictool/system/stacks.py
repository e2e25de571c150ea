"""Stack dumps: py-spy (with and without --native), gdb's `thread apply all bt`, eu-stack and pstack, Python's faulthandler; text -> where
each process stands.

Never raises. What is cut keeps the frames that are whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.system.frames import LONGEST, Frame, native, short
from fabrictool.system.phases import SIGNS, Phase, Sign

KERNEL = "kernel"
FAULT = "faulthandler"
MOST_FRAMES = 400  # of one thread
MOST_THREADS = 2000

_PROCESS = re.compile(r"Process (\d{1,10}): ?(.*)$")
_EU_PROCESS = re.compile(r"PID (\d{1,10}) - \S{1,60}$")
_GDB_PROCESS = re.compile(r"Attaching to (?:program: .{0,500}, )?process (\d{1,10})"
                          r"|\[Inferior \d{1,4} \(process (\d{1,10})\) detached\]")
_PYSPY_THREAD = re.compile(r"Thread (0x[0-9A-Fa-f]{1,16}|\d{1,10}) \(([a-z+]{1,20})\)(?:: ?\"(.{0,200})\")?$")
_GDB_THREAD = re.compile(r"Thread \d{1,6} \((?:Thread 0x[0-9a-f]{1,16} \()?LWP (\d{1,10})\)?(?: \"(.{0,64})\")?\):?$")
_EU_THREAD = re.compile(r"TID (\d{1,10})(?: \"?(.{0,64}?)\"?)?:$")
_FAULT_THREAD = re.compile(r"(?:Current thread|Thread) (0x[0-9A-Fa-f]{1,16})(?: \[(.{0,64}?)\])?(?: \([^()]{1,40}\))? "
                           r"\(most recent call first\):$")
_FAULT_FRAME = re.compile(r"  File \"(.{1,4000})\", line (\d{1,9}|\?\?\?) in (.{1,400})$")
# What faulthandler prints before the threads: a dump of one process.
_FAULT = re.compile(r"Timeout \((?:\d{1,4} days?, )?\d{1,3}:\d\d:\d\d(?:\.\d{1,6})?\)!$|Fatal Python error: .{1,200}$")
_PYSPY_FRAME = re.compile(r" {2,8}(\S.*?) \(([^()]{1,4000})\)$")
_NUMBERED = re.compile(r"#\d{1,4} {1,4}(?:0x[0-9a-fA-F]{1,16}(?: in| -)? )?(?:- \d{1,2} )?(\S.*)$")
_PROMPT = re.compile(r"\(gdb\) ?")
_KERNEL_TASK = re.compile(r"@task (\d{1,10}) (\S{1,64}) (\S{1,100})(?: .{0,200})?$")  # node/hang.sh, where no tool can read the stack


@dataclass(frozen=True, slots=True)
class Thread:
    """`frames`: innermost first."""

    tid: str
    name: str
    frames: tuple[Frame, ...]

    def has(self, sign: Sign) -> Frame | None:
        """The frame by which the sign is seen."""
        for at, frame in enumerate(self.frames):
            if sign.of & {frame.function, frame.name} and sign.file in frame.where and (
                    not sign.under or any(sign.under & {f.function, f.name} for f in self.frames[at + 1:])):
                return frame
        return None


@dataclass(frozen=True, slots=True)
class Dump:
    """One process. `pid` None: the dump does not tell. `native`: it shows frames of C and C++ too."""

    tool: str
    pid: int | None
    command: str
    threads: tuple[Thread, ...]

    @property
    def native(self) -> bool:
        frames = (f for t in self.threads for f in t.frames)
        return self.tool != KERNEL and any(".so" in f.where or f.function.startswith("nccl") or "::" in f.function for f in frames)


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a process stands. `frame`: the one that tells; `thread` its thread's name."""

    phase: Phase
    frame: Frame | None = None
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.phase} ({self.frame.name})" if self.frame else str(self.phase)


def stand(dump: Dump) -> Stand:
    """Of all threads, the main one first. No stack at all is UNKNOWN, a stack without a sign OTHER."""
    threads = sorted(dump.threads, key=lambda t: t.name != "MainThread" and t.tid != str(dump.pid))
    if dump.tool == KERNEL:  # a futex or a poll: every phase ends there
        return Stand(Phase.UNKNOWN, threads[0].frames[0] if threads else None)
    for thread in threads:
        for sign in SIGNS:
            frame = thread.has(sign)
            if frame is not None:
                return Stand(sign.phase, frame, thread.name)
    first = next((t for t in threads if t.frames), None)
    return Stand(Phase.OTHER, first.frames[0], first.name) if first else Stand(Phase.UNKNOWN)


def parse(text: str) -> tuple[Dump, ...]:
    """Every process of a text that may hold several dumps."""
    reader = _Reader()
    for raw in text.split("\n"):
        line = _PROMPT.sub("", raw.rstrip("\r"))[:LONGEST] if "(gdb)" in raw[:8] else raw.rstrip("\r")
        if len(line) <= LONGEST:
            reader.line(line)
    return reader.done()


class _Reader:
    def __init__(self) -> None:
        self._dumps: list[Dump] = []
        self._threads: list[Thread] = []
        self._frames: list[Frame] = []
        self._head: tuple[str, str] | None = None  # of the thread whose frames are read
        self._process: tuple[str, int | None, str] | None = None

    def line(self, line: str) -> None:
        for pattern, tool in ((_PROCESS, "py-spy"), (_EU_PROCESS, "eu-stack")):
            m = pattern.match(line)
            if m:
                self._close()
                self._process = (tool, int(m[1]), m[2].strip() if tool == "py-spy" else "")
                return
        m = _GDB_PROCESS.search(line) if "rocess" in line else None
        if m:
            self._gdb(int(m[1] or m[2]), attached=bool(m[1]))
            return
        for pattern, tool in ((_PYSPY_THREAD, "py-spy"), (_GDB_THREAD, "gdb"), (_EU_THREAD, "eu-stack")):
            m = pattern.match(line)
            if m:
                self._thread(tool, m[1], (m[3] if tool == "py-spy" else m[2]) or "")
                return
        if _FAULT.match(line):
            self._close()
            self._process = (FAULT, None, "")
            return
        m = _FAULT_THREAD.match(line)
        if m:
            self._thread(FAULT, m[1], m[2] or "")
            return
        m = _KERNEL_TASK.match(line)
        if m:
            self._thread(KERNEL, m[1], m[2])
            self._frames.append(Frame(m[3], "kernel"))
            return
        self._frame(line)

    def _gdb(self, pid: int, attached: bool) -> None:
        if attached:
            self._close()
            self._process = ("gdb", pid, "")
            return
        self._end_thread()
        if self._process and self._process[0] == "gdb":
            self._process = ("gdb", pid, "")
        self._close()

    def _thread(self, tool: str, tid: str, name: str) -> None:
        self._end_thread()
        if self._process is None or (self._process[0] != tool):
            self._close()
            self._process = (tool, None, "")
        if len(self._threads) < MOST_THREADS:
            self._head = (tid, name)

    def _frame(self, line: str) -> None:
        numbered = _NUMBERED.match(line)
        if numbered and self._head is None and self._process is not None and self._process[0] == "gdb":
            self._head = ("", "")  # a plain `bt` of one thread
        if self._head is None or len(self._frames) >= MOST_FRAMES:
            return
        if self._process is not None and self._process[0] == FAULT:
            self._fault(line)
            return
        if numbered:
            self._frames.append(native(numbered[1]))
            return
        m = _PYSPY_FRAME.match(line)
        if m:
            self._frames.append(Frame(short(m[1]), m[2]))
        elif re.match(r" {2,8}\S+$", line):  # py-spy: a native frame whose library is not known
            self._frames.append(Frame(short(line.strip())))

    def _fault(self, line: str) -> None:
        """A thread ends at the first line that is no frame: what the process printed before and after stands around it."""
        m = _FAULT_FRAME.match(line)
        if m:
            self._frames.append(Frame(short(m[3]), f"{m[1]}:{m[2]}"))
        else:
            self._end_thread()

    def _end_thread(self) -> None:
        if self._head is not None:
            self._threads.append(Thread(*self._head, tuple(self._frames)))
        self._head, self._frames = None, []

    def _close(self) -> None:
        self._end_thread()
        if self._process is not None and self._threads:
            tool, pid, command = self._process
            if pid is None and tool not in ("py-spy", FAULT):  # the first thread of a process has its number
                pid = min((int(t.tid) for t in self._threads if re.fullmatch(r"[0-9]{1,18}", t.tid)), default=None)
            self._dumps.append(Dump(tool, pid, command, tuple(self._threads)))
        self._threads, self._process = [], None

    def done(self) -> tuple[Dump, ...]:
        self._close()
        return tuple(self._dumps)


def merged(dumps: tuple[Dump, ...]) -> tuple[Dump, ...]:
    """One for each pid: of two dumps of a process the one with native frames, else the later one."""
    best: dict[int | None, Dump] = {}
    loose: list[Dump] = []
    for dump in dumps:
        if dump.pid is None:
            loose.append(dump)
        elif dump.pid not in best or dump.native or not best[dump.pid].native:
            best[dump.pid] = dump
    return (*best.values(), *loose)
