"""netplan: `generate` really validates the YAML and writes the back ends' files; `apply` also sets what they say."""

from __future__ import annotations

import json
import subprocess

from fabrictool.lab.nodeside import netconf
from fabrictool.lab.nodeside.tool import Answer, Call

LOCKED = False


def _warnings() -> str:
    return "".join(f"\n** (generate:1): WARNING **: Permissions for {p} are too open. Netplan configuration should NOT be "
                   "accessible by others.\n" for p in netconf.netplan_files() if p.stat().st_mode & 0o077)


def _generate(call: Call) -> Answer:
    if not call.root:
        return Answer(1, "", "PermissionError: [Errno 13] Permission denied: '/run/NetworkManager/system-connections'\n")
    try:
        netconf.generate()
    except netconf.NetplanError as error:
        return Answer(1, "", f"{error}\n")
    return Answer(0, "", _warnings())


def _apply(call: Call) -> Answer:
    """The real one also takes links down and up and drops addresses that it does not know: here the MTUs are what matters."""
    done = _generate(call)
    if done.rc == 0:
        for name, mtu in netconf.boot_mtus({n: link.mac for n, link in call.links().items()}).items():
            subprocess.run(["ip", "link", "set", name, "mtu", str(mtu)], check=False, timeout=10)
    return done


def _status(call: Call) -> Answer:
    try:
        ethernets = netconf.read_netplan()
    except netconf.NetplanError as error:
        return Answer(1, "", f"{error}\n")
    links = call.links()
    names = {i: e for e in ethernets for i, link in links.items() if i == e.interface or (e.mac and link.mac == e.mac)}
    backends = {"NetworkManager": "NetworkManager"}
    report: dict[str, object] = {i: {"index": n, "adminstate": "UP" if link.up else "DOWN", "operstate": link.operstate, "type": "ethernet",
                  "macaddress": link.mac, "mtu": link.mtu, "addresses": [{a.partition("/")[0]: {}} for a in link.addresses],
                  **({"backend": backends.get(names[i].renderer, "networkd"), "id": names[i].id} if i in names else {})}
              for n, (i, link) in enumerate(links.items(), 2)}
    return Answer(0, json.dumps({"netplan-global-state": {"online": True}, **report}) + "\n")


def run(call: Call) -> Answer:
    words = [w for w in call.argv if w not in ("--debug", "--format", "-f", "json", "--format=json", "--all", "-a")]
    verb = words[0] if words else ""
    if verb == "generate":
        return _generate(call)
    if verb == "apply":
        return _apply(call)
    if verb == "status":
        return _status(call)
    if verb == "get":
        return Answer(0, "".join(p.read_text() for p in netconf.netplan_files())) if call.root else Answer(
            1, "", "PermissionError: [Errno 13] Permission denied\n")
    return Answer(2, "", f"netplan: error: argument : invalid choice: '{verb}'\n")
