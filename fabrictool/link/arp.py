"""Two rails in one subnet: the kernel answers ARP for either address on either interface, unless told not to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from fabrictool.link.model import Link
from fabrictool.model import Code, Finding, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports import BoundFunction
from fabrictool.room import About
from fabrictool.spec import NodeSpec


def _shared(bound: tuple[BoundFunction, ...], spec: NodeSpec) -> tuple[str, ...]:
    """Interfaces that share a subnet, by the spec's rails or by the addresses they have."""
    nets = {}
    for fn in bound:
        rail = spec.fabric.rails.get(fn.want.rail)
        own = [a.network for a in fn.netdev.value.addresses if a.version == 4] if isinstance(fn.netdev, Value) else []
        nets[fn.interface] = [n for n in own if not n.is_link_local] + ([rail.subnet] if rail else [])
    hit = [pair for pair in combinations(nets, 2) if any(x.overlaps(y) for x in nets[pair[0]] for y in nets[pair[1]])]
    return tuple(dict.fromkeys(i for pair in hit for i in pair))


def _effective(got: Link, interface: str, name: str) -> int | None:
    """The kernel uses the larger of `all` and the interface's own value (networking/ip-sysctl)."""
    if isinstance(got.arp, Unreadable):
        return None
    both = [got.arp.get(f"{where}/{name}") for where in ("all", interface)]
    return None if None in both else max(v for v in both if v is not None)


def judge_arp(bound: tuple[BoundFunction, ...], got: Link, spec: NodeSpec) -> Iterator[Finding]:
    about = About(Code.ARP_FLUX, Subject(SubjectKind.NODE, (spec.name,)), "link.arp", "")
    shared = _shared(bound, spec)
    wanted = "one subnet for each rail"
    if len(bound) < 2:
        yield about.skip("one function: nothing to share a subnet with")
        return
    if not shared:
        yield about.ok(f"{len(bound)} functions in different subnets", wanted)
        return
    if isinstance(got.arp, Unreadable):
        yield about.unknown(got.arp, wanted)
        return
    wrong = []
    for interface in shared:
        ignore, announce, rp = (_effective(got, interface, n) for n in ("arp_ignore", "arp_announce", "rp_filter"))
        if ignore is None or announce is None or rp is None:
            yield about.unknown(Unreadable(Reason.EMPTY, f"{interface}: arp_ignore, arp_announce or rp_filter is not told"), wanted)
            return
        if ignore < 1 or announce != 2 or rp == 1:
            wrong.append(f"{interface}: arp_ignore {ignore}, arp_announce {announce}, rp_filter {rp}")
    if wrong:
        yield about.warn("; ".join(wrong), f"{wanted}, or arp_ignore 1, arp_announce 2, rp_filter 2",
                         f"{', '.join(shared)} share a subnet: peers may learn the wrong rail's MAC",
                         remedy="give each rail its own subnet, or set the three sysctls on these interfaces")
    else:
        yield about.ok(f"{', '.join(shared)} share a subnet, with ARP kept apart", wanted)
