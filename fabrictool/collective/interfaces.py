"""The socket interface that NCCL chose for setting up connections: the right one, and one that other nodes reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from fabrictool.collective.expect import NOTHING, Expect
from fabrictool.collective.logmodel import Endpoint, NcclLog
from fabrictool.collective.transport import Verdict
from fabrictool.model import Code, Finding, Subject, SubjectKind
from fabrictool.room import About

# Interfaces that reach no other node, or only by a slow way (nccl.md 2.3).
LOCAL = ("docker", "veth", "br-", "cali", "flannel", "cni", "virbr", "lxdbr", "tun", "tailscale", "wl")
REMEDY = "set NCCL_SOCKET_IFNAME to the exact interface (`=ifname`) on every node: the env check derives it"


def suspicious(chosen: Endpoint) -> str:
    """Why other nodes may not reach this; "" when nothing speaks against it."""
    if chosen.interface == "lo" or chosen.interface.startswith("lo:"):
        return "the loopback interface"
    kind = next((k for k in LOCAL if chosen.interface.startswith(k)), "")
    if kind:
        return f"an interface of its kind ({kind}*) leads to no other node, or by a slow way"
    try:
        address = ip_address(chosen.address.split("%", 1)[0])
    except ValueError:
        return ""
    if address.is_loopback:
        return "a loopback address"
    return "a link-local address" if address.is_link_local else ""


def chosen(log: NcclLog, node: str) -> tuple[Endpoint, ...]:
    """What the node's processes use for connection setup: the bootstrap's choice and the RDMA plugin's; without both, the sockets'."""
    mine = [p for p in log.processes if p.key.node == node]
    first = [*(e for p in mine for e in p.bootstrap), *(h.oob for p in mine for h in p.hcas if h.oob)]
    found = first or [e for p in mine for e in p.sockets[:1]]
    return tuple(dict.fromkeys(Endpoint(e.interface, e.address) for e in found))


def judge_interfaces(got: Verdict, log: NcclLog, wants: Mapping[str, Expect], path: str) -> Iterator[Finding]:
    nodes = got.nodes or tuple(dict.fromkeys(p.key.node for p in log.processes if p.key.known))
    for node in nodes:
        found = chosen(log, node)
        if not found:
            continue
        about = About(Code.NCCL_WRONG_INTERFACE, Subject(SubjectKind.NODE, (node,)), f"{path}.bootstrap", "")
        want = wants.get(node, NOTHING).bootstrap
        shown = ", ".join(f"{e.interface} {e.address}" for e in found)
        wrong = [e for e in found if want and e.interface != want]
        if wrong:
            why = suspicious(wrong[0]) or "not the spec's bootstrap interface"
            yield about.fail(shown, want, why, remedy=REMEDY)
        elif len({e.interface for e in found}) > 1:
            why = "ranks of one node chose different interfaces: over several nodes they would not find each other"
            yield about.fail(shown, want or "one interface for all ranks of a node", why, remedy=REMEDY)
        elif not want and len(nodes) > 1 and (why := next((w for e in found if (w := suspicious(e))), "")):
            yield about.warn(shown, "an interface that all nodes share", why, remedy=REMEDY)
        else:
            yield about.ok(shown, want or shown)
