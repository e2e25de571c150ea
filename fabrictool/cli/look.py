"""What plan, drift, apply, check and snapshot share: select nodes, read them (or a bundle), judge them, report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictool import __version__, rooms
from fabrictool.catalog import clashing_sections
from fabrictool.check import extra_sections
from fabrictool.exits import Exit, Stop
from fabrictool.model import Code, Finding, Report, Status, Subject, SubjectKind
from fabrictool.prove import Case
from fabrictool.report.fold import node_names
from fabrictool.room import Fleet
from fabrictool.snapshot import Recording, Snapshot
from fabrictool.spec import NodeSpec
from fabrictool.spec.inventory import select
from fabrictool.spec.resolve import Site, load_site
from fabrictool.verdict import Judged, RunInfo, assemble, judged

if TYPE_CHECKING:
    from fabrictool.check import Listed
    from fabrictool.engine.connect import Connection


@dataclass
class Look:
    """One look at the fleet. `conn` is open while `close` has not run; None when judged from a bundle. `others`: what a bundle holds of
    nodes that are not selected: no verdict on them, but evidence for the selected ones. `recordings`: what it holds of probes;
    `saved`: notes on it. `baselines`: recordings of another bundle, to compare with."""

    site: Site
    wants: dict[str, NodeSpec]
    snaps: dict[str, Snapshot]
    reach: dict[str, Finding] = field(default_factory=dict)
    others: dict[str, Snapshot] = field(default_factory=dict)
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    baselines: Mapping[str, Recording] = field(default_factory=dict)
    conn: Connection | None = None
    interrupted: bool = False
    saved: tuple[str, ...] = ()
    started: str = ""
    duration_s: float = 0.0

    def _fleet(self) -> Fleet:
        site = {n.name: n for n in self.site.nodes}
        return rooms.fleet(site, {**self.others, **self.snaps}, site.keys() - self.wants.keys())

    def judged(self, checks: Iterable[Listed], recordings: Mapping[str, Recording]) -> dict[str, Judged]:
        """What the checks' own judges say over the fleet."""
        case = Case(self.wants, self.snaps, recordings, self._fleet(), self.baselines)
        return {c.name: judged(c, case) for c in checks if c.check.judge}

    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """Node -> everything every room compared, and what stands against reaching it."""
        fleet = self._fleet()
        out: dict[str, tuple[Finding, ...]] = {}
        for name, want in self.wants.items():
            if name in self.reach:
                out[name] = (self.reach[name],)
            else:
                found = rooms.findings(want, self.snaps[name], fleet)
                out[name] = tuple(f for room in found.values() for f in room)
        return out

    def notes(self) -> tuple[str, ...]:
        """What the selection keeps from being seen."""
        unseen = [n for n in self.site.names if n not in self.wants and n not in self.others]
        if not unseen:
            return self.saved
        return (*self.saved, f"{node_names(unseen)}: not selected, so what the others take for their addresses was not compared",)

    def note_lost(self) -> None:
        """`reach`, from the connection and the snapshots as they are held now."""
        refused = self.conn.refused if self.conn else {}
        self.reach = {name: reach_finding(name, why.code, why.why, why.remedy) for name, why in refused.items()}
        for name, snap in self.snaps.items():
            if snap.error and name not in self.reach:
                why, remedy = snap.error.why, "log in by hand; see what the shell prints or where it hangs"
                code = Code.TOOL_TIMEOUT if "no answer" in why else Code.UNREACHABLE
                if why.startswith("interrupted"):  # gather.known
                    code, remedy = Code.INTERRUPTED, "run plan: it shows what is true on the node now"
                self.reach[name] = reach_finding(name, code, why, remedy)

    def info(self, command: str, run_id: str) -> RunInfo:
        simulated = any(w.simulated for w in self.wants.values())
        return RunInfo(run_id, command, self.started, __version__, self.site.digest, simulated)


def selected(inventory: Path, limit: str) -> tuple[Site, dict[str, NodeSpec]]:
    """The site and the selected nodes, in the site's order. Raises SpecError (78) for a bad spec or an empty selection."""
    site = load_site(inventory)
    chosen = select(site, limit)
    return site, {n.name: n for n in chosen}


def reach_finding(name: str, code: Code, why: str, remedy: str) -> Finding:
    return Finding(code, Subject(SubjectKind.NODE, (name,)), "reach.ssh", "", "no login", "a login over SSH", why, Status.UNKNOWN,
                   remedy=remedy)


def look(stack: ExitStack, inventory: Path, limit: str, saved: Path | None, ask_sudo: bool, checks: Sequence[Listed] = ()) -> Look:
    """Read the selected nodes, from the network or from a bundle; also what `checks` read besides the rooms. Closes its connections
    when `stack` does."""
    site, wants = selected(inventory, limit)
    if saved is None and checks:
        clashing_sections(checks, wants.values())
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    got = _from_network(stack, site, wants, ask_sudo, checks) if saved is None else _from_bundle(saved, site, wants)
    got.started, got.duration_s = started, time.monotonic() - begin
    return got


def _from_bundle(saved: Path, site: Site, wants: dict[str, NodeSpec]) -> Look:
    from fabrictool.snapshot import bundle

    try:
        held = bundle.read(saved)
    except bundle.BundleError as error:
        raise Stop(Exit.NO_VERDICT, str(error)) from error
    out = Look(site, wants, {}, others={n: s for n, s in held.snapshots.items() if n in site.names and n not in wants and not s.error})
    taken = held.meta.taken[:40] or "at an unknown time"
    out.recordings = held.recordings
    out.saved = (f"judged from {saved}, taken {taken}: nothing here is said of the nodes as they are now",)
    if held.meta.spec_digest != site.digest:
        out.saved += (f"{saved} was taken with another spec, or with another text of this one",)
    for name in wants:
        snap = held.snapshots.get(name)
        why = "not in this bundle" if snap is None else snap.error.why if snap.error else ""
        if snap is not None:
            out.snaps[name] = snap
        if why:
            out.reach[name] = reach_finding(name, Code.UNREACHABLE, why, "take a new snapshot while the node can be reached")
    return out


def _from_network(stack: ExitStack, site: Site, wants: dict[str, NodeSpec], ask_sudo: bool, checks: Sequence[Listed]) -> Look:
    from fabrictool import engine  # noqa: F401 - patches the process before paramiko is imported
    from fabrictool.cli.progress import Shown
    from fabrictool.engine.connect import Interrupted, close, connect
    from fabrictool.engine.gather import gather, known
    from fabrictool.spec.inventory import host_data

    password = click.prompt("sudo password of the nodes", hide_input=True, err=True) if ask_sudo else None
    out, shown = Look(site, wants, {}), Shown()
    try:
        out.conn = connect([(n, host_data(site, w)) for n, w in wants.items()], shown, password)
        stack.callback(close, out.conn)
        out.snaps = gather(out.conn, shown, extra=partial(extra_sections, checks))
    except Interrupted as stop:
        if out.conn is None:
            stack.callback(close, stop.conn)
        out.conn, out.snaps, out.interrupted = stop.conn, known(stop.conn), True
    out.note_lost()
    return out


def room_report(got: Look, command: str, run_id: str, found: Mapping[str, tuple[Finding, ...]], notes: Sequence[str] = ()) -> Report:
    """One result per room."""
    checks = {room.name: (room.name,) for room in rooms.ROOMS}
    return assemble(got.info(command, run_id), checks, found, got.wants.values(), notes=(*notes, *got.notes()))
