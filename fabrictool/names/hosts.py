"""/etc/hosts as text: reading it as the resolver does, and editing it without touching anything else. Pure.

Only blanks, tabs and the like separate fields (never other Unicode blanks), lines end at LF; a CR before it is a blank.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_FIELD = re.compile(r"[^ \t\r\f\v]+")
HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
# Names that belong on the loopback lines whatever the host is called.
LOOPBACK_NAMES = re.compile(r"localhost(4|6|\.localdomain|4\.localdomain4|6\.localdomain6)?|ip6-localhost|ip6-loopback|.*\.localhost",
                            re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line with an address. `start`, `end`: where the address stands in the line; `spans`: where each name stands."""

    address: str
    start: int
    end: int
    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def parse_line(line: str) -> Line | None:
    """None for blank lines, comments, and what the resolver skips because it is no address."""
    fields = list(_FIELD.finditer(line.partition("#")[0]))
    if len(fields) < 2 or ip(fields[0][0]) is None:
        return None
    names = fields[1:]
    return Line(fields[0][0], *fields[0].span(), tuple(m[0] for m in names), tuple(m.span() for m in names))


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return None


def loopback(text: str) -> bool:
    """127/8, ::1, and 127/8 mapped into IPv6."""
    got = ip(text)
    if isinstance(got, ipaddress.IPv6Address) and got.ipv4_mapped is not None:
        return got.ipv4_mapped.is_loopback
    return got is not None and got.is_loopback


def same(a: str, b: str) -> bool:
    left, right = ip(a), ip(b)
    return left is not None and left == right


def lookup(text: str, name: str) -> tuple[str, ...]:
    """All addresses of `name` in a hosts file, in file order. Names are compared without case."""
    out = []
    for raw in text.split("\n"):
        line = parse_line(raw)
        if line and name.lower() in (n.lower() for n in line.names):
            out.append(line.address)
    return tuple(dict.fromkeys(out))


def owner(name: str, wanted: Iterable[str]) -> str:
    """The wanted name that `name` is, or is a qualified form of (`spark01.lan` for `spark01`); "" for others."""
    low = name.lower()
    return next((w for w in wanted if low == w.lower() or low.startswith(f"{w.lower()}.")), "")


def edited(text: str, wanted: Mapping[str, str]) -> str:
    """`text` in which every wanted name has its address, and no other address of its family or loopback.

    A line that belongs wholly to one node keeps its place, names and comment and gets the right address (so the 127.0.1.1 line is
    replaced: sudo needs the name). From a line that is shared with others only the name is taken, with its qualified forms. What is
    missing is added at the end. All else stays byte for byte, line ends and the missing newline at the end included.
    """
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    lines = text.split("\n") if text else []
    ends_open = bool(lines) and lines[-1] != ""
    if lines and not ends_open:
        lines.pop()
    placed = {w for w, a in wanted.items() if any(same(x, a) for x in lookup(text, w))}
    moved: dict[str, list[str]] = {}
    out = []
    last_dropped = False
    for raw in lines:
        new = _line(raw, wanted, placed, moved)
        if new is not None:
            out.append(new)
        last_dropped = new is None
    ends_open = ends_open and not last_dropped  # the line before it had its end
    cr = newline[:-1]
    missing = []
    for name, address in wanted.items():
        names = list(dict.fromkeys(moved.get(name, ())))
        if name in placed:
            names = [n for n in names if n.lower() != name.lower()]
        elif name.lower() not in (n.lower() for n in names):
            names.append(name)
        if names:
            missing.append(f"{address} {' '.join(names)}{cr}")
    if missing and ends_open and out and cr and not out[-1].endswith("\r"):
        out[-1] += cr
    joined = "\n".join([*out, *missing])
    if ends_open:
        return joined.removesuffix("\r") if missing else joined
    return f"{joined}\n" if out or missing else ""


def _line(raw: str, wanted: Mapping[str, str], placed: set[str], moved: dict[str, list[str]]) -> str | None:
    """The line as it has to be; None to drop it. `placed`: names that have their right line already (grows). `moved`: names that
    need a line of their own, by wanted name (grows)."""
    line = parse_line(raw)
    if line is None:
        return raw
    wrong = [n for n in line.names if _wrong(line.address, owner(n, wanted), wanted)]
    if not any(n.lower() in (w.lower() for w in wanted) for n in wrong):
        return raw
    owners = {owner(n, wanted) for n in line.names}
    whole = "" not in owners or (loopback(line.address) and not any(LOOPBACK_NAMES.fullmatch(n) for n in line.names))
    addresses = {wanted[o] for o in owners if o}
    if whole and len(addresses) == 1:
        mine = {o for o in owners if o}
        extra = [n for n in line.names if n.lower() not in (m.lower() for m in mine)]
        if mine <= placed and not extra:
            return None  # right elsewhere, and nothing else is lost with it
        placed |= {m for m in mine if m.lower() in (n.lower() for n in line.names)}
        return raw[:line.start] + addresses.pop() + raw[line.end:]
    for name in wrong:
        moved.setdefault(owner(name, wanted), []).append(name)
    return _without(raw, line, wrong)


def _wrong(address: str, name: str, wanted: Mapping[str, str]) -> bool:
    if not name or same(address, wanted[name]):
        return False
    have, need = ip(address), ip(wanted[name])
    return loopback(address) or (have is not None and need is not None and have.version == need.version)


def _without(raw: str, line: Line, names: list[str]) -> str | None:
    """The line without these names, each taken with the blanks before it; None if none is left."""
    if len(names) == len(line.names):
        return None
    for name, (start, end) in reversed(list(zip(line.names, line.spans, strict=True))):
        if name in names:
            gap = len(raw[:start]) - len(raw[:start].rstrip(" \t\f\v"))
            raw = raw[:start - gap] + raw[end:]
    return raw
