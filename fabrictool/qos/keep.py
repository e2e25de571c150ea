"""Whether QoS comes back after a reboot or a hot-plug, and the steps that see to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.model import Absent, Code, Finding, Observed, Run, Step, Subject, Unreadable, Value, WriteFile
from fabrictool.qos.model import Qos
from fabrictool.qos.persist import SCRIPT, persistence, script_text
from fabrictool.qos.target import Target
from fabrictool.room import About
from fabrictool.snapshot.model import FileText

WHY = "nothing sets it again after a reboot, a driver reload or a hot-plug"


def _file(got: Qos, path: str) -> Observed[FileText]:
    if isinstance(got.files, Unreadable):
        return got.files
    return got.files.get(path, Absent(path))


def _write(seen: Observed[FileText], path: str, text: str, mode: int = 0o644) -> WriteFile | Unreadable | None:
    """The step that makes the file so; None when it is."""
    if isinstance(seen, Unreadable):
        return seen
    if isinstance(seen, Value) and seen.value.text == text:
        return None
    return WriteFile(path, text, seen.value.sha256 if isinstance(seen, Value) else "", mode)


def files(node: Subject, got: Qos, blocked: Mapping[str, str]) -> Finding:
    """The script that all units of the node run."""
    about = About(Code.QOS_NOT_PERSISTED, node, "qos.persist.script", "persist")
    seen = _file(got, SCRIPT)
    step = _write(seen, SCRIPT, script_text(), 0o755)
    if isinstance(step, Unreadable):
        return about.unknown(step, SCRIPT)
    if step is None:
        return about.ok(SCRIPT)
    had = "missing" if isinstance(seen, Absent) else "another text"
    if "persist" in blocked:
        return about.fail(had, SCRIPT, WHY, remedy=f"nothing is written while {blocked['persist']}: end that first")
    return about.fail(had, SCRIPT, WHY, steps=(step,))


def kept(t: Target, got: Qos) -> Iterator[Finding]:
    """The unit of one interface, its udev rule, and whether the unit is enabled."""
    about = t.about(Code.QOS_NOT_PERSISTED, "persist")
    p = persistence(t.nic.name, t.qos)
    want = f"{p.unit} enabled, with its udev rule"
    steps: list[Step] = []
    wrong: list[str] = []
    for path, text, what in ((p.unit_path, p.unit_text, "unit"), (p.rule_path, p.rule_text, "udev rule")):
        seen = _file(got, path)
        step = _write(seen, path, text)
        if isinstance(step, Unreadable):
            yield about.unknown(step, want)
            return
        if step:
            steps.append(step)
            wrong.append(f"{what} {'missing' if isinstance(seen, Absent) else 'differs'}")
    if isinstance(got.units, Unreadable):
        yield about.unknown(got.units, want)
        return
    if steps:
        steps.append(Run(("systemctl", "daemon-reload"), 60, ("systemctl", "daemon-reload")))
    state = got.units.get(p.unit, "not there")
    if state != "enabled":
        steps.append(Run(("systemctl", "enable", p.unit), 60, ("systemctl", "disable", p.unit)))
        wrong.append(f"not enabled ({state[:60]})")
    if steps:
        yield t.differs(about, ", ".join(wrong), want, WHY, tuple(steps))
    else:
        yield about.ok(want)
