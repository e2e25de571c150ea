"""journalctl of systemd: the kernel's log (-k), in the formats short, short-iso, short-precise, cat and json. Of units nothing is kept."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise

from fabrictool.lab.nodeside.standins.behaviour import err, serve
from fabrictool.lab.nodeside.tool import Answer, Call

SCALE = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}
HINT = ("Hint: You are currently not seeing messages from other users and the system.\n"
        "      Users in groups 'adm', 'systemd-journal' can see all messages.\n      Pass -q to turn off this notice.")


def run(call: Call) -> Answer:
    return serve(call, main)


def _options(argv: list[str]) -> dict[str, str]:
    """Long and short ones, values taken from the next word where they stand there."""
    takes = {"-o": "output", "--output": "output", "--since": "since", "-S": "since", "-n": "lines", "--lines": "lines", "-u": "unit",
             "--unit": "unit", "-b": "boot", "--boot": "boot"}
    found = {}
    for word, after in pairwise([*argv, ""]):
        name, eq, value = word.partition("=")
        if name in takes:
            found[takes[name]] = value if eq else after
        elif name in ("-k", "--dmesg", "-q", "--quiet"):
            found[{"-k": "kernel", "--dmesg": "kernel", "-q": "quiet", "--quiet": "quiet"}[name]] = "1"
    return found


def since(text: str, now: float) -> float:
    """`-24hours`, `-2h`, `@1700000000`, `2026-11-29 10:00:00`; anything else is the beginning."""
    m = re.fullmatch(r"-(\d+)\s*([a-z]+?)s?", text)
    if m and m[2] in SCALE:
        return now - int(m[1]) * SCALE[m[2]]
    if re.fullmatch(r"@\d+", text):
        return float(text[1:])
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    except ValueError:
        return 0.0


def main(call: Call) -> int:
    if call.argv in (["--version"], ["-V"]):
        print("systemd 252 (252.39-1~deb12u1)")
        return 0
    options = _options(call.argv)
    lines = call.node.kernel_log if "kernel" in options or "unit" not in options else []
    if not call.root:
        lines = []
        if "quiet" not in options:
            err(HINT)
    first = since(options.get("since", ""), time.time())
    found = [(float(when), str(text)) for when, text in lines if float(when) >= first]
    if options.get("lines", "").isdigit():
        found = found[-int(options["lines"]):]
    for when, text in found:
        print(_line(call.node.name, when, text, options.get("output", "short")))
    if not found and "quiet" not in options:
        print("-- No entries --")
    return 0


def _line(host: str, when: float, text: str, form: str) -> str:
    if form == "json":
        return json.dumps({"MESSAGE": text, "__REALTIME_TIMESTAMP": str(int(when * 1e6)), "_HOSTNAME": host, "_TRANSPORT": "kernel",
                           "SYSLOG_IDENTIFIER": "kernel"})
    if form == "cat":
        return text
    parts = time.gmtime(when)
    stamp = {"short-iso": time.strftime("%Y-%m-%dT%H:%M:%S+0000", parts),
             "short-precise": time.strftime("%b %d %H:%M:%S", parts) + f".{int(when % 1 * 1e6):06d}"}
    return f"{stamp.get(form, time.strftime('%b %d %H:%M:%S', parts))} {host} kernel: {text}"
