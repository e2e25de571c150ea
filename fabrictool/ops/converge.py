"""The one pyinfra operation that changes anything: judge, refuse what is not known, run the steps, read back with the same judge.

The exit status of a write is evidence; the read-back is the verdict. pyinfra advances the generator to its first `yield` while it
prepares (that is the plan), and runs it whole while it executes.
"""

from __future__ import annotations

import base64
import getpass
import socket
from collections.abc import Generator
from typing import Any

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, PyinfraCommand, QuoteString, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.api.state import State
from pyinfra.context import host as current

from fabrictool.model import Code, Finding, Risk, Status, Step, Subject, SubjectKind, WriteFile
from fabrictool.ops.collect import again, others, snapshot
from fabrictool.ops.remote import limited, root_words, run
from fabrictool.ops.session import run_id, session, want
from fabrictool.room import Room
from fabrictool.rooms import findings, fleet
from fabrictool.snapshot import Snapshot, collector

LOCK_S = 20
WRITE_S = 30


def judged(host: Host, snap: Snapshot, room: str | None = None) -> tuple[Finding, ...]:
    """Everything `room` (None: every room) finds on this host, with the safety guard applied."""
    snaps = {**others(host), host.name: snap}
    chosen = {h.name: h for h in host.state.inventory if host.state.is_host_in_limit(h)}
    wants = {name: want(h) for name, h in chosen.items() if name in snaps} | {host.name: want(host)}
    mine = wants[host.name]
    by_room = findings(mine, snap, fleet(wants, snaps, set(mine.nodes) - chosen.keys()), None if room is None else (room,))
    return tuple(f for found in by_room.values() for f in found)


def blocking(found: tuple[Finding, ...], aspect: str) -> tuple[Finding, ...]:
    """What is not known about this node itself. Not knowing a peer stops nothing here."""
    return tuple(f for f in found if f.aspect == aspect and f.status is Status.UNKNOWN and not f.subject.peer)


def open_steps(found: tuple[Finding, ...], aspect: str) -> list[Finding]:
    return [f for f in found if f.aspect == aspect and f.steps and f.status is Status.FAIL]


def sets_registers(finding: Finding) -> bool:
    """Whether its steps set what functions of one port may share. Files are each interface's own."""
    return not any(isinstance(s, WriteFile) for s in finding.steps)


def say(host: Host, finding: Finding, tail: str) -> None:
    text = f"{finding.code} {finding.path} {finding.subject.place}: wanted {finding.want}, {tail}"
    host.log_styled(text, fg="red", log_func=logger.error)


def command(host: Host, step: Step) -> tuple[str, ...]:
    """The words that run on the node for one step."""
    root = root_words(host, want(host).ssh.sudo)
    if isinstance(step, WriteFile):
        content = base64.b64encode(step.text.encode("utf-8", "surrogateescape")).decode("ascii")
        argv = ("sh", "-c", collector.resource("write.sh"), "fabrictool-write", step.path, f"{step.mode:o}", step.before, run_id(),
                content)
        return limited(argv, WRITE_S, root)
    return limited(step.argv, step.timeout_s, root)


class Write(StringCommand):
    """A write. Its exit status is evidence, kept in `ok` and for the log; the read-back gives the verdict."""

    ok = True

    def execute(self, state: State, host: Host, connector_arguments: Any) -> tuple[bool, Any]:
        self.ok, out = super().execute(state, host, connector_arguments)
        if not self.ok:
            lines = [ln.strip() for ln in (out.stderr or out.stdout).splitlines() if ln.strip()]
            session(host).said.append(lines[-1][:200] if lines else "nothing")
            host.log_styled(f"a write said: {session(host).said[-1]} (reading back)", fg="yellow", log_func=logger.warning)
        return True, out


def run_steps(host: Host, finding: Finding) -> Generator[PyinfraCommand, None, None]:
    """The finding's steps in order. A file that could not be put in place ends them: what follows would act on the old one. A tool's
    exit status ends nothing, since tools fail after they have set what they were told."""
    for step in finding.steps:
        write = Write(*(QuoteString(w) for w in command(host, step)))
        yield write
        if isinstance(step, WriteFile) and not write.ok:
            return


def lock(host: Host, verb: str) -> str:
    """"" when it worked, else why not."""
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    argv = ("sh", "-c", collector.resource("lock.sh"), "fabrictool-lock", verb, run_id(), who)
    ran = run(host, limited(argv, LOCK_S, root_words(host, want(host).ssh.sudo)), LOCK_S)
    session(host).locked = ran.ok and verb == "take"
    return "" if ran.ok else (ran.lost.why if ran.lost else ran.tail or "the lock could not be taken")


def _take_lock(state: State, host: Host, first: Finding) -> bool:
    why = lock(host, "take")
    if why:
        session(host).refused.append(f"{Code.LOCKED}: {why}")
        session(host).lock_refused = why
        say(host, first, f"nothing written: {why}")
    return not why


def _read_back(state: State, host: Host, room: str, aspect: str, written: list[Finding]) -> bool:
    """The verdict on what was written: the same judge, on a new reading."""
    found = judged(host, again(host, room), room)
    places = {(f.subject, f.path) for f in written}  # not ids: a half-applied write can change a finding's code
    left = [f for f in found if f.aspect == aspect and f.bad and not f.subject.peer
            and ((f.subject, f.path) in places or f.status is Status.UNKNOWN)]
    for f in left:
        say(host, f, f"reads back {f.got}")
    mine = session(host)
    if not mine.managed:
        lock(host, "drop")
    return not left


def _refuse(state: State, host: Host, why: tuple[Finding, ...]) -> bool:
    """Nothing is written on what is not known. The host goes on with its other operations; `verify` gives the verdict."""
    for f in why:
        session(host).refused.append(f.id)
        say(host, f, f"{f.got}{f': {f.why}' if f.why else ''}; nothing written")
    return True


def _halted(host: Host) -> bool:
    """Under plain pyinfra a flapping change stops everywhere once it went wrong somewhere."""
    return not session(host).managed and bool(host.state.failed_hosts)


@operation()
def converge(room: Room[Any], aspect: str) -> Generator[PyinfraCommand, None, None]:
    """Set one aspect of one room as the node's spec wants it; at once nothing when it is so already.

    Steps of the next function of the same port run only if a re-reading says that they are still needed: two functions may share
    one port's registers, and each PFC write flaps the link.
    """
    found = judged(current, snapshot(current, room.name), room.name)
    unknown = blocking(found, aspect)
    if unknown:
        yield FunctionCommand(_refuse, (unknown,), {})
        return
    todo = open_steps(found, aspect)
    not_shown = tuple(f for f in todo if not session(current).allows(f))
    todo = [f for f in todo if f not in not_shown]
    if not todo:
        if not_shown:
            yield FunctionCommand(_refuse, (not_shown,), {})
        else:
            current.noop(f"{room.name}.{aspect} is as wanted, or nothing here can set it")
        return
    yield FunctionCommand(_take_lock, (todo[0],), {})
    written: list[Finding] = []
    while todo:
        finding = todo.pop(0)
        if finding.risk is Risk.FLAP and _halted(current):
            yield FunctionCommand(_refuse, ((finding,),), {})
            continue
        written.append(finding)
        session(current).done.append(finding)
        yield from run_steps(current, finding)
        if sets_registers(finding) and any(f.subject.port == finding.subject.port for f in todo):
            still = {f.id: f for f in open_steps(judged(current, again(current, room.name), room.name), aspect)}
            todo = [still[f.id] for f in todo if f.id in still and session(current).allows(still[f.id])]
    yield FunctionCommand(_read_back, (room.name, aspect, written), {})


def _verify(state: State, host: Host, left: tuple[Finding, ...]) -> bool:
    for f in left:
        say(host, f, f"is {f.got} ({f.why})" if f.why else f"is {f.got}")
    return False


@operation()
def verify(room: Room[Any] | None = None) -> Generator[PyinfraCommand, None, None]:
    """Fail the host if anything of `room` (all rooms by default) is not as wanted, or could not be read.

    Nothing under the engine: it reads every node back itself, after all of them, and reports what is left. Here, what cannot be read or
    what nobody may set would look like a write that went wrong, and stop the change on the next node.
    """
    if session(current).managed:
        current.noop("the engine reads everything back")
        return
    name = room.name if room else None
    found = judged(current, snapshot(current, name), name)
    left = tuple(f for f in found if f.status in (Status.FAIL, Status.UNKNOWN))
    if not found:
        subject = Subject(SubjectKind.NODE, (current.name,))
        left = (Finding(Code.NO_EVIDENCE, subject, "verify.nothing", "", "no finding", "evidence", "nothing was compared",
                        Status.UNKNOWN),)
    if left:
        yield FunctionCommand(_verify, (left,), {})
    else:
        current.noop("everything reads back as wanted")
