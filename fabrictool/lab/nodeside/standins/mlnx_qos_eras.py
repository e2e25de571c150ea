"""What differs between releases of mlnx_qos, and its options and printed state as of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from optparse import OptionParser

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Function

EIGHT = range(8)
TABLE_HEAD = "\tpriority    0   1   2   3   4   5   6   7"


@dataclass(frozen=True)
class Era:
    """The release, as a tuple of numbers; "2017" is MLNX_OFED 4.0."""

    release: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Era:
        numbers = tuple(int(n) for n in re.findall(r"\d+", text)[:3])
        return cls((4, 0) if text == "2017" or not numbers else numbers)

    def since(self, *release: int) -> bool:
        return self.release >= release

    @property
    def knows_trust(self) -> bool:
        """DCBX, trust and the DSCP map came with OFED 4.1."""
        return self.since(4, 1)

    @property
    def knows_buffers(self) -> bool:
        return self.since(4, 5)

    @property
    def knows_default_prio(self) -> bool:
        return self.release[:2] == (5, 2) or (self.since(5, 4) and not self.since(25, 1))

    @property
    def writes_late(self) -> bool:
        """Before 5.4 PFC was written last, and the state printed is what was asked for, not what is."""
        return not self.since(5, 4)

    @property
    def sorts_classes(self) -> bool:
        return self.since(23, 4)

    @property
    def knows_single_pfc(self) -> bool:
        """-F and -P."""
        return self.since(24, 7)

    @property
    def breaks_on_error(self) -> bool:
        """A refused PFC set ends in a TypeError, since Feb-2024."""
        return self.since(24, 4)

    @property
    def tells_privilege(self) -> bool:
        """"Operation not permitted" is told apart, and a bad DSCP says nothing, since 25.01."""
        return self.since(25, 1)

    @property
    def total_word(self) -> str:
        if not self.since(5, 4):
            return ""
        return "max_buffer_size" if self.since(23, 4) else "total_size"


def parser(era: Era) -> OptionParser:
    """The release's options."""
    p = OptionParser(prog="mlnx_qos", usage="%prog -i <interface> [options]", version="%prog 1.2",
                     epilog="This is a stand-in of a fabrictool lab, not the real program.")
    add = p.add_option
    add("-f", "--pfc", dest="pfc", metavar="LIST", help="PFC for each priority, eight 0 or 1, comma separated")
    if era.knows_single_pfc:
        add("-F", "--specific_pfc", dest="specific_pfc", metavar="LIST", help="PFC for some priorities, x keeps the state")
        add("-P", "--get_pfc", dest="get_pfc", help="print the PFC state of one priority")
    add("-p", "--prio_tc", dest="prio_tc", metavar="LIST", help="maps UPs to TCs, eight TC numbers")
    add("-s", "--tsa", dest="tsa", metavar="LIST", help="transmission algorithm for each TC: strict, ets, vendor")
    add("-t", "--tcbw", dest="tc_bw", metavar="LIST", help="minimal guaranteed %BW for ETS TCs")
    add("-r", "--ratelimit", dest="ratelimit", metavar="LIST", help="rate limit for TCs, in Gbps")
    add("-i", "--interface", dest="intf", help="Interface name")
    add("-a", action="store_true", dest="printall", default=False, help="Show all interface's TCs")
    if era.knows_trust:
        add("-d", "--dcbx", dest="dcbx", help="dcbx mode: os, fw or get")
        add("--trust", dest="trust", help="priority trust state: pcp or dscp")
        add("--dscp2prio", dest="dscp2prio", action="append", help="set,DSCP,PRIO or del,DSCP,PRIO or flush")
        add("--cable_len", dest="cable_len", help="cable length in metres, for xoff and xon thresholds")
    if era.knows_default_prio:
        add("--defltprio", dest="defltprio", help="set,PRIO or del,PRIO")
    if era.knows_buffers:
        add("--prio2buffer", dest="prio2buffer", metavar="LIST", help="maps priorities to receive buffers")
        add("--buffer_size", dest="buffer_size", metavar="LIST", help="receive buffer sizes, bytes")
    for name in ("specific_pfc", "get_pfc", "dcbx", "trust", "dscp2prio", "cable_len", "defltprio", "prio2buffer", "buffer_size"):
        if name not in p.defaults:
            p.defaults[name] = None
    return p


def dscp_lines(table: list[list[int]]) -> list[str]:
    """The map as printed: eight DSCPs a line, newest first, a trailing comma."""
    lines = []
    for prio in EIGHT:
        held = [d for d, p in table if p == prio]
        lines += [f"\tprio:{prio} dscp:" + "".join(f"{d:02d}," for d in held[i:i + 8]) for i in range(0, len(held), 8)]
    return lines


def class_lines(fn: Function, era: Era, everything: bool) -> list[str]:
    """Each traffic class with its scheduler and the priorities mapped to it."""
    members: dict[int, list[int]] = {tc: [] for tc in EIGHT} if everything else {}
    for prio, tc in enumerate(fn.prio_tc):
        members.setdefault(tc, []).append(prio)
    lines = []
    for tc in sorted(members) if era.sorts_classes else members:
        rate = f"{fn.maxrate[tc] / 1e6:.1f} Gbps" if fn.maxrate[tc] else "unlimited"
        tsa = {"ets": f"ets, bw: {fn.tc_bw[tc]}%", "strict": "strict", "vendor": "vendor"}.get(fn.tsa[tc], "unknown")
        lines.append(f"tc: {tc} ratelimit: {rate}, tsa: {tsa}")
        lines += [f"\t priority:  {prio}" for prio in members[tc]]
    return lines


def state_lines(fn: Function, era: Era, everything: bool = False) -> list[str]:
    """The whole printed state."""
    lines = []
    if era.knows_trust:
        lines.append(f"DCBX mode: {'OS' if fn.dcbx_host else 'Firmware'} controlled")
        lines.append(f"Priority trust state: {fn.trust}")
        if fn.trust == "dscp":
            lines += ["dscp2prio mapping:", *dscp_lines(driver.entries(fn))]
    if era.knows_default_prio:
        lines += ["default priority:", *(f"\tprio:{p}" for p in fn.default_prio)]
    buffers = era.knows_buffers and bool(fn.buffer_size)
    if buffers:
        total = f"{era.total_word}={fn.buffer_total}" if era.total_word else ""
        lines.append("Receive buffer size (bytes): " + "".join(f"{b}," for b in fn.buffer_size) + total)
    if era.knows_trust:
        lines.append(f"Cable len: {fn.cable_len}")
    lines += ["PFC configuration:" if era.knows_trust else "PFC configuration", TABLE_HEAD]
    lines.append("\tenabled     " + "".join(f"{on}   " for on in fn.pfc))
    if buffers:
        lines.append("\tbuffer      " + "".join(f"{b}   " for b in fn.prio_buffer))
    if not era.knows_trust:
        lines.append("")
    return lines + class_lines(fn, era, everything)
