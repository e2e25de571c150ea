"""lldptool: talks to lldpad, so it answers only while that runs; no neighbour is ever seen here."""

from __future__ import annotations

from fabrictool.lab.nodeside.standins.behaviour import err, serve
from fabrictool.lab.nodeside.tool import Answer, Call


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    words = list(call.argv)
    if not words or words[0] in ("-h", "help"):
        print("Usage:\n  lldptool <command> [options] [arg]\n\nThis is a stand-in of a fabrictool lab.")
        return 0
    if words[0] in ("-v", "version"):
        print("lldptool v1.1.0")
        return 0
    if not call.node.lldpad:
        err("Failed to connect to lldpad - clif_open: Connection refused")
        return 1
    name = words[words.index("-i") + 1] if "-i" in words[:-1] else ""
    if name not in call.node.functions and name not in call.node.nics:
        err("Device not found or inactive")
        return 1
    if "adminStatus" in words:
        print("adminStatus=rxtx")
    elif "-n" in words:
        print("Agent instance for device not found or no neighbor TLVs")
    else:
        print("Chassis ID TLV\n\tMAC: 02:5b:00:00:01:01\nPort ID TLV\n\tMAC: 02:5b:00:00:01:01\n"
              "Time to Live TLV\n\t120\nEnd of LLDPDU TLV")
    return 0
