"""Kernel logs, stack dumps, and lines of UCX and NIXL."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fabrictool.collective import kvtransfer, ucx
from fabrictool.collective.ucx_judge import judge_ucx
from fabrictool.diagnose.model import Case, Judged, quoted, softened
from fabrictool.diagnose.proof import numbered
from fabrictool.diagnose.times import starting
from fabrictool.model import Code, Finding, Status
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line, Piece
from fabrictool.system import kernel, stacks, xid
from fabrictool.system.events import Device, Event, Hung, Link, Oom, Server, Trouble, Xid
from fabrictool.system.phases import READINGS, Phase

KERNEL = frozenset({Kind.KERNEL})
AGAIN = "take a second dump some seconds later, or let `fabrictool check hang -i INVENTORY` look at all ranks while it hangs"
STACKS = frozenset({Kind.PY_SPY, Kind.GDB, Kind.FAULTHANDLER})
UCX = frozenset({Kind.UCX, Kind.UCX_INFO})


def _line(piece: Piece, number: int) -> list[Line]:
    at = bisect_left(piece.lines, number, key=lambda ln: ln.number)
    return list(piece.lines[at:at + 1])


def judge_kernel(case: Case) -> Iterator[Judged]:
    piece = case.piece
    events = [e for e in kernel.read(numbered(piece)) if not (isinstance(e, Link) and starting(piece, e))]
    findings = [quoted(f, piece, _line(piece, at)) for f, at in _events(case, events)]
    if not findings:
        findings = [_nothing(case, f"{len(piece.lines)} lines of a kernel log",
                             "no event of a kind that is known here: no OOM, Xid, NIC, link, storage or hung task in these lines",
                             "paste the whole log of the time in question: dmesg -T, or journalctl -k")]
    yield Judged(Kind.KERNEL, (piece,), tuple(findings), case.node, ("that an event belongs to the job: compare its time with the job's",))


def _nothing(case: Case, got: str, why: str, remedy: str) -> Finding:
    return Finding(Code.NOTHING_KNOWN, case.subject, "system.known", "", got, "", why, Status.UNKNOWN, remedy=remedy)


def _events(case: Case, events: Sequence[Event]) -> Iterator[tuple[Finding, int]]:
    """One finding for each meaning, with its first line. A link that came back counts as an event all the same."""
    seen: dict[tuple[str, str], int] = {}
    back = {e.server: e.back for e in events if isinstance(e, Server)}  # as the last line about each has it
    for event in events:
        made = _event(case, event)
        if made is None:
            continue
        if isinstance(event, Server) and back[event.server]:
            made = softened(made, "it came back later in this log")
        key = (made.code, made.path)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 1:
            yield made, event.line.number


def _event(case: Case, event: Event) -> Finding | None:
    text = event.line.text.strip()[:200]
    node = case.subject
    if isinstance(event, Oom):
        whose = f" of {event.whose}" if event.whose else ""
        scope = f"the limit of {event.scope}" if event.scope else "the node's own memory"
        return About(Code.OOM_KILLED, node, f"system.oom.{event.process}", "").fail(
            f"{event.process} (pid {event.pid}){whose}", "no process killed",
            f"{scope} was exhausted; frames of a file system in the trace are no cause",
            remedy="raise the limit, or let the program take less: batch, cache, workers; on unified memory a smaller size")
    if isinstance(event, Xid):
        meaning = xid.meaning(event.number)
        about = About(Code.GPU_XID, node, f"system.xid.{event.pci}.{event.number}", "")
        make = about.fail if meaning.weight is xid.Weight.FATAL or event.fatal else about.warn
        return make(f"Xid {event.number} on {event.pci}" + (f" ({event.process})" if event.process else ""), "none", meaning.text,
                    remedy=meaning.fix)
    if isinstance(event, Link):
        about = About(Code.LINK_EVENTS, node, f"system.link.{event.interface or event.pci}", "")
        return None if event.up else about.fail(
            f"{event.interface or event.pci} lost its link", "a link that stays", "connections over it broke or stalled",
            remedy="cable, transceiver, switch port; or somebody set the interface down, or its MTU, at that time")
    if isinstance(event, Server):
        return None if event.back else About(Code.STORAGE_TIMEOUT, node, f"system.server.{event.server}", "").fail(
            f"{event.server} does not answer", "an answer", "whoever reads or writes there waits",
            remedy="look at that server and the way to it")
    if isinstance(event, Hung):
        what = f"{event.process or 'a CPU'}" + (f" for {event.seconds} s" if event.seconds else "")
        return About(Code.HUNG_TASK, node, f"system.hung.{event.process}", "").fail(
            f"{'stuck' if event.lockup else 'blocked'}: {what}", "none", "a task that waits in the kernel: storage, memory or a driver",
            remedy="see what it waits for in the trace below the line; storage first")
    return _device(case, event, text)


def _device(case: Case, event: Device, text: str) -> Finding:
    where = event.interface or event.device
    storage = event.trouble in (Trouble.STORAGE, Trouble.STORAGE_SLOW)
    slow = event.trouble is Trouble.STORAGE_SLOW
    code = Code.STORAGE_TIMEOUT if slow else Code.STORAGE_ERROR if storage else Code.LINK_EVENTS
    about = About(code, case.subject, f"system.device.{event.trouble}.{where}", "")
    make = about.warn if event.trouble in (Trouble.PCIE_CORRECTED, Trouble.NIC_POWER) else about.fail
    remedy = "look at the device's health (smartctl, nvme smart-log) and its cables" if storage else \
        "a NIC in this state drops traffic or resets: firmware, seat, power; then exchange it"
    return make(f"{event.trouble} on {where}", "none", text, remedy=remedy)


def judge_stacks(cases: Sequence[Case]) -> Iterator[Judged]:
    """One result over all dumps of an input: who stands apart tells more than each alone."""
    stands: list[tuple[Case, stacks.Dump, stacks.Stand, Line]] = []
    for case in cases:
        for dump in stacks.merged(stacks.parse(case.piece.text)):
            at = stacks.stand(dump)
            line = next((ln for ln in case.piece.lines if at.frame and at.frame.name in ln.text), case.piece.lines[0])
            stands.append((case, dump, at, line))
    waiting = [s for s in stands if s[2].phase.waits]
    gone = [f for case in cases for f in _gone(case, len(waiting))]
    findings = [quoted(f, case.piece, [line]) for case, dump, at, line in stands for f in [_stand(case, dump, at)]]
    apart = [s for s in stands if not s[2].phase.waits and s[2].phase is not Phase.UNKNOWN]
    if waiting and apart and len(stands) > 1:
        case, dump, at, line = apart[0]
        who = f"pid {dump.pid}" if dump.pid else dump.command[:60]
        others = f"{len(waiting)} others wait" if len(waiting) > 1 else "another waits"
        odd = About(Code.RANK_HANGS, case.subject, "system.stack.apart", "").fail(
            f"{who} stands {at}, {others}", "all ranks in one phase", "the others wait for this one, or for a rank whose"
            " stack is not here", remedy="look at what this process does or waits for; then at ranks that are not in this input")
        findings = [*(f for f in findings if f.code is not Code.NOTHING_KNOWN), quoted(odd, case.piece, [line])]
    findings += gone
    if not findings:
        findings = [_nothing(cases[0], "a stack dump", "no thread of it could be read",
                             "paste the whole dump: py-spy dump --native --pid PID")]
    kind = cases[0].piece.kind
    yield Judged(kind, tuple(c.piece for c in cases), tuple(findings), f"{len(stands)} processes" if len(stands) > 1 else "",
                 ("that a process hangs: a dump is one moment; take two, some seconds apart",))


def _gone(case: Case, waiting: int) -> Iterator[Finding]:
    """py-spy came to no stack. That a process was gone tells neither how it ended, nor whether it should have gone on."""
    said = next(case.piece.find(r"^Error: Failed to get process executable name|^Permission Denied: Try running again"), None)
    if case.piece.kind is not Kind.PY_SPY or said is None:
        return
    path = "system.stack.gone"
    denied = next(case.piece.find(r"[Pp]ermission [Dd]enied|os error 13\b"), None)
    absent = next(case.piece.find(r"No such file or directory|os error 2\b"), None)
    if denied is not None:
        made = About(Code.NEEDS_ROOT, case.subject, path, "").fail(
            "py-spy may not look at this process", "a stack", "it reads another process's memory", status=Status.UNKNOWN,
            remedy="run it as root; in a container with --cap-add SYS_PTRACE")
    elif absent is not None:
        others = f"; {waiting} in this input stand{'s' * (waiting == 1)} where a rank waits for another one" if waiting else ""
        made = About(Code.RANK_DIED, case.subject, path, "").fail(
            "the process was gone when py-spy looked", "a process that runs", "whether it ended by itself or was killed this does not "
            f"tell, nor whether the pid is one of another container{others}", status=Status.UNKNOWN,
            remedy="look at the end of that rank's own log, and at the kernel log of its node (OOM, Xid)")
    else:
        made = _nothing(case, "py-spy came to no stack", "its message is cut before the cause: the process is gone, or py-spy is not root",
                        "paste the whole message; run py-spy as root")
    yield quoted(made, case.piece, [ln for ln, _ in (said, denied or absent or said)])


def _stand(case: Case, dump: stacks.Dump, at: stacks.Stand) -> Finding:
    who = f"pid {dump.pid}" if dump.pid else "a process"
    about = About(Code.RANK_HANGS, case.subject, f"system.stack.{dump.pid or who}", "")
    reading = READINGS[at.phase]
    if at.phase.init or at.phase is Phase.NIXL:
        code = {Phase.GLOO_CONNECT: Code.GLOO_CONNECT, Phase.NCCL_BOOTSTRAP: Code.INIT_HANG, Phase.NCCL_CONNECT: Code.INIT_HANG,
                Phase.NCCL_INIT: Code.INIT_HANG, Phase.NCCL_ID: Code.INIT_HANG}.get(at.phase, Code.RANK_HANGS)
        made = About(code, about.subject, about.path, "").fail(f"{who}: {at}", "past its start", reading.means, remedy=reading.do)
        late = dump.tool == stacks.FAULT and next(case.piece.find(r"^Timeout \("), None) is not None  # its own limit passed while it stood
        return made if late else replace(made, status=Status.UNKNOWN, remedy=f"{reading.do}; {AGAIN}", why="it starts, or hangs there: one "
                                         f"dump does not tell. If it hangs: {reading.means}")
    if at.phase.waits or at.phase is Phase.ENGINE:
        return about.warn(f"{who}: {at}", "progress", reading.means, remedy=reading.do)
    return _nothing(case, f"{who}: {at}", reading.means, reading.do)


def judge_ucx_lines(case: Case) -> Iterator[Judged]:
    piece = case.piece
    if piece.kind is Kind.UCX_INFO:
        yield Judged(piece.kind, (piece,), tuple(_info(case)), case.node, ("that a program uses it: UCX_TLS and UCX_NET_DEVICES decide",))
        return
    text = numbered(piece)
    got = ucx.parse(text, case.node, piece.source)
    findings = [] if got.empty else [_proven(f, piece) for f in judge_ucx(got, case.node, "collective.ucx")]
    transfers = kvtransfer.parse(text)
    for one in transfers[-1:]:
        about = About(Code.NIXL_TCP, case.subject, "collective.kv", "")
        if all(t.idle for t in transfers):
            idle = about.warn("no transfer succeeded in any interval", "transfers", "there were none, or only failures: the line does not"
                              " tell which", remedy="look at vllm:nixl_num_failed_transfers_total, and at the errors around these lines")
            findings.append(quoted(idle, piece, _line(piece, one.line)))
        else:
            busy = next(t for t in reversed(transfers) if not t.idle)
            findings.append(about.ok(f"{busy.transfers} KV transfers, {busy.avg_ms:g} ms on average, {busy.mib_per_s:g} MiB/s"))
    if not findings:
        findings = [_nothing(case, f"{len(piece.lines)} lines of UCX or NIXL", "none tells which transport carries data between nodes",
                             "set UCX_LOG_LEVEL=info (and UCX_PROTO_INFO=used), let a transfer run, and paste the whole log")]
    yield Judged(Kind.UCX, (piece,), tuple(findings), case.node)


def _proven(f: Finding, piece: Piece) -> Finding:
    m = re.search(r"line (\d{1,7}): ", f.got)
    return quoted(f, piece, _line(piece, int(m[1]))) if m else f


def _info(case: Case) -> Iterator[Finding]:
    """`ucx_info -d`: whether this UCX knows any RDMA transport at all."""
    piece = case.piece
    names = [(ln, m[1]) for ln, m in piece.find(r"^#\s+Transport: (\S+)")]
    rdma = [(ln, n) for ln, n in names if n in ucx.RDMA or n.startswith(("rc_", "dc_", "ud_"))]
    about = About(Code.UCX_NO_DEVICE, case.subject, "collective.ucx.device", "")
    if rdma:
        yield quoted(about.ok(f"transports {', '.join(dict.fromkeys(n for _, n in rdma))}"), piece, [rdma[0][0]])
    elif names:
        shown = ", ".join(dict.fromkeys(n for _, n in names))
        bad = about.fail(f"transports {shown}"[:200], "rc, dc or ud",
                         "this UCX finds no RDMA device, or was built without verbs: programs that load it use TCP",
                         remedy="ldd of its libuct_ib; rdma link on the node; in a container --device /dev/infiniband")
        yield quoted(bad, piece, [ln for ln, _ in names[:4]])
