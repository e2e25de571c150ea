"""What a fault is, and what the faults are made with.

A fault changes state or view (registers, files, links, processes, the way in), as its cause in the real world would. It never leaves
a marker that the tool under test could read: no file, argument or text anywhere in the node holds a fault's name.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from fabrictool.lab.errors import LabError
from fabrictool.lab.inside import Done
from fabrictool.lab.nodeside.state import Function, Node
from fabrictool.lab.seen import Traffic


class LabLike(Protocol):
    """The part of a running lab (handle.Lab) that faults use."""

    @property
    def nodes(self) -> tuple[str, ...]: ...
    def state(self, name: str) -> Node: ...
    def edit_state(self, name: str) -> AbstractContextManager[Node]: ...
    def exec(self, name: str, argv: Sequence[str], input: str | bytes = b"", timeout_s: float = 60) -> Done: ...
    def read_file(self, name: str, path: str) -> str | None: ...
    def write_file(self, name: str, path: str, text: str | bytes, mode: int = 0o644) -> None: ...
    def remove_file(self, name: str, path: str) -> None: ...
    def hide_tool(self, name: str, tool: str) -> None: ...
    def sshd(self, name: str, running: bool) -> None: ...
    def new_host_key(self, name: str) -> None: ...
    def switch_port_mtu(self, rail: str, mtu: int, name: str | None = None) -> None: ...
    def pair_mtu(self, rail: str, one: str, other: str, mtu: int) -> None: ...
    def block_connections(self, name: str) -> None: ...
    def link(self, name: str, interface: str, up: bool) -> None: ...
    def unplug(self, name: str, interface: str) -> None: ...
    def forward(self, name: str, mode: str) -> None: ...
    def disk_full(self, name: str, full: bool) -> None: ...


class Scope(StrEnum):
    """What `--function` chooses. Without it: FUNCTIONS = every fabric function of the node, FUNCTION = its first; NODE takes none. What is
    of a RAIL (the node's first, without --function) or of the FLEET happens on all nodes, whichever is named."""

    FUNCTIONS = "functions"
    FUNCTION = "function"
    NODE = "node"
    RAIL = "rail"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command ends with: its exit status, and the codes of findings that do not pass: these at least (what is blocked by them,
    or follows from them, may stand beside them)."""

    exit: int
    codes: tuple[str, ...] = ()


Expect = Mapping[str, Outcome]
Apply = Callable[[LabLike, str, str], None]
COMMANDS = ("plan", "drift", "check", "apply")  # `check` without names: no traffic is made


@dataclass(frozen=True, slots=True)
class Fault:
    """`expect`: what each command says on a healthy, configured node with this one fault; `apply` stands for `apply -y --allow
    flap` and what is left after it. `wiped`: the same where the node's QoS registers were lost as well (a reboot without
    persistence), for faults that show only when something has to be written. `traffic`: what each check of seen.TRAFFIC says about the
    whole fleet, where it is not a pass; None: nobody has said so far. `launcher`: of the traffic, where only this one shows it."""

    name: str
    summary: str
    apply: Apply
    expect: Expect
    scope: Scope = Scope.NODE
    wiped: Expect = field(default_factory=dict)
    profiles: tuple[str, ...] = ()  # lab profiles it can happen on; () = any
    traffic: Traffic | None = None
    launcher: str = "direct"


def fixed(*codes: str) -> Expect:
    """Drift that apply sets right."""
    return {"plan": Outcome(2, codes), "drift": Outcome(2, codes), "check": Outcome(1, codes), "apply": Outcome(0)}


def stuck(*codes: str) -> Expect:
    """Wrong, and nothing that apply may or can set."""
    return {c: Outcome(1, codes) for c in COMMANDS}


def blind(*codes: str) -> Expect:
    """No verdict: something cannot be read or reached."""
    return {c: Outcome(3, codes) for c in COMMANDS}


def warned(*codes: str) -> Expect:
    """Told as a warning: the exit status stays 0 (without --strict)."""
    return {c: Outcome(0, codes) for c in COMMANDS}


def unseen() -> Expect:
    """Nothing to say about a node that is as the spec wants it."""
    return {c: Outcome(0) for c in COMMANDS}


def at_apply(exit: int, *codes: str) -> Expect:
    """Plan shows drift as if nothing was wrong; only the write shows it."""
    return {"apply": Outcome(exit, codes)}


def targets(state: Node, function: str, scope: Scope) -> list[Function]:
    """The functions meant: by rail, interface or RDMA device. LabError names those there are."""
    fabric = sorted((f for f in state.functions.values() if f.rail), key=lambda f: (len(f.rail), f.rail))
    if not function:
        return fabric if scope is Scope.FUNCTIONS else fabric[:1]
    found = [f for f in state.functions.values() if function in (f.rail, f.interface, f.rdma)]
    if not found:
        names = ", ".join(f"{f.rail or '-'} ({f.interface}, {f.rdma})" for f in state.functions.values())
        raise LabError(f"{state.name} has no function {function!r}: name a rail, an interface or an RDMA device of {names}")
    return found


def first(lab: LabLike, node: str, function: str) -> Function:
    """A copy of the one function meant."""
    found = targets(lab.state(node), function, Scope.FUNCTION)
    if not found:
        raise LabError(f"{node} has no fabric function")
    return found[0]


def on_functions(change: Callable[[Node, Function], None]) -> Apply:
    """A fault that is a change of registers."""
    def apply(lab: LabLike, node: str, function: str) -> None:
        with lab.edit_state(node) as state:
            for fn in targets(state, function, Scope.FUNCTIONS):
                change(state, fn)
    return apply


def tool_mode(tool: str, mode: str) -> Apply:
    """A fault that is a way of a tool to fail."""
    def apply(lab: LabLike, node: str, function: str) -> None:
        with lab.edit_state(node) as state:
            state.tools[tool] = mode
    return apply


def sh(lab: LabLike, node: str, text: str, *words: str) -> str:
    """A shell command as root in the node; `words` become $1 ... LabError when it fails."""
    done = lab.exec(node, ["/bin/sh", "-ec", text, "sh", *words])
    if not done.ok:
        raise LabError(f"{node}: {shlex.join(words) or text[:60]}: exit status {done.rc}: {done.err.strip()[-300:] or 'no message'}")
    return done.out


def rewrite(lab: LabLike, node: str, path: str, change: Callable[[str], str], hint: str, mode: int = 0o644) -> None:
    """Change a file that must be there, as an editor would. LabError when it is not, or when nothing would change."""
    text = lab.read_file(node, path)
    new = None if text is None else change(text)
    if new is None or new == text:
        raise LabError(f"{node}: {path} {'is not there' if new is None else 'holds nothing to change'}: {hint}")
    lab.write_file(node, path, new, mode)
