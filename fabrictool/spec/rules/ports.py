"""Ports, functions, selectors, rates, protected interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabrictool.spec.problems import Mark, Problem, error, nearest, shown, warning
from fabrictool.spec.rules.view import Rule, View
from fabrictool.spec.schema import NAME, HcaMatch
from fabrictool.spec.tree import Path

RATES = (1, 2, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600)  # Ethernet and InfiniBand, Gb/s (2 and 20: two-lane SDR, DDR)

INTERFACE = "an interface"
NETDEV = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.][^\s/:\x00-\x1f\x7f]{0,14}")  # dev_valid_name(), IFNAMSIZ 16 with the final NUL
RDMA = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")  # IB_DEVICE_NAME_MAX 64


def functions(v: View) -> Iterator[Problem]:
    """A port of which nothing would be looked at must not look as if all were well."""
    for name, port in v.spec.ports.items():
        if not port.functions:
            yield error(v.at("ports", name, "functions"), f"port {shown(name)} has no function", "nothing of it would be judged",
                        "add `- {rail: NAME, interface: NAME}`, or remove the port")


def selectors(v: View) -> Iterator[Problem]:
    """A function that nothing could be bound to, or that is bound twice."""
    seen: dict[tuple[str, str], tuple[str, Mark]] = {}
    for port, i, f in v.functions():
        path = ("ports", port, "functions", i)
        if not (f.rdma or f.interface or f.mac):
            yield error(v.at(*path), f"a function of port {port} with no selector", "nothing says which device it is",
                        "add `interface:`, `rdma:` or `mac:`")
        for field, value in (("rdma", f.rdma), ("interface", f.interface), ("mac", f.mac and f.mac.lower())):
            if not value:
                continue
            at = v.at(*path, field)
            if (field, value) in seen:
                other, first = seen[field, value]
                yield error(at, f"{field} {shown(value)} is on this node twice, on port {other} and port {port}",
                            f"first at line {first.line}, column {first.col}", "each function is a device of its own")
            else:
                seen[field, value] = (port, at)


def device_names(v: View) -> Iterator[Problem]:
    """Names that the kernel could not have, or that a tool could take for an option."""
    named: list[tuple[Path, str | None, str, re.Pattern[str]]] = [
        (("bootstrap",), v.spec.bootstrap, INTERFACE, NETDEV),
        *((("protected", i), n, INTERFACE, NETDEV) for i, n in enumerate(v.spec.protected)),
        *((("other_rdma", i), n, "an RDMA device", RDMA) for i, n in enumerate(v.spec.other_rdma)),
    ]
    for port, i, f in v.functions():
        at: Path = ("ports", port, "functions", i)
        named += [((*at, "interface"), f.interface, INTERFACE, NETDEV), ((*at, "rdma"), f.rdma, "an RDMA device", RDMA)]
        named += [((*at, "members", n), m, INTERFACE, NETDEV) for n, m in enumerate(f.members)]
    for path, name, what, shape in named:
        if name is not None and not shape.fullmatch(name):
            yield error(v.at(*path), f"no name of {what}: {shown(name)}",
                        "at most 15 characters" if what == INTERFACE and len(name) > 15 else "")


def section_names(v: View) -> Iterator[Problem]:
    """Names of our own: they stand in reports and on command lines."""
    for section, what, names in (("ports", "a port", v.spec.ports), ("switches", "a switch", v.spec.switches),
                                 ("checkpoints", "a checkpoint", v.spec.checkpoints),
                                 ("kernel_caches", "a kernel cache", v.spec.kernel_caches)):
        for name in names:
            if not NAME.fullmatch(name):
                yield error(v.key(section, name), f"no name of {what}: {shown(name)}",
                            "letters, digits, and _ . : @ - after the first")


def rails(v: View) -> Iterator[Problem]:
    """Rails are defined in the fabric."""
    for port, i, f in v.functions():
        if f.rail not in v.spec.fabric.rails:
            yield error(v.at("ports", port, "functions", i, "rail"), f"rail {shown(f.rail)} is not in fabric.rails", "",
                        nearest(f.rail, v.spec.fabric.rails))


def switches(v: View) -> Iterator[Problem]:
    """Switches are described once, for all ports."""
    for name, port in v.spec.ports.items():
        if port.switch is not None and port.switch not in v.spec.switches:
            yield error(v.at("ports", name, "switch"), f"switch {shown(port.switch)} is not in switches", "",
                        nearest(port.switch, v.spec.switches))


def one_function_a_rail(v: View) -> Iterator[Problem]:
    """A rail has one function on each node."""
    seen: dict[str, str] = {}
    for port, i, f in v.functions():
        if f.rail in seen:
            yield warning(v.at("ports", port, "functions", i, "rail"), f"rail {shown(f.rail)} has two functions on this node",
                          f"the other is on port {seen[f.rail]}; a rail is one function on each node",
                          "give each function its own rail")
        seen.setdefault(f.rail, port)


def rates(v: View) -> Iterator[Problem]:
    """A rate that no port has."""
    for name, port in v.spec.ports.items():
        if port.rate_gbit is None or port.rate_gbit in RATES:
            continue
        at = v.at("ports", name, "rate_gbit")
        if port.rate_gbit > RATES[-1]:
            yield error(at, f"{port.rate_gbit} Gb/s: no port is that fast", "rate_gbit is in Gb/s, not Mb/s",
                        f"write {port.rate_gbit // 1000}" if port.rate_gbit // 1000 in RATES else "write 200, or 400")
        else:
            yield warning(at, f"{port.rate_gbit} Gb/s is no usual rate of a port", "a port at another rate will fail",
                          f"usual: {', '.join(str(r) for r in RATES if r >= 10)}")


def protected(v: View) -> Iterator[Problem]:
    """`protected` is never changed, so no fabric function can be in it. The bootstrap interface can: it is used, and not set."""
    ours = {i: f"the function of rail {f.rail}" for _, _, f in v.functions() for i in (f.interface, *f.members) if i}
    for i, name in enumerate(v.spec.protected):
        if name in ours:
            yield error(v.at("protected", i), f"{shown(name)} is protected and at the same time {ours[name]}",
                        "protected interfaces are never changed", "remove it from one of the two")


def hca_prefix(v: View) -> Iterator[Problem]:
    """NCCL_IB_HCA without `=` matches by prefix: mlx5_1 takes mlx5_10 too."""
    if v.spec.env.hca_match is not HcaMatch.PLAIN:
        return
    used = [(p, i, f.rdma) for p, i, f in v.functions() if f.rdma]
    others = [*(r for _, _, r in used), *v.spec.other_rdma]
    for port, i, name in used:
        longer = next((o for o in others if o != name and o.startswith(name)), None)
        if longer:
            yield error(v.at("ports", port, "functions", i, "rdma"),
                        f"{name} is the beginning of {longer}, and hca_match is plain",
                        f"NCCL_IB_HCA={name} would take {longer} as well", "remove `hca_match: plain` (the default is exact)")


def other_rdma(v: View) -> Iterator[Problem]:
    """Devices of other purpose that are a function at the same time."""
    ours = {f.rdma for _, _, f in v.functions() if f.rdma}
    for i, name in enumerate(v.spec.other_rdma):
        if name in ours:
            yield error(v.at("other_rdma", i), f"{shown(name)} is in other_rdma and a function of a port",
                        "other_rdma is left alone and has to stay flat while the fabric is proven",
                        "remove it from one of the two")


RULES = (
    Rule(device_names, (("ports", "*", "functions"), ("bootstrap",), ("protected",), ("other_rdma",))),
    Rule(section_names, ()),
    Rule(functions, (("ports", "*", "functions"),)),
    Rule(selectors, (("ports", "*", "functions"),)),
    Rule(rails, (("ports", "*", "functions"), ("fabric", "rails"))),
    Rule(switches, (("ports", "*", "switch"), ("switches",))),
    Rule(one_function_a_rail, (("ports", "*", "functions"),)),
    Rule(rates, ()),
    Rule(protected, (("ports", "*", "functions"), ("protected",))),
    Rule(hca_prefix, (("ports", "*", "functions"), ("other_rdma",), ("env", "hca_match"))),
    Rule(other_rdma, (("ports", "*", "functions"), ("other_rdma",))),
)
