"""What running consumers really have against what they should have. Nothing here is set: a restart is the owner's decision. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictool.env import lint
from fabrictool.env.derive import GID_INDEX
from fabrictool.env.gids import AUTOMATIC_SINCE, advice, fits, version
from fabrictool.env.model import State
from fabrictool.env.quoting import Style, items
from fabrictool.env.rules import Here
from fabrictool.env.targets import DOCKER_ENV, NCCL_CONF, Target, shown
from fabrictool.model import Code, Finding, Observed, Reason, Subject, Unreadable, Value
from fabrictool.room import About
from fabrictool.snapshot.consumers import ALLOWED, Consumer, Consumers, Process
from fabrictool.snapshot.whole import pick

ASPECT = "consumers"
WANT = "what the spec wants"


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    got: str | None
    want: str

    def __str__(self) -> str:
        return shown(f"{self.name}={self.got}") if self.got is not None else f"{self.name} unset"


def judge(node: Subject, patterns: tuple[str, ...], wanted: Mapping[str, str] | Unreadable, state: State, here: Here,
          targets: tuple[Target, ...], drifted: frozenset[str]) -> Iterator[Finding]:
    """`drifted`: paths of our files whose text is not yet as wanted."""
    if not patterns:
        yield About(Code.ENV_RESTART_NEEDED, node, "env.running", ASPECT).skip("the spec names no consumers")
    for pattern in patterns:
        about = About(Code.ENV_RESTART_NEEDED, node, f"env.running.{pattern}", ASPECT)
        if isinstance(state.consumers, Unreadable):
            yield about.unknown(state.consumers, WANT)
            continue
        found = state.consumers.named(pattern)
        if isinstance(found, Unreadable):
            yield about.unknown(found, WANT)
        elif not found:
            yield about.ok("none is running", "every running one as the spec wants")
        else:
            for consumer in found:
                yield from _one(node, consumer, wanted, state, state.consumers, here, targets, drifted)


def _one(node: Subject, consumer: Consumer, wanted: Mapping[str, str] | Unreadable, state: State, all_of: Consumers, here: Here,
         targets: tuple[Target, ...], drifted: frozenset[str]) -> Iterator[Finding]:
    label = consumer.label
    ranks = [(p, p.env.value) for p in consumer.ranks if isinstance(p.env, Value)]
    about = About(Code.ENV_RESTART_NEEDED, node, f"env.running.{label}", ASPECT)
    if isinstance(wanted, Unreadable):
        yield about.unknown(wanted, WANT)
    elif not ranks and (consumer.container is not None or consumer.processes):
        seen = next((p.env for p in consumer.processes if isinstance(p.env, Unreadable)),
                    Unreadable(Reason.EMPTY, f"no process of {label} could be read"))
        yield about.unknown(seen, WANT)
    else:
        checked = {n: v for n, v in wanted.items() if ALLOWED.fullmatch(n)}
        yield from _compared(node, about, consumer, checked, ranks, state, all_of, targets, drifted)
    yield _gid(node, consumer, ranks, state, here)
    merged: dict[str, str] = {}
    for _, env in ranks:
        for name, value in env.items():
            merged.setdefault(name, value)
    old = _oldest(ranks)
    merged = {n: v for n, v in merged.items() if n != GID_INDEX or old is None or old >= AUTOMATIC_SINCE}
    how = "give it the right value and start it anew"
    source = lint.Source(label, Style.PROCESS, lint.from_values(merged), persistent=False, remedy=how)
    yield from lint.judge(node, source, here, state.gids)


def _compared(node: Subject, about: About, consumer: Consumer, wanted: Mapping[str, str], ranks: list[tuple[Process, Mapping[str, str]]],
              state: State, all_of: Consumers, targets: tuple[Target, ...], drifted: frozenset[str]) -> Iterator[Finding]:
    source = _file_of(consumer, targets)
    written = all_of.mtimes.get(source.path) if source is not None and source.path not in drifted else None
    fresh = written is not None and consumer.born is not None and consumer.born > written
    stale: list[Difference] = []
    forced: list[Difference] = []
    for name, want in wanted.items():
        got = _running(name, want, consumer, ranks, state, all_of)
        if got != want:
            (forced if fresh and got is not None else stale).append(Difference(name, got, want))
    if forced and source is not None:
        yield About(Code.ENV_OVERRIDE, node, f"{about.path}.override", ASPECT).fail(
            ", ".join(map(str, forced)), ", ".join(f"{d.name}={d.want}" for d in forced),
            f"it was started after {source.path} was written, so its image, its command line or its own scripts set these",
            remedy=f"take them out of {consumer.label}, then start it anew")
    if stale:
        yield about.warn(", ".join(map(str, stale)), ", ".join(f"{d.name}={d.want}" for d in stale),
                         "a process keeps the environment that it was started with", remedy=_restart(consumer, source))
    elif not forced:
        part = "; not every process was looked at" if all_of.partial else ""
        yield about.ok(f"{len(wanted)} variables as wanted in {max(len(ranks), 1)} processes{part}", WANT)


def _file_of(consumer: Consumer, targets: tuple[Target, ...]) -> Target | None:
    """The file of ours from which this consumer takes its environment."""
    unit = consumer.label.removeprefix("systemd:")
    return next((t for t in targets if (t.path == DOCKER_ENV if consumer.container else t.unit == unit)), None)


def _running(name: str, want: str, consumer: Consumer, ranks: list[tuple[Process, Mapping[str, str]]], state: State,
             all_of: Consumers) -> str | None:
    """The value that some process really has, a wrong one first; None = unset, or not to be told."""
    worst: str | None = want if ranks else None
    for process, env in ranks:
        got = env.get(name)
        if got is None and name.startswith("NCCL_"):
            got = _from_conf(name, process, consumer, state, all_of)
        if got != want:
            return got
        worst = got
    return worst


def _from_conf(name: str, process: Process, consumer: Consumer, state: State, all_of: Consumers) -> str | None:
    """From the /etc/nccl.conf that the process sees, if that has not been written since the process started."""
    text: Observed[str]
    if consumer.container is not None:
        inside = consumer.container.files.get(NCCL_CONF)
        if not isinstance(inside, Value):
            return None
        text, when = Value(inside.value.text), inside.value.mtime
    else:
        file = pick(state.files, NCCL_CONF)
        if not isinstance(file, Value):
            return None
        text, when = Value(file.value.text), all_of.mtimes.get(NCCL_CONF)
    if when is not None and process.started < when:
        return None
    return next((i.value for i in items(Style.CONF, text.value) if i.name == name), None)


def _restart(consumer: Consumer, source: Target | None) -> str:
    if consumer.container is None:
        return f"restart {consumer.label.removeprefix('systemd:')} when its work allows"
    how = f"--env-file {source.path}" if source is not None else "the wanted variables"
    return (f"remove {consumer.container.name} and run it again with {how} when its work allows: "
            "`docker restart` keeps the old environment")


def _oldest(ranks: list[tuple[Process, Mapping[str, str]]]) -> tuple[int, ...] | None:
    return min((version(v) for p, _ in ranks for v in p.versions), default=None)


def _gid(node: Subject, consumer: Consumer, ranks: list[tuple[Process, Mapping[str, str]]], state: State, here: Here) -> Finding:
    about = About(Code.GID_NOT_AUTOMATIC, node, f"env.running.{consumer.label}.gid", ASPECT)
    want = "an NCCL that finds the RoCE v2 GID by itself (2.21 or newer)"
    if not any(p.libraries for p, _ in ranks):
        return about.skip(f"no process of {consumer.label} has loaded an NCCL library")
    old = _oldest(ranks)
    if old is None:
        library = next(p.libraries[0] for p, _ in ranks if p.libraries)
        return about.unknown(Unreadable(Reason.EMPTY, f"the version of {library} cannot be told from its name"), want)
    text = ".".join(map(str, old))
    if old >= AUTOMATIC_SINCE:
        return about.ok(f"NCCL {text}", want)
    values = {env.get(GID_INDEX) for p, env in ranks if p.libraries}
    if all(v is not None and fits(v.strip(), state.gids, here.hcas) for v in values):
        return about.ok(f"NCCL {text} with {GID_INDEX}={', '.join(sorted(v for v in values if v))}", want)
    got = ", ".join(sorted(f"{GID_INDEX}={v}" if v is not None else f"{GID_INDEX} unset" for v in values))
    return about.fail(f"NCCL {text}, {got}", f"{GID_INDEX}={advice(state.gids, here.hcas)} for this consumer only",
                      "NCCL before 2.21 takes GID index 0, which is link-local or RoCE v1", remedy="use a newer NCCL, or set the index "
                      f"for {consumer.label} alone and start it anew")
