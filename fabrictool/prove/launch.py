"""What kept an AllReduce from being run, and what its launch itself has to say: busy GPUs, missing tools, a smaller buffer, a start that
did not work, things left behind at the end. For the judges of the recording; paths begin with the check's name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from fabrictool.model import Code, Finding, Status, Subject, SubjectKind, Unreadable
from fabrictool.prove import left, look
from fabrictool.prove.facts import END, REFUSED, AllReduce, all_reduce
from fabrictool.room import About
from fabrictool.snapshot import Captured, Recording

NOT_STARTED = (125, 126, 127)  # docker's own failure; not executable; not found (POSIX shell, docker run)
HOW: Mapping[Code, tuple[str, str]] = {
    Code.GPU_BUSY: ("idle GPUs", "let what runs there end, or add --force: it will be slowed down, and so will the figures be"),
    Code.TOOL_MISSING: ("what the launcher starts, on every node", "install it (an image: `docker pull` it on the node), or name its path "
                        "in the spec's `collective`"),
    Code.SINGLE_NODE: ("at least two nodes", "select two nodes or more"),
    Code.LOCKED: ("nobody else at work", "wait until the other run has ended, then run again"),
    Code.NEEDS_ROOT: ("root on the nodes", "run with -K, or allow sudo without a password"),
    Code.SIZE_REDUCED: ("memory for the buffers", "free memory on that node, or ask for a smaller size"),
    Code.BLOCKED: ("a run", "mend what it is blocked by, then run again"),
}
OTHERS = ("a run over all selected nodes", "see what it says, mend that, then run again")


def judge(made: Recording, nodes: Iterable[str], check: str) -> Iterator[Finding]:
    """`nodes`: the selected ones. Nothing is said of a probe that was not asked for."""
    facts = all_reduce(made)
    if isinstance(facts, Unreadable):
        refusal = _refused(made, tuple(nodes), check)
        if refusal:
            yield refusal
    else:
        yield from _busy(made, facts, check)
        yield _size(facts, check)
        for run in (*facts.runs, *([facts.default_run] if facts.default_run else [])):
            yield from _starts(made, facts, run, f"{check}.{run}.start")
    if isinstance(facts, Unreadable):
        yield from _end(made, check, "", ())
    else:
        yield from _end(made, check, facts.launcher, facts.nodes)


def _refused(made: Recording, nodes: tuple[str, ...], check: str) -> Finding | None:
    """The probe's own reason for running nothing: no verdict."""
    text = made.facts.get(REFUSED)
    if text is None or made.error is None:
        return None
    try:
        told = json.loads(text)
        code, where = Code(str(told["code"])), tuple(str(n) for n in told["nodes"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    want, how = HOW.get(code, OTHERS)
    subject = Subject(SubjectKind.NODE, where) if len(where) == 1 else Subject(SubjectKind.FLEET, where or nodes)
    return About(code, subject, f"{check}.launch", "").fail("nothing was run", want, made.error.why, status=Status.UNKNOWN, remedy=how)


def _busy(made: Recording, facts: AllReduce, check: str) -> Iterator[Finding]:
    """A run beside other work was forced: its figures are those of shared GPUs."""
    for node in facts.nodes:
        about = About(Code.GPU_BUSY, Subject(SubjectKind.NODE, (node,)), f"{check}.gpus", "")
        apps = look.apps(made.at(look.MOMENT, node))
        if isinstance(apps, Unreadable):
            yield about.unknown(apps, HOW[Code.GPU_BUSY][0])
        elif apps:
            names = ", ".join(f"{a.name} ({a.pid})" for a in apps[:3])
            yield about.warn(f"{names}{' ...' if len(apps) > 3 else ''}"[:200], HOW[Code.GPU_BUSY][0],
                             "the run was forced beside other work: both were slower than alone", remedy="run again when the GPUs are idle")
        else:
            yield about.ok("idle")


def _size(facts: AllReduce, check: str) -> Finding:
    about = About(Code.SIZE_REDUCED, Subject(SubjectKind.FLEET, facts.nodes), f"{check}.buffer", "")
    if facts.bound:
        return about.warn(f"{facts.size_bytes} bytes", f"{facts.asked_bytes} bytes", f"a smaller buffer was taken: {facts.bound}",
                          remedy="free memory on that node, or ask for a smaller size")
    return about.ok(f"{facts.size_bytes} bytes")


def _starts(made: Recording, facts: AllReduce, run: str, path: str) -> Iterator[Finding]:
    """Programs that never came to run. What a launcher or a rank says of itself is judged where its text is read."""
    for node in facts.nodes:
        about = About(Code.LAUNCH_FAILED, Subject(SubjectKind.NODE, (node,)), path, "")
        take = made.at(run, node)
        if take.error:
            yield about.unknown(take.error, "what the run left on the node")
            continue
        mine = {k: s for k, s in take.sections.items() if re.fullmatch(r"(launcher|container|start|rank\[[0-9]+\])", k)}
        broken = next((s for k, s in mine.items() if _never_ran(k, s, mine)), None)
        if broken is not None:
            yield about.fail(broken.tail or f"exit status {broken.rc}", "the program runs", "it could not be started on this node",
                             remedy="try its command line there by hand")
        elif mine:
            yield about.ok("started")


def _never_ran(key: str, got: Captured, every: Mapping[str, Captured]) -> bool:
    if key == "start":  # the starter itself: only where nothing else was left to tell
        return got.rc != 0 and len(every) == 1
    if key == "container":  # a container that ran has ranks in it
        return got.rc != 0 and not any(k.startswith("rank[") for k in every)
    return got.rc in NOT_STARTED


def _end(made: Recording, check: str, launcher: str, ran: Iterable[str]) -> Iterator[Finding]:
    """After everything was ended, on every node that took part. `ran`: those that must have been asked."""
    for node in dict.fromkeys((*made.takes.get(END, {}), *ran)):
        yield left.judge(node, [made.at(END, node)], f"{check}.end", launcher)
