"""DSCP, PFC, traffic class, MTU against the switches, rails."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from fabrictool.spec.problems import Problem, error, warning
from fabrictool.spec.rules.view import Rule, View
from fabrictool.spec.schema import MtuCounts
from fabrictool.values import Dscp

ETHERNET = 18  # header 14 + frame check sequence 4 (IEEE 802.3 clause 3)
VLAN = 4  # one 802.1Q tag
CNP = (48, 6)  # congestion notification: DSCP 48, priority 6 are the NIC's defaults and lossy by design (roce_np/cnp_dscp)


def dscp_without_pfc(v: View) -> Iterator[Problem]:
    """A DSCP mapped to a priority that PFC does not protect."""
    qos = v.spec.fabric.qos
    for dscp, priority in qos.dscp_to_priority.items() if qos else ():
        if priority not in (qos.pfc if qos else ()) and (dscp, priority) != CNP:
            yield error(v.at("fabric", "qos", "dscp_to_priority", str(dscp)),
                        f"DSCP {dscp} maps to priority {priority}, which has no PFC",
                        "its packets would be dropped under congestion",
                        f"add {priority} to pfc, or map {dscp} to a priority in pfc")


def traffic_class(v: View) -> Iterator[Problem]:
    """The traffic class, its DSCP and its ECN bits."""
    fabric = v.spec.fabric
    tc, at = fabric.traffic_class, v.at("fabric", "traffic_class")
    if tc is None:
        if fabric.qos and fabric.qos.dscp_to_priority:
            yield warning(v.key("fabric", "qos"), "no traffic_class: no packet carries the DSCPs of this map",
                          "NCCL's default is DSCP 0, which maps to priority 0", "add `traffic_class: DSCP * 4` to fabric")
        return
    if tc & 3 == 3:
        yield error(at, f"traffic_class {tc} has both ECN bits set", "every packet would say that it met congestion",
                    f"write {tc & ~3} (DSCP {tc >> 2})")
    dscp = Dscp.from_tc(tc)
    if not fabric.qos:
        yield error(at, f"a traffic class with no DSCP behind it: there is no qos that maps DSCP {dscp}", "",
                    f"add `qos: {{dscp_to_priority: {{{dscp}: 3}}, pfc: [3]}}`, or remove traffic_class")
    elif dscp.value not in fabric.qos.dscp_to_priority:
        known = ", ".join(str(Dscp(d).tc) for d in fabric.qos.dscp_to_priority)
        yield error(at, f"a traffic class with no DSCP behind it: {tc} is DSCP {dscp} ({tc} >> 2), which dscp_to_priority lacks",
                    "",
                    f"add `{dscp}: PRIORITY` to dscp_to_priority" + (f", or write traffic_class {known}" if known else ""))
    if fabric.qos and fabric.qos.trust == "pcp":
        yield warning(v.at("fabric", "qos", "trust"), "with trust pcp the DSCP of the traffic class does nothing",
                      "the priority is then taken from the VLAN tag", "write `trust: dscp`")


def mtu_fits_switch(v: View) -> Iterator[Problem]:
    """The fabric's MTU against each switch that a port uses, by the switch's own way of counting."""
    mtu = v.spec.fabric.mtu
    for name in dict.fromkeys(p.switch for p in v.spec.ports.values() if p.switch):
        switch = v.spec.switches.get(name)
        if mtu is None or switch is None or switch.mtu is None:
            continue
        frame = switch.mtu_counts is MtuCounts.FRAME
        need = mtu + ETHERNET if frame else mtu
        how = f"it counts frames: {mtu} + {ETHERNET} (Ethernet header and FCS)" if frame else "it counts IP packets, as hosts do"
        at = v.at("switches", name, "mtu")
        if switch.mtu < need:
            yield error(at, f"switch {name} takes {switch.mtu}, the fabric needs {need}", f"fabric.mtu is {mtu}; {how}",
                        f"raise the switch to at least {need + (VLAN if frame else 0)}"
                        f"{f' (with {VLAN} for a VLAN tag)' if frame else ''}, or lower fabric.mtu")
        elif frame and switch.mtu < need + VLAN:
            yield warning(at, f"switch {name} takes {switch.mtu}: no room for a VLAN tag at the fabric's MTU {mtu}",
                          f"{how}; a tagged frame needs {VLAN} more",
                          f"raise the switch to {need + VLAN}, unless its ports are untagged")


def switch_claims(v: View) -> Iterator[Problem]:
    """What the admin says of the switches against what the hosts are told to rely on."""
    qos = v.spec.fabric.qos
    if qos is None:
        return
    for name in dict.fromkeys(p.switch for p in v.spec.ports.values() if p.switch):
        switch = v.spec.switches.get(name)
        if switch is None:
            continue
        claimed = () if isinstance(switch.pfc, str) else switch.pfc
        lacking = ", ".join(str(p) for p in qos.pfc if p not in claimed)
        if lacking:
            yield warning(v.at("switches", name, "pfc"), f"switch {name} is said to have no PFC on priority {lacking}",
                          "PFC on the hosts alone does not make the fabric lossless",
                          f"enable it on the switch and write `pfc: [{lacking}]`")
        if switch.keeps_dscp is not True and qos.trust == "dscp":
            said = "to rewrite the DSCP" if switch.keeps_dscp is False else "not to be known to keep the DSCP"
            yield warning(v.at("switches", name, "keeps_dscp"), f"switch {name} is said {said}",
                          "the far end then sorts packets into another priority",
                          "check the switch, then write `keeps_dscp: true`")


def switch_words(v: View) -> Iterator[Problem]:
    """The two fields that are a value or one word."""
    for name, switch in v.spec.switches.items():
        if isinstance(switch.pfc, str) and switch.pfc != "none":
            yield error(v.at("switches", name, "pfc"), f'pfc of switch {name} has to be a list of priorities or "none"', "",
                        "write `pfc: [3]`")
        if isinstance(switch.keeps_dscp, str) and switch.keeps_dscp != "unknown":
            yield error(v.at("switches", name, "keeps_dscp"), f"keeps_dscp of switch {name} has to be true, false or unknown", "",
                        "write true or false: YAML 1.2 reads yes and no as text")


def rails_overlap(v: View) -> Iterator[Problem]:
    """Two rails in one subnet: the kernel may answer for one on the other."""
    for (a, one), (b, two) in combinations(v.spec.fabric.rails.items(), 2):
        if one.subnet.overlaps(two.subnet):
            yield warning(v.at("fabric", "rails", b, "subnet"), f"rails {a} and {b} overlap ({one.subnet}, {two.subnet})",
                          "Linux answers ARP for both on either interface; arp_ignore, arp_announce, rp_filter are then read too",
                          "give each rail its own subnet")


RULES = (
    Rule(dscp_without_pfc, (("fabric", "qos"),)),
    Rule(traffic_class, (("fabric", "qos"), ("fabric", "traffic_class"))),
    Rule(mtu_fits_switch, (("fabric", "mtu"), ("switches",), ("ports", "*", "switch"))),
    Rule(switch_claims, (("fabric", "qos"), ("switches",), ("ports", "*", "switch"))),
    Rule(switch_words, (("switches",),)),
    Rule(rails_overlap, (("fabric", "rails"),)),
)
