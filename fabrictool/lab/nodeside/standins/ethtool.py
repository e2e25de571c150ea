"""ethtool 6.1: settings, -i, -a, -A, -S and --version, for mlx5 functions and for the management NIC.

`set-traceback` and `applied-error` on -A: it answers with an error although the values were (or were not) taken.
"""

from __future__ import annotations

import errno

from fabrictool.lab.nodeside import counts, driver
from fabrictool.lab.nodeside.standins.behaviour import Exit, err, serve, view
from fabrictool.lab.nodeside.state import Function, Nic
from fabrictool.lab.nodeside.sysfs import active
from fabrictool.lab.nodeside.tool import Answer, Call

BAD_LINE = "ethtool: bad command line argument(s)\nFor more information run ethtool -h"
LONG = {"--show-pause": "-a", "--pause": "-A", "--driver": "-i", "--statistics": "-S", "--help": "-h"}
NO_NAME = "netlink error: no device matches name (offset 24)\nnetlink error: No such device"
UNSUPPORTED = "netlink error: Operation not supported"
FIRMWARE = "28.45.4028 (MT_0000000838)"


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    words = [LONG.get(w, w) for w in call.argv]
    if words == ["--version"]:
        print("ethtool version 6.1")
        return 0
    if words == ["-h"]:
        print("ethtool version 6.1\nUsage:\n\tethtool DEVNAME\n\tethtool -a|-A|-i|-S DEVNAME\n\n"
              "This is a stand-in of a fabrictool lab.")
        return 0
    option = words.pop(0) if words and words[0].startswith("-") else ""
    if option not in ("", "-a", "-A", "-i", "-S") or not words:
        err(BAD_LINE)
        return 1
    name, rest = words[0], words[1:]
    if rest and option != "-A":
        err(BAD_LINE)
        return 1
    thing = _thing(call, name, option)
    if option == "-A":
        return _set_pause(call, thing, rest)
    if option == "-a":
        return _pause(thing, name)
    if option == "-i":
        return _driver(thing)
    if option == "-S":
        return _statistics(call, thing, name)
    return _settings(call, thing, name)


def _thing(call: Call, name: str, option: str) -> Function | Nic | None:
    """What is behind the name; None = an interface without any of this. No such interface: each option has its own end."""
    node = view(call)
    found = node.functions.get(name) or node.nics.get(name)
    if found is not None or name == "lo" or name in call.links():
        return found
    if option == "-i":
        err("Cannot get driver information: No such device")
        raise Exit(71)
    if option == "-S":
        err("Cannot get stats strings information: No such device")
        raise Exit(96)
    if option:
        err(NO_NAME)
        raise Exit(76 if option == "-A" else 1)
    print("No data available")
    err("\n".join([NO_NAME] * 5))
    raise Exit(75)


def _pause(thing: Function | Nic | None, name: str) -> int:
    if thing is None:
        err(UNSUPPORTED)
        return 1
    rx, tx = driver.pause(thing) if isinstance(thing, Function) else (False, False)
    autoneg = "off" if isinstance(thing, Function) else "on"
    print(f"Pause parameters for {name}:\nAutonegotiate:\t{autoneg}\nRX:\t\t{_on(rx)}\nTX:\t\t{_on(tx)}\n")
    return 0


def _on(flag: bool) -> str:
    return "on" if flag else "off"


def _set_pause(call: Call, thing: Function | Nic | None, words: list[str]) -> int:
    if not words or len(words) % 2:
        err(BAD_LINE if not words else f"ethtool (-A): missing value for parameter '{words[-1]}'")
        return 1
    asked: dict[str, bool] = {}
    for key, value in ((words[i], words[i + 1]) for i in range(0, len(words), 2)):
        if key not in ("rx", "tx", "autoneg"):
            err(f"ethtool (-A): unknown parameter '{key}'")
            return 1
        if value not in ("on", "off"):
            err(f"ethtool (-A): invalid value '{value}' for parameter '{key}'")
            return 1
        asked[key] = value == "on"
    if not isinstance(thing, Function) or asked.get("autoneg"):
        err(UNSUPPORTED)
        return 76
    if not call.root:
        err("netlink error: Operation not permitted")
        return 76
    if call.mode == "lies":
        return 0
    if call.mode in ("refuses", "set-traceback"):
        err("netlink error: " + driver.refused(errno.EINVAL).text)
        return 76
    fn = call.node.functions[thing.interface]
    rx, tx = driver.pause(fn)
    if call.mode == "half":
        asked = {k: asked[k] for k in list(asked)[:1]}
    driver.set_pause(call.node, fn, asked.get("rx", rx), asked.get("tx", tx))
    if call.mode in ("applied-error", "applied-traceback", "half"):
        err("netlink error: " + driver.refused(errno.EINVAL).text)
        return 76
    return 0


def _driver(thing: Function | Nic | None) -> int:
    if thing is None:
        err("Cannot get driver information: Operation not supported")
        return 71
    firmware = FIRMWARE if isinstance(thing, Function) and driver.mlx5(thing) else ""
    print(f"driver: {thing.driver}\nversion: 6.8.0\nfirmware-version: {firmware}\nexpansion-rom-version: \n"
          f"bus-info: {thing.bus}\nsupports-statistics: yes\nsupports-test: yes\nsupports-eeprom-access: no\n"
          "supports-register-dump: no\n"
          f"supports-priv-flags: {'yes' if firmware else 'no'}")
    return 0


def _statistics(call: Call, thing: Function | Nic | None, name: str) -> int:
    if thing is None:
        err("no stats available")
        return 94
    links = call.links()
    if isinstance(thing, Function):
        found = list(counts.statistics(view(call), thing, links))
    else:
        names = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes")
        found = [(n, getattr(links.get(name), n, 0)) for n in names] + [("rx_errors", 0), ("tx_errors", 0)]
    print("NIC statistics:")
    for key, number in found:
        print(f"     {key}: {number}")
    return 0


def _settings(call: Call, thing: Function | Nic | None, name: str) -> int:
    print(f"Settings for {name}:")
    if thing is None:
        print("\tLink detected: yes")
        return 0
    up = active(call.links().get(name))
    mbit = thing.rate_gbit * 1000 if isinstance(thing, Function) else thing.speed_mbit
    fec = "None\t RS\t BASER" if isinstance(thing, Function) else "Not reported"
    print(f"\tSupported ports: [ {'Backplane' if isinstance(thing, Function) else 'TP'} ]\n"
          f"\tSupported link modes:   {mbit}baseCR4/Full\n\tSupported pause frame use: Symmetric\n"
          "\tSupports auto-negotiation: Yes\n"
          f"\tSupported FEC modes: {fec}\n\tAdvertised link modes:  {mbit}baseCR4/Full\n\tAdvertised pause frame use: Symmetric\n"
          f"\tAdvertised auto-negotiation: Yes\n\tAdvertised FEC modes: {fec}\n"
          f"\tSpeed: {f'{mbit}Mb/s' if up else 'Unknown!'}\n\tDuplex: {'Full' if up else 'Unknown! (255)'}\n"
          "\tAuto-negotiation: on\n"
          f"\tPort: {'Direct Attach Copper' if isinstance(thing, Function) else 'Twisted Pair'}\n"
          "\tPHYAD: 0\n\tTransceiver: internal")
    if call.root:
        print("\tSupports Wake-on: d\n\tWake-on: d")
    else:
        err("netlink error: Operation not permitted")  # Wake-on-LAN is root's; the rest is still shown
    print(f"\tLink detected: {'yes' if up else 'no'}")
    return 0
