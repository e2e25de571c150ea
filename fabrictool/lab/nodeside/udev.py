"""udev's `add` for the node's network interfaces: rules are matched, their RUN programs and wanted units really run."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import subprocess
from pathlib import Path

from fabrictool.lab.nodeside import services, units

RULES = ("/etc/udev/rules.d", "/run/udev/rules.d")
_TERM = re.compile(r'\s*([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|:=|=)\s*"((?:[^"\\]|\\.)*)"\s*,?')
RUN_LIMIT_S = 30.0


def rule_lines() -> list[str]:
    """All rules in udev's order, continuation lines joined."""
    found: dict[str, Path] = {}
    for folder in reversed(RULES):
        for path in Path(folder).glob("*.rules"):
            found[path.name] = path
    lines: list[str] = []
    for name in sorted(found):
        lines += re.sub(r"\\\n", "", found[name].read_text(errors="replace")).splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _attribute(interface: str, name: str) -> str:
    try:
        return Path("/sys/class/net", interface, name).read_text().strip()
    except OSError:
        return ""


def _driver(interface: str) -> str:
    return os.path.basename(os.path.realpath(f"/sys/class/net/{interface}/device/driver"))


def actions(line: str, interface: str, action: str = "add") -> list[tuple[str, str]] | None:
    """(kind, text) of what a rule asks for: ("run", command) and ("want", unit). None: the rule does not match."""
    facts = {"ACTION": action, "SUBSYSTEM": "net", "SUBSYSTEMS": "net", "KERNEL": interface, "NAME": interface,
             "KERNELS": interface, "DRIVERS": _driver(interface), "DEVPATH": f"/devices/virtual/net/{interface}"}
    asked: list[tuple[str, str]] = []
    for key, sub, operator, value in _TERM.findall(line):
        if operator in ("==", "!="):
            if key in ("ATTR", "ATTRS"):
                seen = _attribute(interface, sub)
            elif key == "ENV":
                seen = {"INTERFACE": interface, "ID_NET_DRIVER": _driver(interface)}.get(sub, "")
            else:
                seen = facts.get(key, "")
            if any(fnmatch.fnmatchcase(seen, p) for p in value.split("|")) != (operator == "=="):
                return None
        elif key == "RUN" and sub in ("", "program"):
            asked.append(("run", _substitute(value, interface)))
        elif key == "ENV" and sub == "SYSTEMD_WANTS":
            asked += [("want", _substitute(w, interface)) for w in value.split()]
    return asked


def _substitute(text: str, interface: str) -> str:
    return re.sub(r"%k|\$kernel|\$name|%E\{INTERFACE\}|\$env\{INTERFACE\}", lambda _: interface, text)


def add(interface: str, limit_s: float) -> list[str]:
    """One interface appears. The commands and units that failed."""
    failed = []
    for line in rule_lines():
        for kind, text in actions(line, interface) or ():
            if kind == "want":
                if units.load(text).fragment and services.start(text, limit_s).active == "failed":
                    failed.append(text)
                continue
            try:
                with open(os.devnull, "r+") as null:
                    done = subprocess.run(shlex.split(text), stdin=null, stdout=null, stderr=null, cwd="/",
                                          timeout=min(limit_s, RUN_LIMIT_S), check=False,
                                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ACTION": "add", "INTERFACE": interface})
                status = done.returncode
            except (OSError, ValueError, subprocess.TimeoutExpired):
                status = 1
            if status:
                failed.append(text)
    return failed


def add_all(limit_s: float) -> list[str]:
    """Every interface with a device behind it appears, as at a boot."""
    return [f for path in sorted(Path("/sys/class/net").glob("*/device")) for f in add(path.parent.name, limit_s)]
