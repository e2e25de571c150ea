"""Whether QoS comes back after a reboot or a hot-plug, and the steps that see to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.model import Absent, Code, Finding, Observed, Reason, Run, Step, Subject, Unreadable, Value, WriteFile
from fabrictool.qos.model import Qos
from fabrictool.qos.persist import SCRIPT, persistence, script_text
from fabrictool.qos.target import Target
from fabrictool.room import About
from fabrictool.snapshot.model import FileText
from fabrictool.snapshot.whole import pick, pinned

# systemctl(1), is-enabled; "not there": our unit has no file yet; "wanted": only a link of it is left.
STATES = frozenset({"enabled", "enabled-runtime", "linked", "linked-runtime", "alias", "masked", "masked-runtime", "static", "indirect",
                    "disabled", "generated", "transient", "bad", "not-found", "not there", "wanted"})
WHY = "nothing sets it again after a reboot, a driver reload or a hot-plug"


def _file(got: Qos, path: str) -> Observed[FileText]:
    return pick(got.files, path)


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
    fixed = pinned(seen)
    return about.fail(had, SCRIPT, WHY, steps=() if fixed else (step,), remedy=fixed)


def kept(t: Target, got: Qos) -> Iterator[Finding]:
    """The unit of one interface, its udev rule, and whether the unit is enabled."""
    about = t.about(Code.QOS_NOT_PERSISTED, "persist")
    p = persistence(t.nic.name, t.qos)
    want = f"{p.unit} enabled, with its udev rule"
    steps: list[Step] = []
    wrong: list[str] = []
    fixed = ""
    for path, text, what in ((p.unit_path, p.unit_text, "unit"), (p.rule_path, p.rule_text, "udev rule")):
        seen = _file(got, path)
        step = _write(seen, path, text)
        if isinstance(step, Unreadable):
            yield about.unknown(step, want)
            return
        if step:
            fixed = fixed or pinned(seen)
            steps.append(step)
            wrong.append(f"{what} {'missing' if isinstance(seen, Absent) else 'differs'}")
    if isinstance(got.units, Unreadable):
        yield about.unknown(got.units, want)
        return
    state = got.units.get(p.unit, "not there")
    if state not in STATES:
        yield about.unknown(Unreadable(Reason.GARBLED, f"systemctl is-enabled {p.unit}: {state[:60] or 'no answer'}"), want)
        return
    if steps:
        steps.append(Run(("systemctl", "daemon-reload"), 60, ("systemctl", "daemon-reload")))
    if state != "enabled":
        steps.append(Run(("systemctl", "enable", p.unit), 60, ("systemctl", "disable", p.unit)))
        wrong.append(f"not enabled ({state})")
    if steps:
        yield t.differs(about, ", ".join(wrong), want, WHY, () if fixed else tuple(steps), remedy=fixed)
    else:
        yield about.ok(want)
