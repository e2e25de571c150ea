"""dcb of iproute2 6.1: pfc, app, ets, buffer, maxrate, dcbx; show and set, text and JSON.

`Node.tools["dcb"]` = "hangs" is also how releases up to 6.0 answer where the driver lacks an operation.
"""

from __future__ import annotations

import json

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.standins.behaviour import Exit, err, find, serve
from fabrictool.lab.nodeside.standins.dcb_set import ReadRefused, set_values
from fabrictool.lab.nodeside.standins.dcb_text import USAGE, show_lines, show_values
from fabrictool.lab.nodeside.tool import Answer, Call

OBJECTS = ("app", "buffer", "dcbx", "ets", "maxrate", "pfc")
SETTERS = {"app": ("add", "del", "replace", "flush")}
LONG = ("json", "statistics", "Numeric", "pretty", "iec", "verbose", "Version", "force", "help")
FLAGS = {name[0]: name for name in LONG}


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    flags, words = _flags(list(call.argv))
    if "Version" in flags:
        print("dcb utility, iproute2-6.1.0")
        return 0
    if not words or words[0] == "help" or "help" in flags:
        print(USAGE["dcb"])
        return 0
    name, words = words[0], words[1:]
    found = next((o for o in OBJECTS if o.startswith(name)), None)
    if found is None:
        if "json" in flags:
            print()  # its JSON writer opens and closes around nothing
        err(f'Object "{name}" is unknown')
        return 1
    if not words or words[0] == "help":
        err(USAGE[found])
        return 0
    command = next((c for c in ("show", *SETTERS.get(found, ("set",))) if c.startswith(words[0])), None)
    if command is None:
        err(f'What is "{words[0]}"?')
        return 1
    return _object(call, found, command, words[1:], flags)


def _flags(argv: list[str]) -> tuple[set[str], list[str]]:
    """Options come before the object."""
    flags: set[str] = set()
    rest = list(argv)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word.startswith("--"):
            hit = [name for name in LONG if name.startswith(word[2:])]
            if not hit:
                err(f"dcb: unrecognized option '{word}'\nUnknown option.\n{USAGE['dcb']}")
                raise Exit(1)
            flags.add(hit[0])
            continue
        for ch in word[1:]:
            if ch not in FLAGS:
                err(f"dcb: invalid option -- '{ch}'\nUnknown option.\n{USAGE['dcb']}")
                raise Exit(1)
            flags.add(FLAGS[ch])
    return flags, rest


def _object(call: Call, name: str, command: str, words: list[str], flags: set[str]) -> int:
    if not words:
        err(USAGE[name])
        return 0
    if words[0] != "dev":
        err(f"Expected `dev DEV', not `{words[0]}'{USAGE[name]}")
        return 1
    if len(words) < 2:
        err('Command line is not complete. Try option "help"')
        return 255
    interface, words = words[1], words[2:]
    if len(interface) > 15 or "/" in interface:
        err(f'Error: argument "{interface}" is wrong: dev')
        return 255
    verb = "write"
    try:
        if command == "show":
            verb = "read"
            return _show(call, name, interface, words, flags)
        set_values(call, name, command, interface, words)
    except ReadRefused as e:
        err(f"Attribute read: {e}")
        return 1
    except driver.Refused as e:
        err(f"Attribute {verb}: {e.text}")
        return 1
    return 0


def _show(call: Call, name: str, interface: str, fields: list[str], flags: set[str]) -> int:
    try:
        fn = find(call, interface, stale=True)
        if name == "buffer" and not fn.buffer_size:
            err("Attribute not found: Success")
            return 1
    except driver.Refused as e:
        if "json" in flags:
            print()
        err(f"Attribute read: {e.text}")
        return 1
    values = show_values(fn, name, "statistics" in flags or any(f in ("requests", "indications") for f in fields))
    if fields:
        known = show_values(fn, name, True)
        unknown = [f for f in fields if f.replace("-", "_") not in known and name != "app"]
        if unknown:
            err(f'What is "{unknown[0]}"?')
            return 1
        values = {k: v for k, v in values.items() if k.replace("_", "-") in fields}
    if "json" in flags:
        print(json.dumps(values, separators=(",", ":")) if "pretty" not in flags else json.dumps(values, indent=4))
    else:
        for line in show_lines(name, values, "Numeric" in flags):
            print(line)
    return 0
