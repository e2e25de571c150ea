"""dmesg of util-linux: the node's kernel log; -T, --time-format iso|ctime|delta|notime, -x is not known here. Root only, as on Ubuntu."""

from __future__ import annotations

import time

from fabrictool.lab.nodeside.standins.behaviour import err, serve
from fabrictool.lab.nodeside.tool import Answer, Call


def run(call: Call) -> Answer:
    return serve(call, main)


def _uptime() -> float:
    with open("/proc/uptime") as file:
        return float(file.read().split()[0])


def main(call: Call) -> int:
    words, form = list(call.argv), ""
    while words:
        word = words.pop(0)
        if word.startswith("--time-format"):
            form = word.partition("=")[2] or (words.pop(0) if words else "")
        elif word in ("-T", "--ctime"):
            form = "ctime"
        elif word in ("-V", "--version"):
            print("dmesg from util-linux 2.38.1")
            return 0
        elif word not in ("-k", "--kernel", "-H", "--nopager", "-P"):
            err(f"dmesg: unrecognized option '{word}'\nTry 'dmesg --help' for more information.")
            return 1
    if not call.root:
        err("dmesg: read kernel buffer failed: Operation not permitted")
        return 1
    booted = time.time() - _uptime()
    for when, text in call.node.kernel_log:
        print(f"{_stamp(float(when), booted, form)}{text}")
    return 0


def _stamp(when: float, booted: float, form: str) -> str:
    if form == "iso":
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when))
        return f"{whole},{int(when % 1 * 1e6):06d}+00:00 "
    if form == "ctime":
        return f"[{time.ctime(when)}] "
    return "" if form == "notime" else f"[{when - booted:12.6f}] "
