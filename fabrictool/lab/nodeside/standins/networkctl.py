"""networkctl list: who manages which link, from networkd's own files and the live links."""

from __future__ import annotations

from pathlib import Path

from fabrictool.lab.nodeside import netconf
from fabrictool.lab.nodeside.tool import Answer, Call, Link

LOCKED = False
NOT_RUNNING = "WARNING: systemd-networkd is not running, output will be incomplete.\n\n"


def networkd_runs() -> bool:
    """networkd is started where it has anything to do, as netplan's generator arranges it."""
    return bool(netconf.networks())


def _operational(link: Link) -> str:
    if not link.up:
        return "off"
    if not link.carrier:
        return "no-carrier"
    return "routable" if any("." in a for a in link.addresses) else "degraded" if link.addresses else "carrier"


def rows(links: dict[str, Link], running: bool) -> list[tuple[str, str, str, str, str]]:
    found = [("1", "lo", "loopback", "carrier", "unmanaged")]
    for i, link in enumerate(links.values(), 2):
        managed = running and netconf.network_of(link.name, link.mac) is not None
        found.append((str(i), link.name, "ether", _operational(link) if running else "n/a",
                      "configured" if managed else "unmanaged"))
    return found


def run(call: Call) -> Answer:
    words = [w for w in call.argv if not w.startswith("-")]
    if words[:1] not in ([], ["list"], ["reload"], ["reconfigure"]):
        return Answer(1, "", f"Unknown command verb '{words[0]}'.\n")
    running = networkd_runs()
    if words[:1] in (["reload"], ["reconfigure"]):
        return Answer() if call.root and running else Answer(1, "", "Failed to reload network settings: Access denied\n")
    if not Path("/sys/class/net").is_dir():
        return Answer(1, "", "Failed to enumerate links\n")
    table = rows(dict(call.links()), running)
    width = max(len(r[1]) for r in table)
    lines = [f"{i:>3} {name:<{width}} {kind:<8} {op:<11} {setup}" for i, name, kind, op, setup in table]
    head = f"IDX {'LINK':<{width}} {'TYPE':<8} {'OPERATIONAL':<11} SETUP"
    return Answer(0, "\n".join([head, *lines, "", f"{len(table)} links listed.", ""]), "" if running else NOT_RUNNING)
