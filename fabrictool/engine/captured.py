"""One command on one node, with its exit status and both streams, as a recording keeps it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from pyinfra.api.host import Host

from fabrictool.model import Reason, Unreadable
from fabrictool.ops.remote import limited, run
from fabrictool.snapshot import Captured, Snapshot

STATUS = '"$@"; echo "rc=$?"'  # pyinfra tells only whether the status was 0


def captured(host: Host, argv: tuple[str, ...], timeout_s: int, stdin: str | None = None,
             root: tuple[str, ...] = ()) -> Captured | Unreadable:
    """Run `argv` for at most `timeout_s` seconds; 124 = it had to be ended. Unreadable: the connection gave no answer at all. `root`: what
    makes it root's (ops.remote.root_words); it stands before the time limit, as a user's `timeout` may not end what root runs."""
    begin = time.monotonic()
    ran = run(host, limited(("sh", "-c", STATUS, argv[0], *argv), timeout_s, root), timeout_s, stdin)
    if ran.lost:
        return ran.lost
    ms = int(1000 * (time.monotonic() - begin))
    body, mark, rc = ran.out.rpartition("rc=")
    if not mark or not re.fullmatch(r"[0-9]{1,3}", rc.strip()):
        return Captured(124, ran.out, ran.err, ms)
    return Captured(int(rc), body, ran.err, ms)


def answers(node: str, got: Mapping[str, Captured | Unreadable]) -> Snapshot:
    """Section -> answer, as a snapshot. A broken connection makes all of it unreadable; a command that gave no answer in time is one
    that timed out."""
    lost = [one for one in got.values() if isinstance(one, Unreadable) and one.reason is not Reason.TIMEOUT]
    sections = {key: Captured(124, "", one.why) if isinstance(one, Unreadable) else one for key, one in got.items()}
    return Snapshot(node, {} if lost else sections, error=lost[0] if lost else None, taken=utc_now())


def utc_now() -> str:
    """ISO 8601, for recordings."""
    return datetime.now(UTC).isoformat(timespec="seconds")
