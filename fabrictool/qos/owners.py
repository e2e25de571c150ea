"""Who else sets QoS on the node: lines of units, rules, hooks and scripts; daemons.

A line is only *understood* where interface and values stand in it literally. What is not understood is never taken for harmless.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from fabrictool.model import Reason, Unreadable
from fabrictool.qos.model import Writer
from fabrictool.qos.persist import RULES_DIR, SCRIPT, UNIT_PREFIX
from fabrictool.qos.sections import UNITS_END
from fabrictool.snapshot import Captured

LINE = re.compile(r"(/[^:]+):(\d{1,7}):(.*)")
OURS = re.compile(rf"{re.escape(SCRIPT)}|/etc/systemd/system/{UNIT_PREFIX}[^/]*|{re.escape(RULES_DIR)}/\d+-{UNIT_PREFIX}[^/]*")
UNIT_FILE = re.compile(r"/(?:etc|lib|usr/lib|usr/local/lib)/systemd/system/([^/]+)\.service")
STARTED = re.compile(r"# (/\S+) is started by (/\S+)")
LONGEST = 4096  # characters of a line; longer ones are judged by their beginning

# option of mlnx_qos -> (aspect it writes, takes a value)
OPTIONS: Mapping[str, tuple[str, bool]] = {
    "-i": ("", True), "--interface": ("", True), "-f": ("pfc", True), "--pfc": ("pfc", True),
    "-F": ("pfc?", True), "--specific_pfc": ("pfc?", True), "--trust": ("trust", True), "--dscp2prio": ("map", True),
    "-d": ("dcbx", True), "--dcbx": ("dcbx", True), "-p": ("tc?", True), "--prio_tc": ("tc?", True), "-s": ("tc?", True),
    "--tsa": ("tc?", True), "-t": ("tc?", True), "--tcbw": ("tc?", True), "-r": ("tc?", True), "--ratelimit": ("tc?", True),
    "--prio2buffer": ("tc?", True), "--buffer_size": ("tc?", True), "--cable_len": ("tc?", True), "--defltprio": ("map?", True),
    "-P": ("", True), "--get_pfc": ("", True), "-a": ("", False), "--version": ("", False), "-h": ("", False),
}
ALL = ("dcbx", "trust", "map", "pfc", "tc")


def daemons(got: Mapping[str, str] | Unreadable) -> tuple[str, ...] | Unreadable:
    """Names of the running processes of `sections.DAEMONS`. Without sight of process 1 (hidepid) nothing can be ruled out."""
    if isinstance(got, Unreadable):
        return got
    if "/proc/1/comm" not in got:
        return Unreadable(Reason.NEEDS_ROOT, "processes of other users cannot be seen (/proc is mounted with hidepid)")
    names = {name for path, name in got.items() if path != "/proc/1/comm"}
    return tuple(sorted(names))


def units(got: Captured | Unreadable) -> Mapping[str, str] | Unreadable:
    """unit -> what `systemctl is-enabled` says; `wanted` for any other unit that a target, device or timer link starts.

    Without an answer of systemctl itself nothing is known: a missing or broken one must not look like "not enabled". Nor is anything
    known without the last line: a rival unit whose link was cut off would look like one that nothing starts.
    """
    if isinstance(got, Unreadable):
        return got
    out: dict[str, str] = {}
    version: Unreadable | None = Unreadable(Reason.CUT, "qos.units: systemctl's answer is missing")
    lines = got.out.split("\n")[:-1]
    if not lines or lines.pop().rstrip("\r") != UNITS_END:
        return Unreadable(Reason.CUT, "qos.units: the end is missing")
    for line in lines:
        unit, _, rest = line.partition(" ")
        word, _, said = rest.partition(" ")
        if word == "is-enabled":
            out[unit] = said.strip()
        elif word == "wanted-by":
            out.setdefault(unit, "wanted")
        elif word == "says" and unit == "systemctl":
            version = None if said.startswith("systemd ") else Unreadable(
                Reason.TOOL_MISSING if "not found" in said else Reason.FAILED, f"systemctl --version: {said.strip()[:80] or 'no answer'}")
    return version or out


def writers(got: Captured | Unreadable, wanted: Mapping[str, str] | Unreadable) -> tuple[Writer, ...] | Unreadable:
    """The lines that set QoS, our own files left out. The section must have come to its end."""
    if isinstance(got, Unreadable):
        return got
    lines = got.out.split("\n")[:-1]
    if not lines or not lines[-1].startswith("# files read: "):
        return Unreadable(Reason.CUT, "qos.writers: the list of lines has no end")
    lines = [ln[:LONGEST].rstrip("\r") for ln in lines]
    starters: dict[str, set[str]] = {}
    for line in lines:
        if m := STARTED.fullmatch(line):
            starters.setdefault(m[1], set()).add(m[2])
    found = (LINE.fullmatch(ln) for ln in lines)
    return tuple(_writers((m for m in found if m), starters, wanted))


def _starts(path: str, starters: Mapping[str, set[str]], wanted: Mapping[str, str] | Unreadable) -> bool:
    """Whether something seen runs the file. Hooks, rules and drop-ins run by lying where they lie; where links could not be
    read, a unit counts as started."""
    if unit := UNIT_FILE.fullmatch(path):
        if isinstance(wanted, Unreadable) or (unit[1].endswith("@") and any(name.startswith(unit[1]) for name in wanted)):
            return True
        return any(f"{unit[1]}.{kind}" in wanted for kind in ("service", "timer", "path"))
    if path.startswith("/etc/"):
        return True
    return any(_starts(by, {}, wanted) for by in starters.get(path, ()))


def _writers(found: Iterator[re.Match[str]], starters: Mapping[str, set[str]],
             wanted: Mapping[str, str] | Unreadable) -> Iterator[Writer]:
    seen: set[tuple[str, int]] = set()
    for m in found:
        path, number, text = m[1], int(m[2]), m[3].strip()
        if OURS.fullmatch(path) or text.startswith(("#", ";")) or (path, number) in seen:
            continue
        seen.add((path, number))
        enabled = _starts(path, starters, wanted)
        for interface, settings in commands(text):
            yield Writer(path, number, text[:200], interface, settings, enabled)


def commands(text: str) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """(interface, settings) of every QoS command in a line of shell, unit or rule. Reads give nothing."""
    for part in re.split(r"[;|&]+|\$\(|`", text):
        tool = re.search(r"(?:^|[\s/=\"'])(mlnx_qos|dcb|lldptool|cma_roce_tos|ethtool)(?=\s|$)", part)
        if not tool:
            continue
        rest = part[tool.end():]
        try:
            words = shlex.split(rest, comments=True)
        except ValueError:
            words = rest.replace('"', " ").replace("'", " ").split()
        if tool[1] == "mlnx_qos":
            interface, settings = _mlnx_qos(words)
        else:
            interface, settings = _other(tool[1], words)
        if settings:
            yield interface, settings


def _literal(word: str) -> str:
    return word if re.fullmatch(r"[A-Za-z0-9_.:,/-]+", word) else ""


def _mlnx_qos(words: list[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    interface, settings = "", []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        value = None
        if word.startswith("--") and "=" in word:
            word, _, value = word.partition("=")
        elif re.fullmatch(r"-[ifFpstrdP].+", word):
            word, value = word[:2], word[2:]
        if word not in OPTIONS:
            if word.startswith("$"):
                settings += [(a, "") for a in ALL]  # a variable may hold any option
            continue
        aspect, takes = OPTIONS[word]
        if takes and value is None:
            value = rest.pop(0) if rest else ""
        if word in ("-i", "--interface"):
            interface = _literal(value or "")
        elif aspect.endswith("?"):
            settings.append((aspect[:-1], ""))
        elif aspect and not (aspect == "dcbx" and value == "get"):
            settings.append((aspect, _literal(value or "")))
    return interface, tuple(settings)


def _other(tool: str, words: list[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """ethtool -A, cma_roce_tos; of dcb and lldptool only which aspects they write, their values are not compared."""
    if tool == "ethtool":
        if not words or words[0] not in ("-A", "--pause") or len(words) < 2:
            return "", ()
        given = dict(zip(words[2::2], words[3::2], strict=False))
        values = {given.get("rx"), given.get("tx")}
        return _literal(words[1]), (("pause", _literal(values.pop() or "") if len(values) == 1 else ""),)
    if tool == "cma_roce_tos":  # the class of the RDMA connection manager's queue pairs
        value = words[words.index("-t") + 1] if "-t" in words[:-1] else ""
        return "", (("cm", _literal(value)),) if value else ()
    if tool == "lldptool":
        device = words[words.index("-i") + 1] if "-i" in words[:-1] else ""
        sets = any(re.fullmatch(r"-[a-zA-Z]*[TL][a-zA-Z]*", w) for w in words)
        return _literal(device), tuple((a, "") for a in ALL) if sets else ()
    objects = {"pfc": "pfc", "app": "map", "ets": "tc", "buffer": "tc", "dcbx": "dcbx"}
    plain = [w for w in words if not w.startswith("-")]
    if len(plain) < 2 or plain[0] not in objects or plain[1] in ("show", "help"):
        return "", ()
    device = plain[plain.index("dev") + 1] if "dev" in plain[:-1] else ""
    aspects = ("trust", "map") if plain[0] == "app" else (objects[plain[0]],)
    return _literal(device), tuple((a, "") for a in aspects)
