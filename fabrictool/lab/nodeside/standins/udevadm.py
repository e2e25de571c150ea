"""udevadm: `trigger` really matches the node's rules and runs what they ask for."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from fabrictool.lab.nodeside import udev
from fabrictool.lab.nodeside.tool import Answer, Call

LOCKED = False  # rules run programs that are stand-ins themselves
LIMIT_S = 60.0


def _trigger(call: Call, words: list[str]) -> Answer:
    """Options as `--key=value` or `-k value`; names at the end are device paths."""
    options: dict[str, str] = {"action": "change"}
    short = {"-c": "action", "-s": "subsystem-match", "-y": "sysname-match", "-w": "settle"}
    paths: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        key, eq, value = word.partition("=")
        name = short.get(key, key.lstrip("-"))
        if word in ("-w", "--settle", "-v", "--verbose", "-n", "--dry-run", "-q", "--quiet"):
            continue
        if word.startswith("-"):
            options[name] = value if eq else queue.pop(0) if queue else ""
        else:
            paths.append(word.rstrip("/"))
    if not call.root:
        return Answer(1, "", "Failed to write 'change' to '/sys/devices/lab': Permission denied\n")
    known = {path.parent.name for path in Path("/sys/class/net").glob("*/device")}
    chosen = sorted(n for n in known if fnmatch.fnmatchcase(n, options.get("sysname-match", "*")) and "net" in (
        options.get("subsystem-match", "net"),) and (not paths or any(p.rpartition("/")[2] == n for p in paths)))
    if options["action"] == "add":
        for interface in chosen:
            udev.add(interface, LIMIT_S)
    return Answer()


def _info(words: list[str]) -> Answer:
    name = next((w for w in words if "/net/" in w), "").rstrip("/").rpartition("/")[2]
    if not name or not Path("/sys/class/net", name).exists():
        return Answer(1, "", "Unknown device \"\": No such device\n")
    return Answer(0, f"P: /devices/lab/net/{name}\nE: DEVPATH=/devices/lab/net/{name}\nE: SUBSYSTEM=net\nE: INTERFACE={name}\n"
                     "E: SYSTEMD_ALIAS=/sys/subsystem/net/devices/" + name + "\nE: TAGS=:systemd:\n")


def run(call: Call) -> Answer:
    if not call.argv:
        return Answer(1, "", "udevadm: missing or unknown command\n")
    verb, words = call.argv[0], call.argv[1:]
    if verb == "trigger":
        return _trigger(call, words)
    if verb == "info":
        return _info(words)
    if verb == "settle":
        return Answer()
    if verb == "control":
        if not call.root:
            return Answer(1, "", "This command can only be executed by root.\n")
        return Answer() if words else Answer(1, "", "This command expects one or more options.\n")
    if verb in ("--version", "version"):
        return Answer(0, "255\n")
    return Answer(1, "", f"Unknown command verb '{verb}'.\n")
