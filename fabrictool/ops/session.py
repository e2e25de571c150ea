"""What this process holds about one pyinfra host: its spec, its run id, what was approved and what was done."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyinfra.api.host import Host

from fabrictool.model import Finding, Step, WriteFile
from fabrictool.snapshot import Section, Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.spec.schema import NODE

KEY = "fabrictool"


@functools.cache
def run_id() -> str:
    """One per process: names this run in locks and backups on the nodes. UTC time and eight random hex digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def spell(step: Step) -> tuple[str, ...]:
    """A step reduced to what it does: what was shown must be what is done."""
    return ("write", step.path, step.text) if isinstance(step, WriteFile) else ("run", *step.argv)


@dataclass
class Session:
    """`approved`: finding id -> steps as shown to the admin; None under plain pyinfra, where nobody was shown anything.

    `managed`: the engine drives (it holds the lock for the whole run and re-reads at the end).
    """

    managed: bool = False
    approved: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    stamp: tuple[bool, int] | None = None
    snapshot: Snapshot | None = None
    fresh: frozenset[str] = frozenset()  # rooms for which `snapshot` is true at `stamp`
    extra: tuple[Section, ...] = ()  # what the chosen checks read besides; collected whenever all rooms are
    done: list[Finding] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    locked: bool = False
    said: list[str] = field(default_factory=list)  # what failed writes said, newest last
    lock_refused: str = ""  # why the node's lock could not be taken: nothing was written then

    def allows(self, finding: Finding) -> bool:
        if self.approved is None:
            return True
        return self.approved.get(finding.id) == tuple(spell(s) for s in finding.steps)


def session(host: Host) -> Session:
    held = host.connector_data.get(KEY)
    if not isinstance(held, Session):
        held = Session()
        host.connector_data[KEY] = held
    return held


def want(host: Host) -> NodeSpec:
    """The node's spec, as the inventory put it into the host's data."""
    return NODE.validate_json(json.dumps(host.data.fabric))
