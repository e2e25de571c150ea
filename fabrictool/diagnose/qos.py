"""mlnx_qos and dcb as pasted: judged against the spec where one was given, otherwise against what must agree within one interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fabrictool.diagnose.model import Case, Judged, as_pasted, quoted, softened, spoken
from fabrictool.model import Code, Finding, Reason, Subject, Unreadable, Value
from fabrictool.qos import dcb, mlnx_qos, settings
from fabrictool.qos.model import NOT_READ, Interface, Pause, View, blind
from fabrictool.qos.read import pause
from fabrictool.qos.target import Target
from fabrictool.room import About
from fabrictool.snapshot import Captured
from fabrictool.snapshot.sniff import Kind, Piece, device
from fabrictool.spec import QosSpec
from fabrictool.values import Dscp, Priorities

KINDS = frozenset({Kind.MLNX_QOS, Kind.DCB, Kind.ETHTOOL_PAUSE})
ROCE = Dscp(26)  # the vendor's guides mark RoCE with traffic class 104 to 106; used where nothing else tells the class
_ABSENT = re.compile(r"command not found|No such file or directory|not permitted")
NAME = "IF"  # stands for an interface that the paste does not name
_OBJECTS = {"prio_pfc": "pfc", "dscp_prio": "app", "default_prio": "app", "prio_tc": "ets", "tc_tsa": "ets", "prio_buffer": "buffer",
            "host": "dcbx", "ieee": "dcbx", "cee": "dcbx"}
_SHOWN = {"qos.dcbx": r"DCBX mode|\"(?:host|ieee|cee)\"", "qos.trust": r"Priority trust|\"dscp_prio\"|^\{\}$",
          "qos.map": r"\bprio:\d dscp:|\"dscp_prio\"", "qos.pfc": r"^\s+(?:priority|enabled) {3,}|\"prio_pfc\"",
          "qos.tc.shared": r"^tc: \d|^\t priority:|\"prio_tc\"", "qos.tc.buffer": r"^\s+buffer |Receive buffer|\"prio_buffer\"",
          "qos.lldpad": "lldpad", "qos.pause": r"^\s*[RT]X:", "qos.interface": "not supported|Attribute read"}


@dataclass(slots=True)
class _Shown:
    """What a paste shows of one interface at one time."""

    case: Case
    name: str
    mlnx: View | None = None
    answers: dict[str, str] = field(default_factory=dict)  # dcb's object -> transcript
    pause: Pause | Unreadable = NOT_READ
    pieces: list[Piece] = field(default_factory=list)

    @property
    def nic(self) -> Interface:
        none = blind(NOT_READ)
        second = dcb.parse(Captured(0, "".join(self.answers.values()))) if self.answers else none
        held = Value(self.pause) if isinstance(self.pause, Pause) else self.pause
        if self.mlnx is None:  # dcb alone stands in the first reader's place: nothing is said of a reader that nobody asked
            return Interface(self.name, second, none, held)
        return Interface(self.name, self.mlnx, second, held)


def judge(cases: Sequence[Case]) -> Iterator[Judged]:
    """One result for each interface, reader and time; both readers of one time together."""
    for shown in _grouped(cases):
        kind = Kind.DCB if shown.mlnx is None and shown.answers else Kind.MLNX_QOS if shown.mlnx else Kind.ETHTOOL_PAUSE
        about = f"{shown.name} on {shown.case.node}" if shown.name and shown.case.node else shown.name or shown.case.node
        yield Judged(kind, tuple(shown.pieces), tuple(_shown(f, shown.pieces) for f in _findings(shown)), about,
                     ("anything about the switch: a host can show its own PFC, trust and map, not that the fabric is lossless",))


def _grouped(cases: Sequence[Case]) -> list[_Shown]:
    out: list[_Shown] = []
    for case in cases:
        piece = case.piece
        name = device(piece.command)
        name = "" if name.startswith(("-", "$")) else name
        last = next((s for s in reversed(out) if (s.name, s.case.node, s.case.piece.source) == (name, case.node, piece.source)), None)
        if piece.kind is Kind.MLNX_QOS:
            if not _state_line(piece) and not _ABSENT.search(piece.text[:500]):
                continue
            out.append(now := last if last is not None and last.mlnx is None else _Shown(case, name))
            now.mlnx = _mlnx(piece)
        elif piece.kind is Kind.ETHTOOL_PAUSE:
            read = pause(_captured(piece))
            head = re.search(r"Pause parameters for (\S{1,40}):", piece.text)
            name = name or (head[1] if head else "")
            same = next((s for s in reversed(out) if s.name in (name, "") and s.case.node == case.node), None)
            out.append(now := same or _Shown(case, name))
            now.pause = read.value if isinstance(read, Value) else read if isinstance(read, Unreadable) else NOT_READ
        else:
            what = _object(piece)
            if not what:
                continue
            out.append(now := last if last is not None and what not in last.answers else _Shown(case, name))
            failed = piece.rc or int("Attribute " in piece.text)  # the status itself is seldom pasted
            now.answers[what] = f"$ dcb -j {what} show dev {name or NAME}\n{piece.text}[rc={failed}]\n"
        now.pieces.append(piece)
    return list({id(s): s for s in out}.values())


def _object(piece: Piece) -> str:
    """Which of dcb's objects a piece shows; "" for text that is not JSON and no error."""
    asked = dcb.COMMAND.fullmatch(f"$ {piece.command.removeprefix('sudo ')}") if " -j " in piece.command else None
    for key, name in _OBJECTS.items():
        if f'"{key}"' in piece.text:
            return name
    asked_for = re.search(r"\b(pfc|app|ets|buffer|dcbx) show", piece.command)
    return asked[1] if asked else asked_for[1] if asked_for and piece.text.lstrip().startswith(("{", "Attribute")) else ""


def _captured(piece: Piece) -> Captured | Unreadable:
    text = piece.text
    if _ABSENT.search(text[:500]) and "not permitted" not in text:
        return Unreadable(Reason.TOOL_MISSING, f"{piece.lines[0].text.strip()[:120]}")
    return Captured(piece.rc or 0, text, "".join(f"{ln.text}\n" for ln in piece.errors))


def _mlnx(piece: Piece) -> View:
    got = _captured(piece)
    if isinstance(got, Captured) and not got.rc and mlnx_qos.NO_DCB in got.out:
        got = replace(got, rc=1)  # the status itself is seldom pasted
    return mlnx_qos.parse(got)


def _findings(shown: _Shown) -> Iterator[Finding]:
    nic, subject = shown.nic, shown.case.function(shown.name)
    supported = nic.supported
    refused = shown.mlnx is None and bool(shown.answers) and not any("{" in a for a in shown.answers.values())
    if supported == Value(False) or refused:
        yield About(Code.QOS_UNSUPPORTED, subject, "qos.interface", "").fail(
            "no DCB on this interface", "DCB", "the driver answers that it has no QoS settings here: not a physical function of a NIC that"
            " can, or no such interface", remedy="look at the physical function's interface; `ip -br link` lists the names")
        return
    if isinstance(supported, Unreadable) and isinstance(nic.pause, Unreadable):
        yield as_pasted(About(Code.UNREADABLE, subject, "qos.state", "").unknown(supported, "the state of the interface"))
        return
    want = shown.case.want.fabric.qos if shown.case.want is not None else None
    named = shown.case.function(shown.name).rail != ""
    if want is not None and (named or not shown.name):
        target = Target(want, subject, nic, {})
        found: Iterable[Finding] = (*settings.dcbx(target), *settings.trust(target), *settings.dscp_map(target),
                                    *settings.pause(target), *settings.pfc(target), *settings.tc(target))
    else:
        found = _by_itself(shown, nic, subject)
    yield from _lldpad(nic, subject)
    for f in found:
        if not _left_out(f, shown):
            yield as_pasted(spoken(f, NAME))


def _state_line(piece: Piece) -> bool:
    """Whether the text shows any of the state: a write that failed shows none."""
    pattern = r"^(?:DCBX mode|Priority trust (?:state|mode): |PFC conf|Receive buffer|tc: |ETS features are not)|Attribute"
    return next(piece.find(pattern), None) is not None


def _left_out(f: Finding, shown: _Shown) -> bool:
    """What nobody pasted: single objects of dcb, global pause. A print of mlnx_qos that was cut is no verdict."""
    if not f.got.startswith("unreadable"):
        return False
    if f.path == "qos.pause" or shown.mlnx is None:
        return f.got != f"unreadable ({Reason.GARBLED})"
    return f.got == f"unreadable ({Reason.EMPTY})"


def _lldpad(nic: Interface, subject: Subject) -> Iterator[Finding]:
    if nic.mlnx.lldpad:
        yield About(Code.QOS_LLDPAD, subject, "qos.lldpad", "").fail(
            "running", "not running", "lldpad overwrites PFC, DSCP map and traffic classes with what it negotiates",
            remedy="systemctl disable --now lldpad.service lldpad.socket")


def _by_itself(shown: _Shown, nic: Interface, subject: Subject) -> Iterator[Finding]:
    """Without a spec: what the settings themselves contradict."""
    lossless = nic.pfc.value
    on = lossless.value if isinstance(lossless, Value) else None
    dscp = Dscp.from_tc(shown.case.around.traffic_class) if shown.case.around.traffic_class is not None else ROCE
    implied = _implied(nic, on or Priorities.of(()), dscp)
    target = Target(implied, subject, nic, {})
    for f in settings.dcbx(target):
        yield softened(f)
    for f in settings.trust(target):
        yield f if on is not None and on.members else softened(f, "as the factory sets it: wrong only where this port carries RoCE")
    yield from settings.pause(target) if on is not None and on.members else _paused(target, nic)
    if not isinstance(lossless, Value):
        yield from settings.pfc(target)
        return
    if not lossless.value.members:
        yield About(Code.QOS_PFC_MASK, subject, "qos.pfc", "").warn(
            "none", "the priority of RoCE", "no priority is protected from loss: wrong only where this port carries RoCE that needs PFC",
            remedy=f"mlnx_qos -i {nic.name or NAME} -f 0,0,0,1,0,0,0,0, if the fabric's lossless priority is 3")
        return
    caveat = "" if shown.case.around.traffic_class is not None else f"if RoCE has DSCP {dscp}, as the vendor's guides give it"
    mapped = settings.dscp_map(target) if nic.trust.value == Value("dscp") else ()  # setting the trust brings the default map
    for f in (*mapped, *settings.pfc(target)):
        yield replace(f, why="; ".join(w for w in (f.why, caveat) if w)) if f.bad else f
    yield from settings.tc(target)


def _paused(target: Target, nic: Interface) -> Iterator[Finding]:
    """Global pause without PFC is a choice; it is told, and no fault."""
    if isinstance(nic.pause, Value):
        yield target.about(Code.QOS_GLOBAL_PAUSE, "pause").ok(str(nic.pause.value))


def _implied(nic: Interface, on: Priorities, dscp: Dscp) -> QosSpec:
    """What the person who set it up must have meant: PFC is right where RoCE's own priority has it; else the map is wrong, unless it is
    the default one."""
    got = nic.dscp_map.value
    now = got.value.priorities(dscp.value) if isinstance(got, Value) else ()
    home = dscp.default_priority
    lossless = sorted(on.members)
    if len(now) == 1 and now[0] in on.members:
        return QosSpec(dscp_to_priority={dscp.value: now[0]}, pfc=tuple(lossless))
    if lossless and home not in on.members and now == (home,):
        return QosSpec(dscp_to_priority={dscp.value: home}, pfc=(home,))
    aim = home if home in on.members or not lossless else lossless[0]
    return QosSpec(dscp_to_priority={dscp.value: aim}, pfc=tuple(lossless))


def _shown(f: Finding, pieces: Sequence[Piece]) -> Finding:
    """With the lines of the setting; of the DSCP map only the row that holds the DSCP."""
    pattern = next((p for head, p in _SHOWN.items() if f.path == head or f.path.startswith(f"{head}.")), "")
    number = f.path.removeprefix("qos.map.")
    lines: list[str] = []
    for piece in pieces if pattern else ():
        for line, _ in piece.find(pattern):
            if re.fullmatch(r"[0-9]{1,9}", number) and "prio:" in line.text and f"{int(number):02d}" not in re.findall(r"\d\d", line.text):
                continue
            lines.append(piece.quote(line))
    return replace(f, lines=tuple(lines[:4])) if lines else quoted(f, pieces[0], pieces[0].lines[:1])
