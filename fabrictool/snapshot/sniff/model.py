"""What pasted text is made of: lines that know where they stood, and pieces that one tool printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a piece of text is. The value is its name in reports."""

    NCCL_LOG = "nccl-log"
    NCCL_TESTS = "nccl-tests"
    NCCL_TESTS_JSON = "nccl-tests-json"
    ALLREDUCE = "fabrictool-allreduce"
    MLNX_QOS = "mlnx_qos"
    DCB = "dcb"
    IBV_DEVINFO = "ibv_devinfo"
    IBSTAT = "ibstat"
    SHOW_GIDS = "show_gids"
    IBDEV2NETDEV = "ibdev2netdev"
    RDMA_LINK = "rdma-link"
    RDMA_RESOURCE = "rdma-resource"
    RDMA_STATISTIC = "rdma-statistic"
    IP_JSON = "ip-json"
    IP_TEXT = "ip"
    ETHTOOL_STATS = "ethtool-statistics"
    ETHTOOL_PAUSE = "ethtool-pause"
    ETHTOOL = "ethtool"
    SOCKETS = "ss"
    HOSTS = "hosts"
    ENV = "env"
    NETPLAN = "netplan"
    NM_KEYFILE = "networkmanager"
    NETWORKD = "networkd"
    KERNEL = "kernel-log"
    PY_SPY = "py-spy"
    GDB = "gdb"
    FAULTHANDLER = "faulthandler"
    UCX = "ucx"
    UCX_INFO = "ucx_info"
    PROGRAM = "program-log"
    PERFTEST = "perftest"
    PING = "ping"
    NVIDIA_TOPO = "nvidia-smi topo -m"
    NVIDIA_SMI = "nvidia-smi"
    UNKNOWN = "unrecognised"


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end and without what was wrapped around it. `number`: from 1, in the input as it was given."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Input:
    """One file, or stdin. `name` as people know it; `notes`: what of it was not read, and why."""

    name: str
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """Lines that one process or pod wrote. `label`: whose, where a prefix told ("" = not told); `host`: where the prefix named one."""

    source: str
    lines: tuple[Line, ...]
    label: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one tool printed. `command`: the command line before it, if there was a prompt; `host`: of the prompt or prefix; `rc`: the
    exit status, where the text told it; `path`: the file whose text it is, where that is known. Lines are in order, and not always
    neighbours: logs interleave."""

    kind: Kind
    source: str
    lines: tuple[Line, ...]
    command: str = ""
    host: str = ""
    rc: int | None = None
    path: str = ""
    label: str = ""
    errors: tuple[Line, ...] = field(default=())  # after a `[stderr]` line

    @property
    def text(self) -> str:
        """The lines, each with its end: the piece is whole as far as it goes."""
        return "".join(f"{ln.text}\n" for ln in self.lines)

    @property
    def first_line(self) -> int:
        return self.lines[0].number if self.lines else 0

    @property
    def last_line(self) -> int:
        return self.lines[-1].number if self.lines else 0

    @property
    def place(self) -> str:
        """`paste.txt:3-20`, for people."""
        label = f" ({self.label})" if self.label else ""
        span = str(self.first_line) if self.first_line == self.last_line else f"{self.first_line}-{self.last_line}"
        return f"{self.source}:{span}{label}"

    def find(self, pattern: str | re.Pattern[str]) -> Iterator[tuple[Line, re.Match[str]]]:
        """The lines in which `pattern` is found, with the match. Only the first 4,096 characters of a line are looked at."""
        compiled = re.compile(pattern)
        for line in self.lines:
            m = compiled.search(line.text[:LOOK])
            if m:
                yield line, m

    def quote(self, line: Line) -> str:
        """`file:line: text`."""
        return f"{self.source}:{line.number}: {' '.join(line.text[:2 * QUOTE].split(chr(9))).strip()[:QUOTE]}"


LOOK = 4096  # characters of a line that patterns see
QUOTE = 300  # characters of a line that a report shows
