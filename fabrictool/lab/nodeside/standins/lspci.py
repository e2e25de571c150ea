"""lspci: the node's adapters, and with -d ::0604 the bridges above them. Capabilities are root's to see."""

from __future__ import annotations

from fabrictool.lab.nodeside.capacity import UNIFIED
from fabrictool.lab.nodeside.standins.behaviour import err, serve
from fabrictool.lab.nodeside.tool import Answer, Call

FLAGS = ("-D", "-v", "-vv", "-vvv", "-n", "-nn", "-k")
ACS = ("\tCapabilities: [148 v1] Access Control Services\n"
       "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+\n"
       "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n")
ADAPTER = "Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]"


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    words, wanted = list(call.argv), ""
    while words:
        word = words.pop(0)
        if word == "--version":
            print("lspci version 3.9.0")
            return 0
        if word == "-d" and words:
            wanted = words.pop(0)
        elif word.startswith("-d"):
            wanted = word[2:]
        elif word not in FLAGS:
            err(f"lspci: invalid option -- '{word.lstrip('-')[:1]}'")
            return 1
    verbose = any(w.startswith("-v") for w in call.argv)
    functions = sorted(call.node.functions.values(), key=lambda f: f.bus)
    if wanted in ("", "15b3:", "15b3::"):
        for fn in functions:
            print(f"{_name(fn.bus, call.argv)} {ADAPTER}")
    if wanted in ("", "::0604") and call.node.gpu not in UNIFIED:  # on a Spark each adapter is at a root port of its own
        for bus in dict.fromkeys(bridge(fn.bus) for fn in functions):
            print(f"{_name(bus, call.argv)} PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])")
            if verbose:
                print(ACS if call.root else "\tCapabilities: <access denied>\n")
    return 0


def bridge(bus: str) -> str:
    """The address of the switch's port above a function."""
    domain, number, _ = bus.split(":")
    return f"{domain}:{max(int(number, 16) - 1, 0):02x}:01.0"


def _name(bus: str, argv: list[str]) -> str:
    return bus if "-D" in argv else bus.partition(":")[2]
