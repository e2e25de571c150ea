"""Put back what this run changed on a node."""

from __future__ import annotations

from collections.abc import Iterable

from pyinfra.api.host import Host

from fabrictool.model import Finding, Run, WriteFile
from fabrictool.ops.remote import limited, root_words, run
from fabrictool.ops.session import run_id, session, want
from fabrictool.snapshot import collector

RESTORE_S = 20


def undo(host: Host, rooms: Iterable[str]) -> str:
    """Undo the done findings of `rooms`, newest first: files come back from their backups, then commands are reversed (a command
    that reads a file, such as `netplan generate`, must see the old one). "" when every undo worked, else what did not."""
    chosen = set(rooms)
    done = [f for f in reversed(session(host).done) if f.room in chosen]
    root = root_words(host, want(host).ssh.sudo)
    wrong: list[str] = []
    for finding in done:
        restore = ("sh", "-c", collector.resource("restore.sh"), "fabrictool-restore")
        argvs: list[tuple[tuple[str, ...], int]] = []
        argvs += [((*restore, s.path, run_id()), RESTORE_S) for s in reversed(finding.steps) if isinstance(s, WriteFile)]
        argvs += [(s.undo, s.timeout_s) for s in reversed(finding.steps) if isinstance(s, Run) and s.undo]
        for argv, limit in argvs:
            ran = run(host, limited(argv, limit, root), limit)
            if not ran.ok:
                wrong.append(_why(finding, ran.lost.why if ran.lost else ran.tail))
    session(host).done = [f for f in session(host).done if f.room not in chosen]
    return "; ".join(wrong)


def _why(finding: Finding, tail: str) -> str:
    return f"{finding.code} {finding.subject.place}: {tail or 'failed without a message'}"
