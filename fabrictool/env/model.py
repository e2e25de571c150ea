"""What the env room reads from one node: its own files, other places that set the same variables, consumers, GPUs, GIDs, units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool import ports
from fabrictool.env.quoting import Item, Style, items, parse
from fabrictool.env.targets import DOCKER_ENV, NCCL_CONF, PROFILE_D
from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports import Ports
from fabrictool.snapshot import Section, Snapshot, consumers, files, script, sysfs
from fabrictool.snapshot.consumers import Consumers
from fabrictool.snapshot.whole import FILES_END, Files, whole_files
from fabrictool.values import Gid

_IB = "/sys/class/infiniband"
_STYLES = frozenset(s.value for s in Style)

SECTIONS: tuple[Section, ...] = (
    files("env.files", NCCL_CONF, DOCKER_ENV, PROFILE_D, "/etc/systemd/system/*.d/50-fabrictool.conf", FILES_END),
    script("env.places", "envplaces.sh", root=True),
    consumers.SECTION,
    Section("env.gpu", "nvidia-smi --query-gpu=compute_cap,name --format=csv,noheader && echo end"),
    # The first 20 entries: IPv4 ones come before those of later VLANs and addresses.
    sysfs("env.gids", *(f"{_IB}/*/ports/1/{what}/{n}" for what in ("gids", "gid_attrs/types") for n in ("?", "1?")), FILES_END),
    Section("env.units", "systemctl show --type=service --property=Id,NeedDaemonReload '*' && echo end"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file that sets variables. `items` in file order."""

    path: str
    style: Style
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """`denied`: files that may not be read. `partial`: files of which a part was not read."""

    found: tuple[Place, ...]
    denied: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """`capability` as nvidia-smi prints it ("12.1")."""

    capability: str
    name: str


@dataclass(frozen=True, slots=True)
class State:
    """`gids`: RDMA device -> index -> (GID, type), the entries of port 1 that are in use. `reload`: unit -> systemd holds an older
    version than the files."""

    ports: Ports
    files: Files
    places: Places | Unreadable
    consumers: Consumers | Unreadable
    gpus: Observed[tuple[Gpu, ...]]
    gids: Mapping[str, Mapping[int, tuple[Gid, str]]] | Unreadable = field(default_factory=dict)
    reload: Mapping[str, bool] | Unreadable = field(default_factory=dict)


def read(snap: Snapshot) -> State:
    return State(ports.read(snap), whole_files(snap, "env.files"), _places(snap), consumers.read(snap), _gpus(snap), _gids(snap),
                 _units(snap))


def text_place(path: str, style: Style, text: str) -> Place:
    """A whole file of one assignment a line."""
    return Place(path, style, items(style, text))


def _places(snap: Snapshot) -> Places | Unreadable:
    raw = snap.raw("env.places")
    if isinstance(raw, Unreadable):
        return raw
    if not (raw.out == "end\n" or raw.out.endswith("\nend\n")):
        return Unreadable(Reason.CUT, "env.places: the end is missing")
    found: dict[str, tuple[Style, list[Item]]] = {}
    denied: list[str] = []
    partial: list[str] = []
    mine: list[Item] = []
    style = Style.CONF
    for line in raw.out.split("\n")[:-2]:
        kind, _, rest = line.partition(" ")
        first, _, tail = rest.partition(" ")
        if kind == "@" and first in _STYLES:
            style, mine = Style(first), []
            found.setdefault(tail, (style, mine))  # a file may be named by two units: once is enough
        elif kind == "!":
            denied.append(rest)
        elif kind == "<":
            partial.append(rest)
        elif kind == "a" and re.fullmatch(r"[0-9]{1,9}", first):
            item = parse(style, int(first), tail)
            if item is not None:
                mine.append(item)
        elif kind != "f":
            return Unreadable(Reason.GARBLED, f"env.places: {line[:80]!r}")
    return Places(tuple(Place(path, s, tuple(i)) for path, (s, i) in found.items()), tuple(denied),
                  tuple(dict.fromkeys(partial)))


def _whole(snap: Snapshot, name: str) -> list[str] | Unreadable:
    """The lines before a section's end marker."""
    text = snap.text(name)
    if isinstance(text, Unreadable):
        return text
    lines = text.value.split("\n")
    return lines[:-2] if lines[-2:] == ["end", ""] else Unreadable(Reason.CUT, f"{name}: the end is missing")


def _gpus(snap: Snapshot) -> Observed[tuple[Gpu, ...]]:
    lines = _whole(snap, "env.gpu")
    if isinstance(lines, Unreadable):
        return lines
    rows = [[cell.strip() for cell in line.split(",", 1)] for line in lines if line.strip()]
    if not rows or not all(len(r) == 2 and re.fullmatch(r"\d+\.\d+", r[0]) for r in rows):
        return Unreadable(Reason.GARBLED, f"env.gpu: {'; '.join(lines)[:80]!r}")
    return Value(tuple(Gpu(cap, name) for cap, name in rows))


def _gids(snap: Snapshot) -> Mapping[str, Mapping[int, tuple[Gid, str]]] | Unreadable:
    got = snap.sysfs("env.gids")
    if isinstance(got, Unreadable):
        return got
    if FILES_END not in got:
        return Unreadable(Reason.CUT, "env.gids: the end is missing")
    out: dict[str, dict[int, tuple[Gid, str]]] = {}
    for path, content in got.items():
        m = re.fullmatch(rf"{_IB}/([^/]+)/ports/1/gids/(\d{{1,5}})", path)
        if not m:
            continue
        kind = got.get(f"{_IB}/{m[1]}/ports/1/gid_attrs/types/{m[2]}", "").strip()
        try:
            gid = Gid.parse(content.strip())
        except ValueError:
            return Unreadable(Reason.GARBLED, f"{path}: {content[:60]!r}")
        mine = out.setdefault(m[1], {})
        if not gid.empty:
            mine[int(m[2])] = (gid, kind)
    return out


def _units(snap: Snapshot) -> Mapping[str, bool] | Unreadable:
    lines = _whole(snap, "env.units")
    if isinstance(lines, Unreadable):
        return lines
    out: dict[str, bool] = {}
    unit, need = "", ""
    for line in (*lines, ""):
        key, _, value = line.strip().partition("=")
        if key == "Id":
            unit = value
        elif key == "NeedDaemonReload":
            need = value
        elif not key:
            if unit and need in ("yes", "no"):
                out[unit] = need == "yes"
            unit = need = ""
    return out if out else Unreadable(Reason.GARBLED, f"env.units: {'; '.join(lines)[:80]!r}")
