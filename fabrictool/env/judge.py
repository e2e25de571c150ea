"""The env room's judge: our files, then the rules over every place, then what runs."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool import ports
from fabrictool.env import arch, lint, override, running
from fabrictool.env.derive import DERIVED, Desired, desired, unwritable
from fabrictool.env.model import Place, State, text_place
from fabrictool.env.quoting import Style
from fabrictool.env.rules import Here
from fabrictool.env.targets import DOCKER_ENV, MODE, NCCL_CONF, Target, difference, targets
from fabrictool.model import Absent, Code, Finding, Reason, Run, Step, Subject, SubjectKind, Unreadable, Value, WriteFile
from fabrictool.room import About, Fleet
from fabrictool.snapshot.model import FileText
from fabrictool.snapshot.whole import pick, pinned
from fabrictool.spec import NodeSpec

ASPECTS = ("nccl_conf", "docker_env", "profile_d", "systemd")
RELOAD = Run(("systemctl", "daemon-reload"), 60)


def judge(want: NodeSpec, got: State, fleet: Fleet) -> Iterator[Finding]:
    node = Subject(SubjectKind.NODE, (want.name,))
    wished = desired(want, got.ports)
    mine = tuple(targets(want.env.write))
    drifted: set[str] = set()
    for target in mine:
        for finding in _file(node, target, wished, got):
            if finding.steps:
                drifted.add(target.path)
            yield finding
    for aspect in ASPECTS:
        if not any(t.aspect == aspect for t in mine):
            yield About(Code.ENV_FILE_DRIFT, node, f"env.{aspect}", aspect).skip("not in env.write")
    for fault in wished.faults:
        yield About(fault.code, node, f"env.spec.{fault.name}", lint.ASPECT).fail(
            f"{fault.name}={fault.got}", fault.want, fault.why, remedy="change env.set in the spec")
    here = _here(want, got)
    yield from _rules(node, want, wished, got, here, mine, frozenset(drifted))
    known = Unreadable(Reason.BLOCKED, wished.blocked.why) if wished.blocked else wished.variables
    yield from running.judge(node, want.env.consumers, known, got, here, mine, frozenset(drifted))


def _file(node: Subject, target: Target, wished: Desired, got: State) -> Iterator[Finding]:
    """One file of ours against what it must hold."""
    about = About(Code.ENV_FILE_DRIFT, node, f"env.{target.label}", target.aspect)
    want = f"{target.path} as the spec says"
    broken = unwritable(target, wished.variables)
    if wished.blocked:
        yield about.unknown(Unreadable(wished.blocked.reason, wished.blocked.why), want)
        return
    if wished.faults or broken:
        fault = broken or wished.faults[0]
        yield about.unknown(Unreadable(Reason.BLOCKED, f"{fault.code}: env.set.{fault.name}: {fault.why}"), want)
        return
    now = pick(got.files, target.path)
    if isinstance(now, Unreadable):
        yield about.unknown(now, want)
        return
    yield _drift(about, target, now, wished)
    yield from _owner(node, target, now)
    if target.unit:
        yield _loaded(node, target, got)


def _drift(about: About, target: Target, now: Value[FileText] | Absent, wished: Desired) -> Finding:
    text = now.value.text if isinstance(now, Value) else ""
    need = target.text(text, wished.variables)
    mode = now.value.mode if isinstance(now, Value) else None
    if isinstance(now, Value) and text == need and mode in (None, MODE):
        return about.ok(f"{target.path}: {sum(map(target.takes, wished.variables))} variables")
    if isinstance(now, Absent) and not any(map(target.takes, wished.variables)):
        return about.ok(f"{target.path}: absent, and nothing to set")
    before = now.value.sha256 if isinstance(now, Value) else ""
    steps: tuple[Step, ...] = (WriteFile(target.path, need, before, MODE), *((RELOAD,) if target.unit else ()))
    have, wants = difference(text, need)
    if isinstance(now, Absent):
        have = now.what if "link" in now.what else f"no {target.path}"
    elif text == need:
        have, wants = f"mode {mode:04o}", f"mode {MODE:04o}"
    why = "there is no such file" if isinstance(now, Absent) else "the file sets something else than the spec"
    if "\r\n" in text:
        why = "it has Windows line ends, and NCCL before 2.26.5 takes the CR as part of each value"
    fixed = pinned(now)
    return about.fail(have, wants, why, steps=() if fixed else steps, remedy=fixed)


def _owner(node: Subject, target: Target, now: Value[FileText] | Absent) -> Iterator[Finding]:
    """Whoever owns a file can change it, whatever its mode. Nothing is said where the node could not tell the owner."""
    if not isinstance(now, Value) or now.value.uid is None:
        return
    about = About(Code.ENV_LINT, node, f"env.{target.label}.owner", "")
    want = f"{target.path} owned by root"
    if now.value.uid == 0:
        yield about.ok(want)
    else:
        yield about.warn(f"owned by uid {now.value.uid}", want, "that user can change what every job reads",
                         remedy=f"on the node: chown root:root {target.path}")


def _loaded(node: Subject, target: Target, got: State) -> Finding:
    """systemd's own copy of the unit. A unit that systemd has not loaded reads the files when it starts."""
    about = About(Code.ENV_FILE_DRIFT, node, f"env.{target.label}.loaded", target.aspect)
    want = f"systemd has read {target.path}"
    if isinstance(got.reload, Unreadable):
        return about.unknown(got.reload, want)
    if not got.reload.get(target.unit, False):
        return about.ok("loaded" if target.unit in got.reload else f"{target.unit} is not loaded", want)
    return about.fail("systemd holds an older version", want, "files of the unit changed and systemd was not told", steps=(RELOAD,))


def _here(want: NodeSpec, got: State) -> Here:
    bound = ports.bind(want, got.ports)
    device = ports.bootstrap(want, got.ports)
    rdma = got.ports.rdma if isinstance(got.ports.rdma, Unreadable) else tuple(got.ports.rdma)
    hcas = tuple(dict.fromkeys(b.rdma.value.name for b in bound if isinstance(b.rdma, Value)))
    return Here(got.ports.netdevs, rdma, device.value.name if isinstance(device, Value) else "", hcas, want.other_rdma,
                bool(bound), want.gpu is not None, len(want.nodes))


def _rules(node: Subject, want: NodeSpec, wished: Desired, got: State, here: Here, mine: tuple[Target, ...],
           drifted: frozenset[str]) -> Iterator[Finding]:
    chosen = lint.Source("spec", Style.PROCESS, lint.from_values(wished.variables), bool(mine), remedy="change env in the spec")
    yield from lint.judge(node, chosen, here, got.gids)
    yield from lint.secrets(node, wished.variables)
    ours = {t.path: t for t in mine}
    extra: list[Place] = []
    for path, style in ((NCCL_CONF, Style.CONF), (DOCKER_ENV, Style.DOCKER)):
        file = pick(got.files, path)
        about = About(Code.ENV_LINT, node, f"env.lint.{path}", lint.ASPECT)
        if isinstance(file, Unreadable):
            yield about.unknown(file, "no rule broken")
        elif isinstance(file, Value):
            place = text_place(path, style, file.value.text)
            extra.append(place)
            yield from _lint(node, place, wished, here, got, ours.get(path), path in drifted)
        else:
            yield about.ok("absent", "no rule broken")
    places = got.places
    if isinstance(places, Unreadable):
        yield About(Code.ENV_LINT, node, "env.lint.places", lint.ASPECT).unknown(places, "no rule broken")
    else:
        for place in places.found:
            if place.items:
                yield from _lint(node, place, wished, here, got, ours.get(place.path), place.path in drifted)
    yield from override.judge(node, wished.variables, places, tuple(extra), mine)
    set_in = [("spec", v) for n, v in wished.variables.items() if n == arch.NAME]
    others = (*extra, *(() if isinstance(places, Unreadable) else places.found))
    set_in += [(p.path, i.value) for p in others if p.path not in ours for i in p.items if i.key == arch.NAME and i.value is not None]
    yield from arch.judge(node, set_in, got.gpus)


def _lint(node: Subject, place: Place, wished: Desired, here: Here, got: State, target: Target | None, drifted: bool) -> Iterator[Finding]:
    """A file's own rules. What the spec itself says is judged once, as the spec's."""
    kept = tuple(i for i in place.items if not (target and i.name == i.key and wished.variables.get(i.key) == i.value))
    repaired: frozenset[str] | None = frozenset()
    if target is not None and drifted:
        repaired = frozenset((*wished.variables, *DERIVED)) if target.shared else None
    source = lint.Source(place.path, place.style, kept, True, repaired, left_out=len(place.items) - len(kept))
    yield from lint.judge(node, source, here, got.gids)
