"""mlnx_qos: the vendor's QoS tool, release by release (`Node.era`), order of writes and failures included.

Diagnostics go to stdout, except tracebacks and the option parser's. One call with several settings writes them in the tool's
fixed order and stops at the first refusal: what was written by then stays.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.standins.behaviour import Exit, serve
from fabrictool.lab.nodeside.standins.mlnx_qos_eras import Era, parser, state_lines
from fabrictool.lab.nodeside.standins.mlnx_qos_pfc import PfcSession
from fabrictool.lab.nodeside.standins.mlnx_qos_session import KEY_ERROR, message, say
from fabrictool.lab.nodeside.state import Function, Node
from fabrictool.lab.nodeside.tool import Answer, Call

WARNING = "****** WARNING: lldpad service is running and may overwrite your settings ******\n"


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    era = Era.of(call.node.era)
    options_of = parser(era)
    options, rest = options_of.parse_args(list(call.argv))
    if rest or options.intf is None:
        say("Bad arguments" if rest else "Interface name is required")
        options_of.print_usage()
        return 1
    if call.node.lldpad:
        say(WARNING)
    Run(call, era, options, options_of.get_usage()).go()
    return 0


class Run(PfcSession):
    """The whole call, in the tool's order."""

    def go(self) -> None:
        self.dcbx()
        if not self.era.writes_late:
            self.pfc()
        if self.era.knows_trust:
            self.dscp2prio()
            self.defltprio()
            self.trust()
        if self.era.knows_buffers:
            self.buffers()
        self.ratelimit()
        try:
            self.fn()
        except driver.Refused as e:
            self.privilege(e)
            self.fail("ETS features are not supported on your system")
        shown = deepcopy(self.fn())
        if self.era.writes_late:
            self.pfc()
            shown.pfc = self.asked_pfc if self.o.pfc else shown.pfc
            shown.cable_len = int(self.o.cable_len) if self.o.cable_len else shown.cable_len
        self.ets(shown)
        for line in state_lines(shown, self.era, self.o.printall):
            say(line)

    def dscp2prio(self) -> None:
        if self.o.dscp2prio and self.o.trust:
            self.fail("trust and dscp2prio commands cannot be used at the same time.")
        steps: list[Callable[[Function], None]] = []
        for text in self.o.dscp2prio or ():
            steps.append(self.one_dscp(text))
        if not steps:
            return
        try:
            self.write(*steps)
        except driver.Refused as e:
            self.privilege(e)
            self.fail("dscp2prio command failed")

    def one_dscp(self, text: str) -> Callable[[Function], None]:
        if text == "flush":
            return self.flush
        words = text.split(",")
        try:
            action, dscp, prio = words[0], int(words[1]), int(words[2])
        except (ValueError, IndexError):
            self.fail("Invalid dscp2prio command. Refer to the help.")
        if len(words) != 3:
            self.fail("Invalid dscp2prio command. Refer to the help.")
        if action not in ("set", "del") or dscp > 63 or prio > 7:
            if self.era.tells_privilege:
                raise Exit(1)  # without a word
            self.fail("Invalid dscp2prio command. Refer to the help.")
        change = driver.set_app if action == "set" else driver.del_app
        return lambda fn: change(self.node, fn, dscp, prio)

    def flush(self, fn: Function) -> None:
        for dscp, prio in driver.entries(fn):
            driver.del_app(self.node, fn, dscp, prio)

    def defltprio(self) -> None:
        if not self.o.defltprio:
            return
        action, _, prio = self.o.defltprio.partition(",")
        if action not in ("set", "del") or prio not in tuple("01234567"):
            self.fail("Invalid defltprio command. Refer to the help.")
        try:
            self.write(lambda fn: driver.set_default_prio(self.node, fn, int(prio), action == "set"))
        except driver.Refused as e:
            self.privilege(e)
            self.fail("defltprio command failed")

    def trust(self) -> None:
        if self.o.trust and self.o.trust not in ("dscp", "pcp"):
            self.fail("Invalid trust state command. Refer to the help.")
        try:
            now = self.fn()
            if self.o.trust and self.o.trust != now.trust:  # already there: nothing is written, and nothing repaired
                if self.o.trust == "dscp":
                    self.write(*[_default_entry(self.node, dscp) for dscp in range(64)])
                else:
                    self.write(self.flush)
        except driver.Refused as e:
            self.privilege(e)
            say("Priority trust state is not supported on your system")
            if self.o.trust:
                raise Exit(1) from None

    def buffers(self) -> None:
        o = self.o
        try:
            fn = self.fn()
        except driver.Refused as e:
            self.privilege(e)
            fn = None
        if fn is not None and not fn.buffer_size and self.era.tells_privilege:
            self.die(KEY_ERROR)
        if fn is None or not fn.buffer_size:
            say("Buffers commands are not supported on your system")
            if o.buffer_size or o.prio2buffer:
                raise Exit(1)
            return
        if not (o.buffer_size or o.prio2buffer):
            return
        try:
            prio, size = list(fn.prio_buffer), list(fn.buffer_size)
            for target, text, word in ((prio, o.prio2buffer, "prio2buffer"), (size, o.buffer_size, "buffer_size")):
                for i, t in enumerate(text.split(",") if text else ()):
                    if i >= 8:
                        self.fail(f"Too many items for {word}")
                    target[i] = self.number(t, 0, 7, "prio buffer") if word == "prio2buffer" else int(t)
            self.write(lambda f: driver.set_buffers(self.node, f, prio, size))
        except (driver.Refused, ValueError) as e:
            if isinstance(e, driver.Refused):
                self.privilege(e)
            self.fail("Buffers commands error")

    def ratelimit(self) -> None:
        unsupported = "Rate limit is not supported on your system!"
        if self.o.ratelimit:
            gbit = self.eight(self.o.ratelimit, "Too many items for ratelimit", "ratelimit must have 8 items",
                              lambda t: self.number(t, 0, 1000000, "ratelimit"))
            try:
                self.write(lambda fn: driver.set_maxrate(self.node, fn, [g * 1000000 for g in gbit]))
            except driver.Refused:
                say(unsupported)
        try:
            self.fn()
        except driver.Refused:
            say(unsupported)

    def ets(self, shown: Function) -> None:
        """-s, -t and -p are one request; what is printed afterwards is what was asked for."""
        o = self.o
        tsa, bw, prio_tc = list(shown.tsa), list(shown.tc_bw), list(shown.prio_tc)
        if o.tsa:
            tsa = []
            for t in o.tsa.split(","):
                if len(tsa) >= 8:
                    self.fail("Too many items for TSA")
                if t not in ("strict", "ets", "vendor"):
                    self.fail(f"('Bad TSA value: ', '{t}')", usage=True)
                tsa.append(t)
            if len(tsa) != 8:
                self.fail("tsa list must have 8 items")
        if o.tc_bw:
            bw = self.eight(o.tc_bw, "Too many items for ETS BW", "tcbw list must have 8 items",
                            lambda t: self.number(t, 0, 100, "ETS BW"))
            if any(b and tsa[i] != "ets" for i, b in enumerate(bw)):
                self.fail("ETS BW for a strict/vendor TC must be 0", usage=True)
        if o.prio_tc:
            prio_tc = self.eight(o.prio_tc, "Too many items in UP => TC mapping", "prio_tc list must have 8 items",
                                 lambda t: self.number(t, 0, 7, "UP => TC mapping"))
        if not (o.tsa or o.tc_bw or o.prio_tc):
            return
        try:
            self.write(lambda fn: driver.set_ets(self.node, fn, prio_tc, tsa, bw))
        except driver.Refused as e:
            self.fail(message(e))
        if self.how == "lies":
            return
        shown.prio_tc, shown.tsa, shown.tc_bw = prio_tc, tsa, bw


def _default_entry(node: Node, dscp: int) -> Callable[[Function], None]:
    return lambda fn: driver.set_app(node, fn, dscp, dscp >> 3)
