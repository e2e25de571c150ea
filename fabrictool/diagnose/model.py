"""What a diagnosis is made of: the pieces of an input, what is known around them, and what was found."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from fabrictool.model import Finding, Reason, Risk, Run, Status, Subject, SubjectKind, Unreadable
from fabrictool.ports import Netdev
from fabrictool.snapshot.sniff import Kind, Line, Piece
from fabrictool.spec import NodeSpec

MOST_LINES = 12  # lines that one finding quotes
NO_OTHER = Unreadable(Reason.NOT_COLLECTED, "the input does not show it")


@dataclass(frozen=True, slots=True)
class Wants:
    """The nodes of the spec, where one was given. `node`: the one that the input is of, where the user said so."""

    nodes: Mapping[str, NodeSpec] = field(default_factory=dict)
    node: str = ""

    def of(self, piece: Piece) -> NodeSpec | None:
        """The node that printed the piece: by --node, the prompt's host, or a part of the file's path that is a node's name."""
        if self.node:
            return self.nodes.get(self.node)
        words = [piece.host, piece.host.partition(".")[0], piece.label]
        for part in PurePath(piece.source).parts:
            words += [part, part.partition(".")[0], part.partition("-")[0], part.partition("_")[0]]
        return next((self.nodes[w] for w in words if w in self.nodes), None)


@dataclass(frozen=True, slots=True)
class Around:
    """What the other pieces of the same node tell. `traffic_class`: the TOS byte that NCCL is told to use there."""

    netdevs: Mapping[str, Netdev] | Unreadable = NO_OTHER
    rdma: tuple[str, ...] | Unreadable = NO_OTHER
    traffic_class: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A piece with what is known around it. `wants`: all nodes of the spec."""

    piece: Piece
    want: NodeSpec | None = None
    around: Around = field(default_factory=Around)
    wants: Mapping[str, NodeSpec] = field(default_factory=dict)

    @property
    def node(self) -> str:
        return self.want.name if self.want else self.piece.host

    @property
    def subject(self) -> Subject:
        """The node; without a name where nothing tells it."""
        return Subject(SubjectKind.NODE, (self.node,) if self.node else ())

    def function(self, interface: str) -> Subject:
        """An interface of the node; with its port and rail where the spec names it."""
        if self.want is not None:
            for port, spec in self.want.ports.items():
                for fn in spec.functions:
                    if interface and interface in (fn.interface, fn.rdma):
                        return Subject(SubjectKind.FUNCTION, (self.node,), port, interface, fn.rail)
        return replace(self.subject, kind=SubjectKind.FUNCTION, function=interface) if interface else self.subject


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found in pieces that belong together. `about`: of what, for people ("eth1"); `unproven`: what it does not show."""

    kind: Kind
    pieces: tuple[Piece, ...]
    findings: tuple[Finding, ...]
    about: str = ""
    unproven: tuple[str, ...] = ()


def quoted(finding: Finding, piece: Piece, lines: Iterable[Line]) -> Finding:
    """The finding with the lines that show it."""
    return replace(finding, lines=tuple(dict.fromkeys(piece.quote(ln) for ln in lines))[:MOST_LINES])


def softened(finding: Finding, why: str = "") -> Finding:
    """A failure that is one only if the rest of the world is as it usually is: a warning."""
    status = Status.WARN if finding.status is Status.FAIL else finding.status
    return replace(finding, status=status, why="; ".join(w for w in (finding.why, why) if w))


def spoken(finding: Finding, unknown: str = "") -> Finding:
    """The finding with its steps as commands to type: nothing is applied here. `unknown`: the word that stands for a name not known."""
    if not finding.steps:
        return finding
    argvs = [s.argv for s in finding.steps if isinstance(s, Run)]
    commands = "; ".join(shlex.join(a or unknown for a in argv) for argv in argvs)
    flap = " (the link goes down and up: RDMA connections on it break)" if finding.risk is Risk.FLAP else ""
    remedy = "; ".join(w for w in (f"as root: {commands}{flap}" if commands else "", finding.remedy) if w)
    return replace(finding, steps=(), remedy=remedy)


HOW = {Reason.NEEDS_ROOT: "run the command as root, and paste what it says", Reason.CUT: "paste the whole output",
       Reason.FAILED: "read its message; run the command again on the node", Reason.EMPTY: "paste the whole output",
       Reason.GARBLED: "paste the output as the tool printed it: lines are broken or changed"}


def as_pasted(finding: Finding) -> Finding:
    """An unknown in the words of somebody who pastes: no fabrictool option helps there."""
    if finding.status is not Status.UNKNOWN:
        return finding
    remedy = next((how for reason, how in HOW.items() if finding.got == f"unreadable ({reason})"), finding.remedy)
    return replace(finding, remedy=remedy, why=finding.why.replace("; second reader: not collected", ""))


def not_shown(finding: Finding) -> bool:
    """Whether it only says that the input does not hold something."""
    return finding.status is Status.UNKNOWN and finding.got in (f"unreadable ({Reason.NOT_COLLECTED})", f"unreadable ({Reason.BLOCKED})")
