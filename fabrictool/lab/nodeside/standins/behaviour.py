"""How a stand-in misbehaves beyond what main.py does for every tool (hangs, traceback, empty, lies, applies-but-traceback).

| mode | reads | sets |
|---|---|---|
| missing | the shell's "not found", 127 (`Lab.hide_tool` is the real thing) | the same |
| no-python | no interpreter for its first line, 127 | the same |
| no-ps | dies because `ps` is not there | the same |
| no-module | dies at its first import | the same |
| set-traceback | as the state is | a traceback, nothing changed |
| applied-traceback | as the state is | done, and then a traceback |
| applied-error | as the state is | done, and then an error and status 1 |
| half | as the state is | the first half, then an error |
| refuses | as the state is | the kernel's "Bad value" |
| stale | the state as after power-on | done |
| cut | the first half of the output, 0 | done, output cut |
| noise | the state with strange lines around it | done |
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from copy import deepcopy

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Function, Node
from fabrictool.lab.nodeside.tool import Answer, Call

MODES = ("missing", "no-python", "no-ps", "no-module", "set-traceback", "applied-traceback", "applied-error", "half", "refuses",
         "stale", "cut", "noise")

IMPORT_TRACEBACK = """Traceback (most recent call last):
  File "/usr/bin/{tool}", line 35, in <module>
    from dcbnetlink import DcbController
ModuleNotFoundError: No module named 'dcbnetlink'
"""
PS_TRACEBACK = """Traceback (most recent call last):
  File "/usr/bin/{tool}", line 436, in <module>
    res = subprocess.Popen(["ps", "-e"], stdout=subprocess.PIPE)
FileNotFoundError: [Errno 2] No such file or directory: 'ps'
"""
TYPE_TRACEBACK = """Traceback (most recent call last):
  File "/usr/bin/{tool}", line 488, in <module>
  File "/usr/bin/dcbnetlink.py", line 223, in set_ieee_pfc
  File "/usr/bin/dcbnetlink.py", line 143, in recv
  File "/usr/bin/netlink.py", line 252, in recv
OSError: Netlink error: Bad value. see dmesg.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/bin/{tool}", line 492, in <module>
TypeError: can only concatenate str (not "OSError") to str
"""


class Exit(Exception):
    """A stand-in ends here with this exit status."""

    def __init__(self, rc: int) -> None:
        super().__init__(rc)
        self.rc = rc


def err(text: str) -> None:
    print(text, file=sys.stderr)


def at_start(tool: str, mode: str) -> Answer | None:
    """The answer of a tool that dies before it looks at its arguments; None = it runs."""
    if mode == "missing":
        return Answer(127, "", f"sh: 1: {tool}: not found\n")
    if mode == "no-python":
        return Answer(127, "", "/usr/bin/env: 'python': No such file or directory\n")
    if mode in ("no-module", "no-ps"):
        return Answer(1, "", (IMPORT_TRACEBACK if mode == "no-module" else PS_TRACEBACK).format(tool=tool))
    return None


def view(call: Call) -> Node:
    """The node as the tool shows it."""
    if call.mode != "stale":
        return call.node
    old = deepcopy(call.node)
    driver.reboot(old)
    return old


def distort(mode: str, text: str) -> str:
    """The printed state as a tool that garbles it prints it."""
    if mode == "cut":
        return text[:len(text) // 2]
    if mode == "noise":
        return "libibverbs: Warning: no userspace device-specific driver found\n" + text + "\x1b[0m\n"
    return text


def serve(call: Call, main: Callable[[Call], int]) -> Answer:
    """`main` prints, and returns or raises its exit status; here both become the answer."""
    dead = at_start(call.tool, call.mode)
    if dead is not None:
        return dead
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            rc = main(call)
        except Exit as e:
            rc = e.rc
        except SystemExit as e:  # optparse
            rc = e.code if isinstance(e.code, int) else 1
    return Answer(rc, distort(call.mode, out.getvalue()), errors.getvalue())


def find(call: Call, interface: str, stale: bool = False) -> Function:
    """The function behind an interface with DCB; driver.Refused otherwise."""
    return driver.function(view(call) if stale else call.node, interface, lambda: call.links())
