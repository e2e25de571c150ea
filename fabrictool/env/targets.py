"""The files that are written: what each must hold, given what it holds now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabrictool.env.quoting import Style, items, spell

HEADER = "# Written by fabrictool from the cluster's spec. Changes made here are overwritten.\n"
NCCL_CONF = "/etc/nccl.conf"
DOCKER_ENV = "/etc/fabrictool/nccl.env"
PROFILE_D = "/etc/profile.d/fabrictool.sh"
MODE = 0o644  # read by every consumer, whatever its user

SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE_?KEY|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """One file. `aspect` is the deploy line that sets it; `unit` for a systemd drop-in; `shared`: others' lines in it are kept."""

    aspect: str
    path: str
    style: Style
    unit: str = ""
    shared: bool = False

    @property
    def label(self) -> str:
        return f"systemd.{self.unit}" if self.unit else self.aspect

    def takes(self, name: str) -> bool:
        return self.style is not Style.CONF or name.startswith("NCCL_")

    def text(self, now: str, wanted: Mapping[str, str]) -> str:
        """The whole file as it has to be. `now`: its text, "" if there is none."""
        mine = {n: v for n, v in sorted(wanted.items()) if self.takes(n)}
        if self.shared:
            return merged(now, mine)
        lines = "".join(f"{spell(self.style, n, v)}\n" for n, v in mine.items())
        return f"{HEADER}[Service]\n{lines}" if self.style is Style.UNIT else HEADER + lines


def unit_name(name: str) -> str:
    return name if re.search(r"\.[a-z]+$", name) else f"{name}.service"


def dropin(unit: str) -> str:
    return f"/etc/systemd/system/{unit}.d/50-fabrictool.conf"


def targets(write: Iterable[str]) -> Iterator[Target]:
    """The files of `env.write`, each once."""
    for word in dict.fromkeys(write):
        kind, _, unit = word.partition(":")
        if kind == "nccl_conf":
            yield Target(kind, NCCL_CONF, Style.CONF, shared=True)
        elif kind == "docker_env":
            yield Target(kind, DOCKER_ENV, Style.DOCKER)
        elif kind == "profile_d":
            yield Target(kind, PROFILE_D, Style.SHELL)
        else:
            yield Target(kind, dropin(unit_name(unit)), Style.UNIT, unit_name(unit))


def merged(now: str, mine: Mapping[str, str]) -> str:
    """nccl.conf with our settings in it and every other line kept where it was.

    Each of ours stands once, where it first stood, spelled as NCCL reads it (a line with `export` or blanks round the name was
    meant to be that setting). Line ends become LF: NCCL before 2.26.5 takes the CR as part of the value. No comment of ours goes in:
    older NCCL knows none.
    """
    left = dict(mine)
    out = []
    found = {i.line: i.key for i in items(Style.CONF, now)}
    lines = now.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        key = found.get(number)
        if key is None or key not in mine:
            out.append(line.rstrip("\r"))
        elif key in left:
            out.append(spell(Style.CONF, key, left.pop(key)))
    out += [spell(Style.CONF, n, v) for n, v in left.items()]
    return "".join(f"{line}\n" for line in out)


def difference(now: str, wanted: str, limit: int = 400) -> tuple[str, str]:
    """(got, want): the lines that only one of them has, comments only where nothing else differs. Values that look secret are not shown."""
    have, need = now.split("\n"), wanted.split("\n")
    gone = [shown(line) for line in have if line not in need]
    new = [shown(line) for line in need if line not in have]
    if not gone and not new:
        return "the same lines in another order, repeated, or with another end", "as written by fabrictool"
    said = [[line for line in lines if not line.startswith("#")] for lines in (gone, new)]
    if any(line for lines in said for line in lines):
        gone, new = said
    return _joined(gone, limit) or "lacks lines", _joined(new, limit) or "without them"


def shown(line: str) -> str:
    name, eq, _ = line.partition("=")
    return f"{name}=(not shown)" if eq and SECRET.search(name) else line


def _joined(lines: list[str], limit: int) -> str:
    text = "; ".join(line.replace("\r", "\\r") for line in lines if line)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} more characters)"
