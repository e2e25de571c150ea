"""Which faults can happen together on one node so that each keeps its row, and what the commands say then."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from fabrictool.exits import Exit, worst
from fabrictool.lab.faults import Fault, Outcome, fault
from tests.lab.walk import NEEDS_FLEET, Case

# Nothing of a node that cannot be reached is known: the other fault is hidden.
REACH = frozenset({"hostkey-changed", "unreachable", "port-closed", "banner-hangs", "login-hangs"})
# They change what a write does, or take the right to write: walked with something to write, in rows and cases of their own.
WRITING = frozenset({"disk-full", "etc-readonly", "tool-lies", "tool-half", "tool-refuses", "tool-2017", "qps-up", "foreign-rdma",
                     "route-over-fabric", "sudo-password", "needs-root"})
REGISTERS = frozenset({"trust", "pfc", "pause", "tc", "dcbx"})
# What a fault changes, or keeps from being seen. Faults with nothing in common do not meet.
TOUCHES: dict[str, frozenset[str]] = {
    "qos-wiped": REGISTERS, "trust-pcp": frozenset({"trust"}), "dscp-map-custom": frozenset({"trust"}),
    "pfc-wrong-prio": frozenset({"pfc"}), "pfc-extra-prio": frozenset({"pfc"}), "global-pause": frozenset({"pause"}),
    "shared-tc": frozenset({"tc"}), "no-buffer": frozenset({"tc"}), "fw-dcbx": frozenset({"dcbx"}), "unit-removed": frozenset({"unit"}),
    "unit-disabled": frozenset({"unit"}), "unit-edited": frozenset({"unit"}),
    **{name: REGISTERS | {"reader"} for name in ("vf-function", "readers-disagree", "tool-missing", "tool-hangs", "tool-traceback",
                                                 "tool-no-ps", "tool-applied-traceback", "second-reader-hangs")},
    **{name: frozenset({"link"}) for name in ("mtu-1500", "mtu-hole")},
    **{name: frozenset({"netplan"}) for name in ("mtu-persist", "two-owners", "dhcp-profile")},
    **{name: frozenset({"link", "rdma"}) for name in ("port-down", "interface-down")},
    **{name: frozenset({"rdma"}) for name in ("gid-v1", "port-infiniband", "half-rate")},
    "address-lost": frozenset({"link", "rdma", "hosts", "env"}),
    "function-gone": frozenset({"link", "rdma", "hosts", "env", "netplan", "unit", "reader", "pcie", "tclass", *REGISTERS}),
    "pcie-narrow": frozenset({"pcie"}), "tclass-override": frozenset({"tclass"}),
    "hosts-loopback": frozenset({"hosts"}), "cloud-init-hosts": frozenset({"template"}),
    **{name: frozenset({"env"}) for name in ("env-edited", "env-ghost-if", "gid-pinned", "debug-left-on", "own-env-file",
                                             "stale-consumer")},
    "bashrc-slow": frozenset({"bashrc"}), "bashrc-noisy": frozenset({"bashrc"}),
    # seen in traffic only; a file or a link changes for some of them
    **{name: frozenset() for name in ("tcp-fallback", "tcp-fast", "verbs-missing", "rail-idle", "nic-13g", "counters-frozen",
                                      "wrong-priority", "packets-lost", "wrong-result", "rank-dead", "init-hang", "stale-json",
                                      "log-missing", "firewall", "gpu-busy", "gpu-desktop")},
    "hca-misnamed": frozenset({"env"}), "mtu-hole-pair": frozenset({"link"}),
    # their findings stand beside everything else, and what they stop is wrong anyway
    "lldpad": frozenset(), "other-owner": frozenset(), "twins-apart": frozenset(), "no-python": frozenset(),
}


def pair(one: Fault, two: Fault) -> Case:
    """The worse exit status wins, and both have their codes; a node that cannot be reached says nothing else."""
    hider = next((f for f in (one, two) if f.name in REACH), None)
    expect = hider.expect if hider else {
        c: Outcome(worst((Exit(one.expect[c].exit), Exit(two.expect[c].exit))), (*one.expect[c].codes, *two.expect[c].codes))
        for c in one.expect}
    return Case(f"{one.name}+{two.name}", (one.name, two.name), expect)


def compatible(profile: str) -> Iterator[tuple[Fault, Fault]]:
    """Every pair that keeps its rows."""
    names = sorted(n for n in (*TOUCHES, *REACH) if not fault(n).profiles or profile in fault(n).profiles)
    for a, b in itertools.combinations(names, 2):
        if {a, b} <= REACH:
            continue
        if {a, b} & REACH or not TOUCHES[a] & TOUCHES[b]:
            yield fault(a), fault(b)


def chosen(profile: str, seed: int, many: int, hidden: int) -> list[Case]:
    """`many` pairs at random, and `hidden` more in which one fault hides the other."""
    dice = random.Random(seed)
    every = list(compatible(profile))
    open_ones = [p for p in every if not {p[0].name, p[1].name} & REACH]
    lost = [p for p in every if {p[0].name, p[1].name} & REACH]
    return [pair(a, b) for a, b in (*dice.sample(open_ones, many), *dice.sample(lost, hidden))]


def without_rule() -> set[str]:
    """Faults of the table that no rule here knows: none may be."""
    from fabrictool.lab.faults import FAULTS

    return {f.name for f in FAULTS} - set(TOUCHES) - REACH - WRITING - NEEDS_FLEET
