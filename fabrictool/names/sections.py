"""What the names room collects, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.ports import Ports
from fabrictool.snapshot import Each, Section, Snapshot, consumers, files, script
from fabrictool.snapshot.consumers import Consumers
from fabrictool.snapshot.whole import FILES_END, Files, whole_files

HOSTS = "/etc/hosts"
CLOUD_OVERRIDE = "/etc/cloud/cloud.cfg.d/99-fabrictool-hosts.cfg"

# cloud-init's own files may hold credentials: only the one key leaves the node. Order = precedence, the last one wins.
_CLOUD = """[ -d /etc/cloud ] || { echo absent; echo end; exit 0; }
[ -e /etc/cloud/cloud-init.disabled ] && echo disabled
for f in /etc/cloud/cloud.cfg /etc/cloud/cloud.cfg.d/*.cfg /var/lib/cloud/instance/cloud-config.txt; do
  [ -e "$f" ] || continue
  if [ ! -r "$f" ]; then echo "denied $f"; continue; fi
  sed -n 's/^manage_etc_hosts[[:space:]]*:[[:space:]]*\\([A-Za-z"'"'"']*\\).*/\\1/p' "$f" | tail -n 1 | while IFS= read -r v; do
    printf 'set %s %s\\n' "${v:--}" "$f"
  done
done
for f in /etc/cloud/templates/hosts.*.tmpl; do
  [ -e "$f" ] && printf 'template %s\\n' "$f"
done
echo end"""

SECTIONS: tuple[Section, ...] = (
    files("names.files", HOSTS, "/etc/hostname", "/etc/nsswitch.conf", CLOUD_OVERRIDE, FILES_END),
    script("names.resolved", "peers.sh", each=Each.PEERS, timeout_s=60),
    Section("names.cloud", _CLOUD, root=True),
    consumers.SECTION,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a name resolves to, in getaddrinfo's order. No addresses: the name is not known, or (`late`) no server said in 5 s."""

    name: str
    addresses: tuple[str, ...]
    canonical: tuple[str, ...] = ()
    late: bool = False

    def __str__(self) -> str:
        return ", ".join(self.addresses) or ("no answer in 5 s" if self.late else "no address")


@dataclass(frozen=True, slots=True)
class Resolved:
    """`own`: the running host name."""

    own: str
    answers: Mapping[str, Observed[Answer]]

    def of(self, name: str) -> Observed[Answer]:
        return self.answers.get(name, Unreadable(Reason.NOT_COLLECTED, f"{name}: not looked up in this snapshot"))


@dataclass(frozen=True, slots=True)
class Cloud:
    """cloud-init on this node. `settings`: (file, value of manage_etc_hosts) in order of precedence, the last one wins."""

    present: bool
    disabled: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    templates: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    ports: Ports
    files: Files
    resolved: Resolved | Unreadable
    cloud: Cloud | Unreadable
    consumers: Consumers | Unreadable


def read(snap: Snapshot) -> State:
    return State(ports.read(snap), whole_files(snap, "names.files"), _resolved(snap), _cloud(snap), consumers.read(snap))


def _lines(snap: Snapshot, name: str) -> list[str] | Unreadable:
    text = snap.text(name)
    if isinstance(text, Unreadable):
        return text
    lines = text.value.split("\n")
    return lines[:-2] if lines[-2:] == ["end", ""] else Unreadable(Reason.CUT, f"{name}: the end is missing")


def _resolved(snap: Snapshot) -> Resolved | Unreadable:
    lines = _lines(snap, "names.resolved")
    if isinstance(lines, Unreadable):
        return lines
    if not lines or not lines[0].startswith("self "):
        return Unreadable(Reason.GARBLED, "names.resolved: no host name")
    found: dict[str, tuple[int, list[str], list[str]]] = {}
    name = ""
    for line in lines[1:]:
        kind, _, rest = line.partition(" ")
        first, _, tail = rest.partition(" ")
        if kind == "r" and re.fullmatch(r"[0-9]{1,9}", first) and tail:
            name = tail
            found[name] = (int(first), [], [])
        elif kind == "a" and tail and name:
            found[name][1].append(first)
            found[name][2].append(tail)
        else:
            return Unreadable(Reason.GARBLED, f"names.resolved: {line[:60]!r}")
    return Resolved(lines[0][5:], {n: _answer(n, *what) for n, what in found.items()})


def _answer(name: str, rc: int, addresses: list[str], canonical: list[str]) -> Observed[Answer]:
    """getent(1): 2 = not found. 124, 137 = the look-up still waited for some server when its time was up."""
    names = tuple(c for c in dict.fromkeys(canonical) if c != "-")
    if rc in (2, 124, 137):
        return Value(Answer(name, (), (), rc != 2))
    if rc != 0 or not addresses:
        return Unreadable(Reason.FAILED if rc else Reason.EMPTY, f"getent ahosts {name}: exit status {rc}, {len(addresses)} addresses")
    return Value(Answer(name, tuple(addresses), names))


def _cloud(snap: Snapshot) -> Cloud | Unreadable:
    lines = _lines(snap, "names.cloud")
    if isinstance(lines, Unreadable):
        return lines
    settings: list[tuple[str, str]] = []
    templates, denied = [], []
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "set":
            value, _, path = rest.partition(" ")
            settings.append((path, re.sub(r"[\"']", "", value).lower()))
        elif kind == "template":
            templates.append(rest)
        elif kind == "denied":
            denied.append(rest)
        elif line not in ("absent", "disabled"):
            return Unreadable(Reason.GARBLED, f"names.cloud: {line[:60]!r}")
    return Cloud("absent" not in lines, "disabled" in lines, tuple(settings), tuple(templates), tuple(denied))
