"""Unit files as systemd reads them, as far as a lab node needs: fragments, drop-ins, specifiers, environment, what a boot wants.

As in systemd, a changed file counts only after `daemon-reload`: units that were loaded are kept under /run.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

DIRS = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
MANAGER = Path("/run/lab-systemd")
DEFAULT_TIMEOUT_S = 90.0  # systemd's DefaultTimeoutStartSec
LOADABLE = (".service", ".timer", ".target", ".socket", ".path", ".mount", ".device")


@dataclass
class Unit:
    """A unit as loaded. `text`: fragment and drop-ins, with the path of each before it."""

    name: str
    fragment: str = ""
    dropins: tuple[str, ...] = ()
    settings: dict[str, list[str]] = field(default_factory=dict)  # Section.Key -> values; an empty one clears those before

    def last(self, key: str, default: str = "") -> str:
        values = self.settings.get(key)
        return values[-1] if values else default

    @property
    def masked(self) -> bool:
        return os.path.realpath(self.fragment) == "/dev/null" if self.fragment else False

    @property
    def kind(self) -> str:
        return self.last("Service.Type") or ("simple" if self.settings.get("Service.ExecStart") else "oneshot")


def full_name(name: str) -> str:
    return name if name.endswith(LOADABLE) else f"{name}.service"


def _template(name: str) -> str:
    """foo@bar.service -> foo@.service; "" when it is no instance."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem.split('@')[0]}@.{suffix}" if "@" in stem and not stem.endswith("@") else ""


def fragment_of(name: str) -> str:
    for candidate in (name, _template(name)):
        for folder in DIRS:
            if candidate and os.path.lexists(f"{folder}/{candidate}"):
                return f"{folder}/{candidate}"
    return ""


def dropins_of(name: str) -> tuple[str, ...]:
    """By base name over all folders; an earlier folder hides the same name in a later one."""
    found: dict[str, str] = {}
    for folder in reversed(DIRS):
        for unit in (_template(name), name):
            for path in sorted(Path(folder, f"{unit}.d").glob("*.conf")) if unit else ():
                found[path.name] = str(path)
    return tuple(found[n] for n in sorted(found))


def parse(text: str, settings: dict[str, list[str]]) -> None:
    """Add a unit file's assignments, with systemd's rules: continuation lines, comments, an empty value resets a list."""
    section = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            section = line[1:-1]
            continue
        key, eq, value = line.partition("=")
        if eq and section:
            values = settings.setdefault(f"{section}.{key.strip()}", [])
            if value.strip():
                values.append(value.strip())
            else:
                values.clear()


def load_from_disk(name: str) -> Unit:
    unit = Unit(name, fragment_of(name), dropins_of(name))
    if unit.masked:
        return unit
    for path in (*((unit.fragment,) if unit.fragment else ()), *unit.dropins):
        try:
            parse(Path(path).read_text(errors="surrogateescape"), unit.settings)
        except OSError:
            continue
    return unit


def load(name: str) -> Unit:
    """The unit as the manager knows it: from the disk the first time, then until `daemon-reload` as it was."""
    kept = MANAGER / "loaded" / name
    if kept.exists():
        raw = json.loads(kept.read_text())
        return Unit(raw["name"], raw["fragment"], tuple(raw["dropins"]), raw["settings"])
    unit = load_from_disk(name)
    if unit.fragment and os.geteuid() == 0:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(unit.__dict__))
    return unit


def needs_reload(unit: Unit) -> bool:
    now = load_from_disk(unit.name)
    return (now.fragment, now.dropins, now.settings) != (unit.fragment, unit.dropins, unit.settings)


def reload_all() -> None:
    for kept in (MANAGER / "loaded").glob("*"):
        kept.unlink()


def specifiers(text: str, name: str) -> str:
    """The specifiers that units of this kind use: %n %N %p %i %I %H %%."""
    stem = name.rpartition(".")[0]
    prefix, _, instance = stem.partition("@")
    plain = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), instance.replace("-", "/"))
    table = {"n": name, "N": stem, "p": prefix, "i": instance, "I": plain, "H": os.uname().nodename, "%": "%"}
    return re.sub(r"%([nNpiIH%])", lambda m: table[m[1]], text)


def environment(unit: Unit) -> dict[str, str]:
    """Environment= and EnvironmentFile= (files win), over the manager's own."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    for line in unit.settings.get("Service.Environment", ()):
        for word in words_of(line):  # systemd takes quotes off first, and puts specifiers in then
            key, eq, value = specifiers(word, unit.name).partition("=")
            if eq:
                env[key] = value
    for path in unit.settings.get("Service.EnvironmentFile", ()):
        try:
            text = Path(path.lstrip("-")).read_text(errors="surrogateescape")
        except OSError:
            continue
        for line in text.splitlines():
            key, eq, value = line.strip().partition("=")
            if eq and key and key[0] not in "#;":
                env[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return env


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def seconds(text: str, default: float) -> float:
    """systemd's time spans: `90`, `90s`, `1min 30s`, `500ms`, `infinity`."""
    if text == "infinity":
        return 3600.0
    scale = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "min": 60.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"([0-9.]+)\s*([a-z]*)", text)
    return sum(float(n) * scale.get(u, 1.0) for n, u in parts) if parts else default


def wanted() -> list[str]:
    """Units that a boot starts: everything that an enabled unit's symlink in a .wants or .requires folder names."""
    found: dict[str, None] = {}
    for folder in DIRS[:1]:
        for link in sorted([*Path(folder).glob("*.wants/*"), *Path(folder).glob("*.requires/*")]):
            owner = link.parent.name.rpartition(".")[0]
            device = owner.endswith(".device") and not _device_exists(owner)
            if not device and link.name.endswith(".service"):
                found[link.name] = None
    return list(found)


def _device_exists(unit: str) -> bool:
    """sys-subsystem-net-devices-IF.device: is there such an interface? Other devices count as present."""
    name = fnmatch.fnmatchcase(unit, "sys-subsystem-net-devices-*.device")
    interface = unit.removeprefix("sys-subsystem-net-devices-").removesuffix(".device")
    interface = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), interface)
    return not name or os.path.exists(f"/sys/class/net/{interface}")
