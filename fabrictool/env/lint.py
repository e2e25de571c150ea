"""The rules of the variables, applied to every place where they are set. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fabrictool.env import rules
from fabrictool.env.derive import GID_INDEX
from fabrictool.env.gids import Gids, pinned
from fabrictool.env.quoting import Item, Style
from fabrictool.env.rules import Here, Problem
from fabrictool.env.targets import SECRET, shown
from fabrictool.model import Code, Finding, Status, Subject
from fabrictool.room import About

ASPECT = "lint"
INTERFACES = ("NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES")
ADDRESSES = ("MASTER_ADDR", "VLLM_HOST_IP", "SGLANG_HOST_IP", "HOST_IP", "VLLM_NIXL_SIDE_CHANNEL_HOST")


@dataclass(frozen=True, slots=True)
class Source:
    """Something that sets variables. `label` stands in paths; `repaired`: keys whose line `apply` rewrites anyway (None: every line).
    `left_out`: how many of its variables are judged elsewhere, as the spec's."""

    label: str
    style: Style
    items: tuple[Item, ...]
    persistent: bool = True
    repaired: frozenset[str] | None = field(default_factory=frozenset)
    remedy: str = ""
    left_out: int = 0


def problems(name: str, value: str, here: Here, gids: Gids) -> Iterator[Problem]:
    """What the value of one variable breaks on this node."""
    if name == GID_INDEX:
        found = pinned(value, gids, here.hcas)
        if found:
            yield found
    elif name == "NCCL_SOCKET_IFNAME":
        yield from rules.socket_ifname(value, here)
    elif name in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
        yield from rules.exact_ifname(value, here)
    elif name == "NCCL_IB_HCA":
        yield from rules.ib_hca(value, here)
    elif name == "UCX_NET_DEVICES":
        yield from rules.ucx_devices(value, here)
    elif name == "UCX_TLS":
        yield from rules.ucx_tls(value, here)
    elif name in rules.RANGES:
        yield from rules.in_range(name, value)
    elif name in ADDRESSES:
        yield from rules.own_address(name, value, here)
    else:
        yield from rules.forced_off(name, value, here)


def spelling(item: Item, style: Style) -> Iterator[Problem]:
    """What is wrong with how the assignment is written, whatever it says."""
    value = item.value or ""
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", item.key):
        yield rules.lint("a variable that exists", f"{item.key!r} is no variable's name")
    elif item.name != item.key:
        effect = "docker refuses the file" if style is Style.DOCKER else f"this sets a variable called {item.name!r}"
        yield rules.lint(f"{item.key}={value.strip()}", f"no `export` and no blanks here: {effect}")
    elif style in (Style.CONF, Style.DOCKER) and len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        yield rules.lint(f"{item.key}={value[1:-1]}", "quotes are part of the value here")
    elif value != value.strip(" \t\r\n"):
        end = "a CR (Windows line end)" if value.endswith("\r") else "a blank"
        why = f"{end} is part of the value here"
        yield rules.no_such(value.strip(), f"{why}, and no name matches it") if item.key in INTERFACES else rules.lint(value.strip(), why)


def judge(node: Subject, source: Source, here: Here, gids: Gids) -> Iterator[Finding]:
    """One PASS for the source, or what it breaks: one finding for each variable and code."""
    merged: dict[tuple[str, Code, bool], list[tuple[Item, Problem]]] = {}
    seen: dict[str, Item] = {}
    for item in source.items:
        for problem in _of(item, source, here, gids, seen):
            merged.setdefault((item.key, problem.code, problem.unread is None), []).append((item, problem))
    unclear = [i.key for i in source.items if i.value is None]
    for (key, code, _), hits in merged.items():
        yield _finding(node, source, key, code, hits)
    if not merged:
        many = _many(source)
        about = About(Code.ENV_LINT, node, f"env.lint.{source.label}", ASPECT)
        yield about.ok(many + (f"; only a shell knows the value of {', '.join(unclear)}" if unclear else ""), "no rule broken")


def _many(source: Source) -> str:
    """How many variables were looked at, and which were not."""
    here, spec = len(source.items), source.left_out
    if not here:
        return f"only what the spec sets: {_count(spec)}" if spec else "sets none of the variables that are looked at"
    return f"{_count(here)} beside what the spec sets" if spec else _count(here)


def _count(n: int) -> str:
    return f"{n} variable{'' if n == 1 else 's'}"


def _of(item: Item, source: Source, here: Here, gids: Gids, seen: dict[str, Item]) -> Iterator[Problem]:
    key = item.key
    before = seen.setdefault(key, item)
    if before is not item and before.value != item.value:
        wins = before if source.style is Style.CONF else item
        yield rules.lint("set once", f"set twice, on lines {before.line} and {item.line}; line {wins.line} counts", Status.WARN)
        if source.style is Style.CONF:
            return
    if source.persistent and key.startswith("NCCL_DEBUG"):
        yield Problem(Code.ENV_DEBUG_LEFT_ON, "not set in a file that stays", "every job logs at this level until someone remembers",
                      Status.WARN)
    if item.value is None:
        return
    wrong = list(spelling(item, source.style)) if source.style is not Style.PROCESS else []
    yield from wrong
    if not wrong or key == GID_INDEX:
        yield from problems(key, item.value.strip() if wrong else item.value, here, gids)


def _finding(node: Subject, source: Source, key: str, code: Code, hits: list[tuple[Item, Problem]]) -> Finding:
    about = About(code, node, f"env.lint.{source.label}.{key}", ASPECT)
    item, first = hits[0]
    got = _quoted(shown(f"{key}={item.value if item.value is not None else item.raw}"))
    if first.unread is not None:
        return about.unknown(first.unread, first.want)
    status = Status.FAIL if any(p.status is Status.FAIL for _, p in hits) else Status.WARN
    why = "; ".join(dict.fromkeys(p.why for _, p in hits))
    repaired = source.repaired is None or key in source.repaired
    if repaired and status is Status.FAIL:
        return about.warn(got, first.want, why, remedy="`fabrictool apply` rewrites this line (ENV_FILE_DRIFT)")
    return about.fail(got, first.want, why, status=status, remedy=source.remedy or f"edit {source.label}, line {item.line}")


def _quoted(text: str) -> str:
    text = text.replace("\r", "\\r").replace("\n", "\\n")
    if text != text.rstrip():
        text = f"'{text}'"
    return text if len(text) <= 200 else f"{text[:200]}..."


def secrets(node: Subject, values: Mapping[str, str]) -> Iterator[Finding]:
    """Names in env.set that look like secrets: the files can be read by everyone on the node."""
    for name in values:
        if SECRET.search(name):
            yield About(Code.ENV_LINT, node, f"env.lint.spec.{name}", ASPECT).warn(
                f"{name}=(not shown)", "not in env.set", "the files written from it can be read by every user of the node",
                remedy="give secrets to the container or unit by its own means")


def from_values(values: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[Item, ...]:
    """Variables that stand in no file."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return tuple(Item(0, name, value, f"{name}={value}") for name, value in pairs)
