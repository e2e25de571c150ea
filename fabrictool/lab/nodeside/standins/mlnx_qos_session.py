"""One run of mlnx_qos: how it reaches the driver, how it fails, how it reads lists and numbers."""

from __future__ import annotations

import errno
from collections.abc import Callable
from optparse import Values
from typing import NoReturn

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.standins.behaviour import TYPE_TRACEBACK, Exit, err, find
from fabrictool.lab.nodeside.standins.mlnx_qos_eras import Era
from fabrictool.lab.nodeside.state import Function
from fabrictool.lab.nodeside.tool import Call

TOOL = "mlnx_qos"
SETTINGS = ("dcbx", "cable_len", "specific_pfc", "pfc", "dscp2prio", "defltprio", "trust", "prio2buffer", "buffer_size",
            "ratelimit", "tsa", "tc_bw", "prio_tc")
OSERROR_TRACEBACK = """Traceback (most recent call last):
  File "/usr/bin/mlnx_qos", line {line}, in <module>
  File "/usr/bin/dcbnetlink.py", line 223, in get_ieee_pfc_delay
  File "/usr/bin/dcbnetlink.py", line 143, in recv
  File "/usr/bin/netlink.py", line 252, in recv
OSError: {error}"""
THEN_TYPE_ERROR = """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/bin/mlnx_qos", line 492, in <module>
TypeError: can only concatenate str (not "OSError") to str"""
KEY_ERROR = """Traceback (most recent call last):
  File "/usr/bin/mlnx_qos", line 640, in <module>
  File "/usr/bin/dcbnetlink.py", line 281, in get_ieee_dcb_buffer
KeyError: 10

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/bin/mlnx_qos", line 643, in <module>
  File "/usr/bin/mlnx_qos", line 422, in check_privilege
AttributeError: 'KeyError' object has no attribute 'errno'"""


def say(text: object) -> None:
    print(text)


def message(e: driver.Refused) -> str:
    """As the tool's netlink layer words it."""
    return "Netlink error: Bad value. see dmesg." if e.errno == errno.EBADMSG else f"Netlink error: {e.text} ({e.errno})"


class Session:
    """One run of the tool, after its options were understood."""

    def __init__(self, call: Call, era: Era, options: Values, usage: str) -> None:
        self.call, self.node, self.era, self.o, self.usage = call, call.node, era, options, usage
        self.how = call.mode
        self.planned = sum(1 for s in SETTINGS if getattr(options, s) is not None)
        self.begun = 0

    # -- reaching the driver

    def fn(self) -> Function:
        """The function as the tool sees it."""
        return find(self.call, self.o.intf, stale=True)

    def write(self, *steps: Callable[[Function], None]) -> None:
        """One setting, as netlink requests in their order; here the tool's misbehaviour strikes."""
        driver.need_root(self.call.root)
        fn = find(self.call, self.o.intf)
        self.begun += 1
        if self.how == "lies":
            return
        if self.how == "refuses":
            raise driver.Refused(errno.EBADMSG, "Bad value")
        if self.how == "set-traceback":
            self.die(TYPE_TRACEBACK.format(tool=TOOL).rstrip("\n"))
        do = list(steps)
        cut_here = self.how == "half" and self.begun > self.planned // 2
        if cut_here:
            do = do[:len(do) // 2] if self.planned == 1 else []
        for step in do:
            step(fn)
        if cut_here:
            raise driver.Refused(errno.EBADMSG, "Bad value")
        if self.how == "applied-traceback":
            self.die(TYPE_TRACEBACK.format(tool=TOOL).rstrip("\n"))
        if self.how == "applied-error":
            say("Netlink error: Bad value. see dmesg.")
            raise Exit(1)

    def die(self, traceback: str) -> NoReturn:
        err(traceback)
        raise Exit(1)

    def fail(self, text: str, usage: bool = False) -> NoReturn:
        say(text)
        if usage:
            say(self.usage)
        raise Exit(1)

    def privilege(self, e: driver.Refused) -> None:
        """Since 25.01 a lack of privilege ends the run with its own message."""
        if self.era.tells_privilege and e.errno == errno.EPERM:
            self.fail(message(e))

    def number(self, text: str, low: int, high: int, what: str) -> int:
        try:
            value = int(text)
        except ValueError as e:
            self.fail(f"Bad value for {what}: {e}", usage=True)
        if not low <= value <= high:
            self.fail(f"Bad value for {what}: {value} is not in the range {low}..{high}", usage=True)
        return value

    def eight(self, text: str, too_many: str, not_eight: str, one: Callable[[str], int]) -> list[int]:
        items: list[int] = []
        for t in text.split(","):
            if len(items) >= 8:
                self.fail(too_many)
            items.append(one(t))
        if len(items) != 8:
            self.fail(not_eight)
        return items

    def readable(self, line: int) -> Function:
        try:
            return self.fn()
        except driver.Refused as e:
            self.die(OSERROR_TRACEBACK.format(line=line, error=message(e)))
