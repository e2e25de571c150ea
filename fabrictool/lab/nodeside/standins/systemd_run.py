"""systemd-run: transient service units (--unit, --wait, --collect, --quiet, --setenv, --property, --description). No scopes, no timers."""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import dataclass, field

from fabrictool.lab.nodeside import services, transient, units
from fabrictool.lab.nodeside.tool import Answer, Call

LOCKED = False  # it starts programs that are stand-ins themselves
TAKE = ("--unit", "-u", "--property", "-p", "--setenv", "-E", "--description", "--uid", "--gid", "--slice", "--working-directory")
FLAGS = ("--quiet", "-q", "--wait", "--collect", "-G", "--no-ask-password", "--no-block", "--same-dir", "-d")
BASE = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


@dataclass
class Asked:
    """The command line."""

    values: list[tuple[str, str]] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    argv: list[str] = field(default_factory=list)
    unknown: str = ""

    def last(self, *names: str) -> str:
        return next((v for k, v in reversed(self.values) if k in names), "")

    def properties(self) -> dict[str, str]:
        return {v.partition("=")[0]: v.partition("=")[2] for k, v in self.values if k in ("--property", "-p")}


def parse(argv: list[str]) -> Asked:
    asked, queue = Asked(), list(argv)
    while queue:
        word = queue.pop(0)
        name, eq, value = word.partition("=")
        if word == "--":
            break
        if name in TAKE:
            asked.values.append((name, value if eq else queue.pop(0) if queue else ""))
        elif word in FLAGS:
            asked.flags.add({"-q": "--quiet", "-G": "--collect"}.get(word, word))
        elif word.startswith("-"):
            asked.unknown = word
            return asked
        else:
            queue.insert(0, word)
            break
    asked.argv = queue
    return asked


def expanded(argv: list[str], env: dict[str, str]) -> list[str]:
    """The manager puts its own variables in: `$NAME` as a whole word becomes words, `${NAME}` anywhere text, `$$` a dollar. Other names
    than those of the unit's environment are empty."""
    found = argv[:1]
    for word in argv[1:]:
        alone = re.fullmatch(r"\$([A-Za-z_]\w*)", word)
        if alone:
            found += env.get(alone[1], "").split()
        else:
            found.append(re.sub(r"\$\$|\$\{([A-Za-z_]\w*)\}", lambda m: "$" if m[0] == "$$" else env.get(m[1], ""), word))
    return found


def run(call: Call) -> Answer:
    if call.argv == ["--version"]:
        return Answer(0, "systemd 255 (255.4-1ubuntu8.10)\n")
    asked = parse(call.argv)
    if asked.unknown:
        return Answer(1, "", f"systemd-run: unrecognized option '{asked.unknown}'\n")
    if not asked.argv:
        return Answer(1, "", "Command line to execute required.\n")
    name = units.full_name(asked.last("--unit", "-u") or f"run-u{secrets.randbelow(10000)}")
    if not call.root:
        return Answer(1, "", "Failed to start transient service unit: Interactive authentication required.\n")
    if services.run_of(name).active in ("active", "failed") or units.load(name).fragment:
        return Answer(1, "", f"Failed to start transient service unit: Unit {name} was already loaded or has a fragment file.\n")
    env = BASE | {v.partition("=")[0]: v.partition("=")[2] for k, v in asked.values if k in ("--setenv", "-E")}
    known = asked.properties()
    job = transient.Job(
        name, expanded(asked.argv, env), env, units.seconds(known.get("RuntimeMaxSec", ""), 0.0) if "RuntimeMaxSec" in known else 0.0,
        units.seconds(known.get("TimeoutStopSec", ""), units.DEFAULT_TIMEOUT_S), "--collect" in asked.flags,
        known.get("LimitMEMLOCK") == "infinity")
    outcome = transient.start(job)
    said = "" if "--quiet" in asked.flags else f"Running as unit: {name}\n"
    if "--wait" not in asked.flags:
        os.close(outcome)
        return Answer(0, "", said)
    with os.fdopen(outcome) as line:
        found = json.loads(line.readline() or '{"status": 1, "result": "signal"}')
    return Answer(found["status"] if found["status"] >= 0 else 1, "", said)
