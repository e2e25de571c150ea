"""One recording as files of a bundle, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as checked

from fabrictool.model import Unreadable
from fabrictool.snapshot import scrub
from fabrictool.snapshot.model import Snapshot
from fabrictool.snapshot.recording import Recording
from fabrictool.snapshot.saved import NODE_NAME, STRICT, Failure, checked_json, node, node_files, to_json, utf8
from fabrictool.snapshot.untar import BundleError


@checked(frozen=True, slots=True, config=STRICT)
class _Take:
    moment: str
    nodes: tuple[str, ...]


@checked(frozen=True, slots=True, config=STRICT)
class _ProbeFile:
    probe: str
    run_id: str
    started: str
    ended: str
    facts: Mapping[str, str]
    takes: tuple[_Take, ...]
    error: Failure | None


def recording_files(made: Recording) -> dict[str, bytes]:
    """path -> bytes of a recording. Secrets are scrubbed here. Raises BundleError for one that cannot be saved."""
    folder = f"recordings/{made.probe}"
    files: dict[str, bytes] = {}
    takes = []
    for moment, nodes in made.takes.items():
        takes.append(_Take(moment, tuple(sorted(nodes))))
        for name in (made.probe, moment, *nodes):
            if not NODE_NAME.fullmatch(name):
                raise BundleError(f"{name[:80]!r}: no name for a recording in a bundle")
        for name, snap in sorted(nodes.items()):
            files |= node_files(snap, f"{folder}/{moment}/{name}")
    facts = {key: utf8(scrub.text(value)) for key, value in made.facts.items()}
    error = Failure(made.error.reason, utf8(scrub.text(made.error.why))) if made.error else None
    head = _ProbeFile(made.probe, made.run_id, made.started, made.ended, facts, tuple(takes), error)
    return {**files, f"{folder}/probe.json": to_json(asdict(head))}


def recording(path: Path, probe: str, files: dict[str, bytes]) -> Recording:
    """The recording of `probe`; what it uses is taken out of `files`. Raises BundleError, in which `path` is named."""
    where = f"recordings/{probe}/probe.json"
    if where not in files:
        raise BundleError(f"{path}: {where}: missing")
    head = checked_json(TypeAdapter(_ProbeFile), files.pop(where), path, where)
    if head.probe != probe:
        raise BundleError(f"{path}: {where} is about {head.probe[:80]!r}")
    takes: dict[str, Mapping[str, Snapshot]] = {}
    for take in head.takes:
        if not NODE_NAME.fullmatch(take.moment) or take.moment in takes:
            raise BundleError(f"{path}: {where}: moment {take.moment[:80]!r}: {'twice' if take.moment in takes else 'not a name'}")
        nodes: dict[str, Snapshot] = {}
        for name in take.nodes:
            if not NODE_NAME.fullmatch(name) or name in nodes:
                raise BundleError(f"{path}: {where}: node {name[:80]!r}: {'twice' if name in nodes else 'not a name'}")
            nodes[name] = node(path, f"recordings/{probe}/{take.moment}/{name}", name, files)
        takes[take.moment] = nodes
    error = Unreadable(head.error.reason, head.error.why) if head.error else None
    return Recording(probe, head.run_id, head.started, head.ended, head.facts, takes, error)
