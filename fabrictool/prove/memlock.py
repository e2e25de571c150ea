"""`memlock`: whether consumers may lock the memory that RDMA registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from fabrictool.model import Code, Finding, Observed, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.case import Case
from fabrictool.room import About
from fabrictool.snapshot import Snapshot, consumers
from fabrictool.snapshot.consumers import Consumer
from fabrictool.spec import NodeSpec
from fabrictool.system import ask_again, sections
from fabrictool.system.processes import Locked, Process, missing, shown
from fabrictool.system.processes import read as processes
from fabrictool.system.read import host
from fabrictool.system.units import locked as unit_limits

WHY = "registering memory beyond it fails (ibv_reg_mr: Cannot allocate memory): NCCL ends with an error, or other libraries use TCP"


def judge(case: Case) -> Iterator[Finding]:
    for name, want in case.wants.items():
        yield from _node(want, case.snap(name))


def _node(want: NodeSpec, snap: Snapshot) -> Iterator[Finding]:
    node = Subject(SubjectKind.NODE, (want.name,))
    needed = f"at least {shown(want.memlock.at_least)}, or unlimited"
    read = snap.raw(sections.PROCESSES.name)
    if isinstance(read, Unreadable):
        yield About(Code.MEMLOCK, node, "memlock.read", "").unknown(read, needed, ask_again(read, "memlock"))
        return
    if not want.env.consumers:
        yield About(Code.MEMLOCK, node, "memlock.consumers", "").skip("the spec names no consumers")
    running, known = consumers.read(snap), processes(snap)
    for pattern in want.env.consumers:
        about = About(Code.MEMLOCK, node, f"memlock.{pattern}", "")
        named = running if isinstance(running, Unreadable) else running.named(pattern)
        lost = next((x for x in (named, known) if isinstance(x, Unreadable)), None)
        if lost is not None:
            yield about.unknown(lost, needed)
        elif not named:
            yield _configured(about, pattern, want, snap, needed)
        elif not isinstance(named, Unreadable) and not isinstance(known, Unreadable):
            for consumer in named:
                yield _consumer(About(Code.MEMLOCK, node, f"memlock.{consumer.label}", ""), consumer, known, missing(snap), want,
                                needed)
    yield _login(node, want, snap, needed)


def _consumer(about: About, consumer: Consumer, known: Mapping[int, Process], gone: Unreadable, want: NodeSpec, needed: str) -> Finding:
    """The process that may lock least speaks for it. `gone`: what is said of one that is not among the known."""
    if not consumer.ranks:
        return about.unknown(Unreadable(Reason.EMPTY, f"no process of {consumer.label} could be read"), needed)
    seen = [(p.pid, known.get(p.pid)) for p in consumer.ranks]
    worst: tuple[int, int, Locked] | None = None
    least = ""
    for pid, process in seen:
        limited = _limited(process) if process is not None else gone
        if isinstance(limited, Unreadable):
            return about.unknown(Unreadable(limited.reason, f"process {pid} of {consumer.label}: {limited.why}"), needed)
        if isinstance(limited, str):
            least = least or limited
        elif limited.soft is None:
            least = least or "unlimited"
        elif worst is None or limited.soft < worst[0]:
            worst = limited.soft, pid, limited
    if worst is None:
        return about.ok(f"{least} ({len(seen)} processes)", needed)
    if worst[0] >= want.memlock.at_least:
        return about.ok(f"{worst[2]} (process {worst[1]})", needed)
    return about.fail(f"{worst[2]} (process {worst[1]})", needed, WHY, remedy=_remedy(consumer))


def _limited(process: Process) -> Locked | Unreadable | str:
    """A text where no limit applies."""
    free: Observed[bool] = process.may_lock_all
    if free == Value(True):
        return "CAP_IPC_LOCK, so no limit applies"
    if not isinstance(process.locked, Value):
        return process.locked if isinstance(process.locked, Unreadable) else Unreadable(Reason.EMPTY, "its limits are not told")
    if process.locked.value.soft is not None and isinstance(free, Unreadable):
        return free
    return process.locked.value


def _remedy(consumer: Consumer) -> str:
    if consumer.container is not None:
        return f"start {consumer.container.name} anew with --ulimit memlock=-1 (or --cap-add IPC_LOCK)"
    unit = consumer.label.removeprefix("systemd:")
    return f"LimitMEMLOCK=infinity in a drop-in of {unit}, systemctl daemon-reload, then restart it when its work allows"


def _configured(about: About, pattern: str, want: NodeSpec, snap: Snapshot, needed: str) -> Finding:
    """Nothing runs: what systemd would give, the least of all that the pattern names."""
    kind, _, unit = pattern.partition(":")
    if kind != "systemd":
        return about.ok("none is running", needed)
    limits = unit_limits(snap)
    if isinstance(limits, Unreadable):
        return about.unknown(limits, needed)
    loaded = [(name, got) for name, got in limits.items() if fnmatchcase(name, unit if "." in unit else f"{unit}.service")]
    if not loaded:
        return about.ok("not running, and not loaded by systemd", needed)
    unit, got = min(loaded, key=lambda one: float("inf") if one[1].soft is None else one[1].soft)
    if got.soft is None or got.soft >= want.memlock.at_least:
        return about.ok(f"not running; LimitMEMLOCK {got}", needed)
    return about.fail(f"not running; LimitMEMLOCK {got}", needed, WHY,
                      remedy=f"LimitMEMLOCK=infinity in a drop-in of {unit}, then systemctl daemon-reload")


def _login(node: Subject, want: NodeSpec, snap: Snapshot, needed: str) -> Finding:
    """What ranks get that are started over SSH, by mpirun or by hand."""
    about = About(Code.MEMLOCK, node, "memlock.login", "")
    got = host(snap).locked
    if not isinstance(got, Value):
        return about.unknown(got, needed, ask_again(got, "memlock") if isinstance(got, Unreadable) else "")
    if got.value.soft is None or got.value.soft >= want.memlock.at_least:
        return about.ok(f"a login: {got.value}", needed)
    return about.warn(f"a login: {got.value}", needed, "ranks that are started over SSH (mpirun, by hand) may not register more",
                      remedy="`* - memlock unlimited` in /etc/security/limits.d/ on the node; it counts for new logins")
