"""What one interface's QoS is, as one reader or both readers saw it. No I/O, no judgement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fabrictool.model import Absent, Observed, Reason, Unreadable, Value
from fabrictool.ports import Ports
from fabrictool.snapshot.model import FileText
from fabrictool.values import Dscp, Priorities

T = TypeVar("T")

NOT_READ = Unreadable(Reason.NOT_COLLECTED, "not collected")


@dataclass(frozen=True, slots=True)
class DscpMap:
    """The kernel's table of DSCP entries, (DSCP 0..63, priority 0..7) in order.

    A DSCP may have no entry, and with drivers other than mlx5 several: their kernel adds a new one beside the old.
    """

    entries: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> DscpMap:
        """ValueError when a DSCP or priority is out of range."""
        seen = set(pairs)
        for dscp, priority in seen:
            Dscp(dscp)
            if not 0 <= priority <= 7:
                raise ValueError(f"priority {priority} is not 0..7")
        return cls(tuple(sorted(seen)))

    def priorities(self, dscp: int) -> tuple[int, ...]:
        return tuple(p for d, p in self.entries if d == dscp)

    @property
    def whole(self) -> bool:
        """Every DSCP has an entry."""
        return len({d for d, _ in self.entries}) == 64


@dataclass(frozen=True, slots=True)
class View:
    """One interface through one reader.

    `dcb`: false = the driver answered that it has no DCB here. `os_controlled`: DCBX is the host's (not the firmware's).
    `dscp_map` is absent while trust is not dscp. `prio_tc`: traffic class of each priority; `ets`: some class is scheduled by
    weight. `prio_buffer`: buffer of each priority; `buffer_bytes`: bytes of each buffer. `lldpad`: the tool warned of it.
    """

    dcb: Observed[bool] = NOT_READ
    os_controlled: Observed[bool] = NOT_READ
    trust: Observed[str] = NOT_READ
    dscp_map: Observed[DscpMap] = NOT_READ
    pfc: Observed[Priorities] = NOT_READ
    prio_tc: Observed[tuple[int, ...]] = NOT_READ
    ets: Observed[bool] = NOT_READ
    prio_buffer: Observed[tuple[int, ...]] = NOT_READ
    buffer_bytes: Observed[tuple[int, ...]] = NOT_READ
    lldpad: bool = False


def blind(why: Unreadable) -> View:
    """A reader that saw nothing, and why."""
    return View(why, why, why, why, why, why, why, why, why)


def unsupported(why: str) -> View:
    """The driver answered: no DCB on this interface."""
    return View(Value(False), *(Unreadable(Reason.FAILED, why) for _ in range(8)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Both(Generic[T]):
    """One value through both readers. `first` is mlnx_qos, `second` is dcb."""

    first: Observed[T]
    second: Observed[T]

    @property
    def disagree(self) -> bool:
        """Both answered, and not the same."""
        if isinstance(self.first, Unreadable) or isinstance(self.second, Unreadable):
            return False
        if isinstance(self.first, Absent) and isinstance(self.second, Absent):
            return False
        return self.first != self.second

    @property
    def value(self) -> Observed[T]:
        """The agreed value; one reader's where the other is silent; unreadable where both are, or where they disagree."""
        if self.disagree:
            return Unreadable(Reason.GARBLED, f"mlnx_qos says {_said(self.first)}, dcb says {_said(self.second)}")
        if not isinstance(self.first, Unreadable):
            return self.first
        if not isinstance(self.second, Unreadable):
            return self.second
        return Unreadable(self.first.reason, f"{self.first.why}; second reader: {self.second.why}")

    @property
    def note(self) -> str:
        """Who read it, where only one did."""
        if isinstance(self.first, Unreadable) and not isinstance(self.second, Unreadable):
            return f" (dcb alone: {self.first.why})"
        return ""


def _said(seen: Observed[T]) -> str:
    if isinstance(seen, Value):
        if isinstance(seen.value, DscpMap):
            odd = ",".join(f"{d}:{p}" for d, p in seen.value.entries if p != d >> 3)[:80]
            return f"{len(seen.value.entries)} entries, {f'{odd} beside the default' if odd else 'all as by default'}"
        if isinstance(seen.value, tuple):
            return ",".join(str(v) for v in seen.value)
        return str(seen.value)
    return "nothing is set" if isinstance(seen, Absent) else seen.why


@dataclass(frozen=True, slots=True)
class Pause:
    """Global pause (802.3x), each direction."""

    rx: bool
    tx: bool

    def __str__(self) -> str:
        return f"rx {'on' if self.rx else 'off'}, tx {'on' if self.tx else 'off'}"


@dataclass(frozen=True, slots=True)
class Ecn:
    """RoCE congestion control by priority, as sysfs offers it: notification point (marks) and reaction point (slows down)."""

    notify: tuple[tuple[int, bool], ...]
    react: tuple[tuple[int, bool], ...]
    cnp_dscp: int | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface, both readers."""

    name: str
    mlnx: View
    dcb: View
    pause: Observed[Pause] = NOT_READ
    ecn: Observed[Ecn] = NOT_READ

    @property
    def supported(self) -> Observed[bool]:
        """Whether the driver has DCB here; one reader that saw values proves it."""
        seen = (self.mlnx.dcb, self.dcb.dcb)
        for answer in (True, False):
            if Value(answer) in seen:
                return Value(answer)
        return Both(*seen).value

    @property
    def os_controlled(self) -> Both[bool]:
        return Both(self.mlnx.os_controlled, self.dcb.os_controlled)

    @property
    def trust(self) -> Both[str]:
        # dcb sees entries or none: it cannot tell `none` from `pcp`
        first, second = self.mlnx.trust, self.dcb.trust
        if first == Value("none") and second == Value("pcp"):
            second = first
        return Both(first, second)

    @property
    def dscp_map(self) -> Both[DscpMap]:
        return Both(self.mlnx.dscp_map, self.dcb.dscp_map)

    @property
    def pfc(self) -> Both[Priorities]:
        return Both(self.mlnx.pfc, self.dcb.pfc)

    @property
    def prio_tc(self) -> Both[tuple[int, ...]]:
        return Both(self.mlnx.prio_tc, self.dcb.prio_tc)

    @property
    def ets(self) -> Both[bool]:
        return Both(self.mlnx.ets, self.dcb.ets)

    @property
    def prio_buffer(self) -> Both[tuple[int, ...]]:
        return Both(self.mlnx.prio_buffer, self.dcb.prio_buffer)

    @property
    def buffer_bytes(self) -> Both[tuple[int, ...]]:
        return Both(self.mlnx.buffer_bytes, self.dcb.buffer_bytes)


@dataclass(frozen=True, slots=True)
class Writer:
    """A line of some file of the node that sets QoS. `enabled`: something starts it at boot (None: not a unit). `settings`: what it
    sets, as (aspect, value) with the value spelled as mlnx_qos takes it, "" = not understood; `interface`: "" = not literal."""

    path: str
    line: int
    text: str
    interface: str
    settings: tuple[tuple[str, str], ...]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Qos:
    """Everything of one node. `daemons`: processes that write QoS themselves; `files`: our own persistence files by path;
    `units`: state of our units as systemctl tells it, by unit name."""

    ports: Ports
    interfaces: Mapping[str, Interface]
    missing: Unreadable = NOT_READ
    daemons: tuple[str, ...] | Unreadable = ()
    writers: tuple[Writer, ...] | Unreadable = ()
    files: Mapping[str, Observed[FileText]] | Unreadable = field(default_factory=dict)
    units: Mapping[str, str] | Unreadable = field(default_factory=dict)

    def interface(self, name: str) -> Interface:
        found = self.interfaces.get(name)
        return found or Interface(name, blind(self.missing), blind(self.missing), self.missing, self.missing)
