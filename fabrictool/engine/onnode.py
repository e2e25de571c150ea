"""One run's steps on one node: make its folder, give a sign of life, start, take what was left, end everything."""

from __future__ import annotations

import getpass
import re
import socket
import time

from pyinfra.api.host import Host

from fabrictool.engine.captured import captured
from fabrictool.model import Unreadable
from fabrictool.ops.collect import read
from fabrictool.ops.remote import root_words
from fabrictool.ops.session import want
from fabrictool.probes import outcome, stage
from fabrictool.probes.launch import Start
from fabrictool.probes.plan import Plan
from fabrictool.snapshot import Captured, Section, Snapshot
from fabrictool.snapshot.collector import resource

STAGE_S = 60  # resolving a consumer asks docker and systemd, each for 10 s at most
MARK_S = 20
SWEEP_S = 90  # TERM, 5 s, KILL, 5 s; units and containers take longer
FETCH_S = 60
FETCH_BYTES = 26 << 20  # a little more than fetch.sh sends
LEFT = "left"  # the section: what of the run is still there


def _root(host: Host) -> tuple[str, ...]:
    return root_words(host, want(host).ssh.sudo)


def make(host: Host, program: str) -> stage.Staged | str:
    """The run's folder, with its guard; or why there is none."""
    got = captured(host, ("sh", "-s"), STAGE_S, program, _root(host))
    if isinstance(got, Unreadable):
        return got.why
    read_back = stage.read(got.out)
    return f"{read_back}: {got.tail}" if isinstance(read_back, str) and got.tail else read_back


def mark(host: Host, folder: str, alive_s: int, run: str = "") -> str:
    """A sign of life, with which everything may go on for so many seconds; "" when it arrived. `run`: it begins now."""
    words = ("fabrictool-mark", folder, str(alive_s), run)
    got = captured(host, ("sh", "-c", resource("mark.sh"), *words), MARK_S, root=_root(host))
    if isinstance(got, Unreadable):
        return got.why
    return "" if got.rc == 0 else got.tail or f"exit status {got.rc}"


ONLY_IF = 'test -d "$1" || { echo "the run is over" >&2; exit 1; }; shift; exec sh -c "$@"'


def lock(host: Host, plan: Plan, verb: str) -> str:
    """Take or drop the node's lock; "" when it worked, else why not. It is only taken while the run's folder is there: a command that
    arrives late, after Ctrl-C, finds none."""
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    words = (resource("lock.sh"), "fabrictool-lock", verb, plan.job.run_id, who)
    argv = ("sh", "-c", ONLY_IF, "sh", plan.job.folder, *words) if verb == "take" else ("sh", "-c", *words)
    got = captured(host, argv, MARK_S, root=_root(host))
    if isinstance(got, Unreadable):
        return got.why
    return "" if got.rc == 0 else got.tail or "the lock could not be taken"


def start(host: Host, plan: Plan, run: str, what: Start) -> Captured:
    """Start a node's part and wait until it has ended: `rank.sh`'s own answer. 124: no answer in time, or no connection any more."""
    limits = plan.job.limits
    words = (plan.job.run_id, plan.job.folder, run, what.number, str(limits.node_s), what.image, *what.argv)
    begin = time.monotonic()
    # In braces: when the text arrives cut short, nothing runs.
    got = captured(host, ("sh", "-s", *words), limits.ours_s, f"{{\n{resource('rank.sh')}\n}}\n", _root(host))
    if isinstance(got, Unreadable):
        return Captured(124, "", got.why, int(1000 * (time.monotonic() - begin)))
    return got


_ENDED = re.compile(r"(?:launcher|box|[0-9]{1,6}) ([0-9]{1,3}) [0-9]{1,12}")  # rank.sh: LABEL STATUS MILLISECONDS


def failed(answer: Captured) -> bool:
    """Whether some program of a start ended badly, or the start itself. What a login shell prints beside it counts for nothing."""
    statuses = [m[1] for line in answer.out.splitlines() if (m := _ENDED.fullmatch(line.strip()))]
    return answer.rc != 0 or not statuses or any(status != "0" for status in statuses)


def sweep(host: Host, run_id: str) -> None:
    """End what the run has started, and wait for it."""
    captured(host, ("sh", "-c", resource("sweep.sh"), "fabrictool-sweep", run_id, "end"), SWEEP_S, root=_root(host))


def collect(host: Host, plan: Plan, run: str) -> Snapshot:
    """End what is still there of a run, and take what it has left. One after the other: clocks first, files last."""
    asked = (
        Section("clock.end", "date +%s.%N"),
        Section(LEFT, resource("sweep.sh"), root=True, timeout_s=SWEEP_S, args=(plan.job.run_id, "over", *_ports(plan, host.name))),
        Section("run.files", resource("fetch.sh"), root=True, timeout_s=FETCH_S, max_bytes=FETCH_BYTES, args=(plan.job.folder, run)),
    )
    got = read(host, asked, lanes=1)
    if got.error:
        return got
    files = got.text("run.files")
    found = files if isinstance(files, Unreadable) else outcome.pieces(files.value)
    sections = {k: v for k, v in got.sections.items() if k != "run.files"}
    if isinstance(found, Unreadable):
        return Snapshot(host.name, {**sections, "run.files": Captured(1, "", found.why)}, taken=got.taken)
    return Snapshot(host.name, {**sections, **outcome.sections(found)}, taken=got.taken, ssh=got.ssh, uid=got.uid, notes=got.notes)


def close(host: Host, plan: Plan) -> Snapshot:
    """End everything of the run, its guard and its folder; the section `left` says what did not go."""
    words = (plan.job.run_id, "close", *_ports(plan, host.name))
    return read(host, (Section(LEFT, resource("sweep.sh"), root=True, timeout_s=SWEEP_S, args=words),), lanes=1)


def _ports(plan: Plan, node: str) -> tuple[str, ...]:
    """Where the ranks met, where that is ours: on the first node, which chose a port that was free there. What listens on a port of that
    number on another node is somebody else's."""
    job = plan.job
    return (str(job.port),) if plan.launcher.program == "torch" and job.port and job.seats[0].node == node else ()
