"""The link as it runs: MTU (and what the device and its parent allow), state, speed."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.model import Absent, Code, Finding, Reason, Risk, Run, Unreadable, Value
from fabrictool.ports import BoundFunction, Netdev, Ports, other_cage
from fabrictool.room import About
from fabrictool.spec import NodeSpec
from fabrictool.values import Rate

ASPECT = "running"


def blocked(fn: BoundFunction) -> Unreadable | None:
    """Why a function without an interface cannot be judged here; the ports room says the rest."""
    if isinstance(fn.netdev, Absent):
        return Unreadable(Reason.BLOCKED, f"LINK_ABSENT: {fn.netdev.what} is not on the node")
    return fn.netdev if isinstance(fn.netdev, Unreadable) else None


def _of(ports: Ports, name: str) -> Netdev | None:
    return None if isinstance(ports.netdevs, Unreadable) else ports.netdevs.get(name)


def _physical_function(n: Netdev, ports: Ports) -> Netdev | None:
    if not n.physfn or isinstance(ports.netdevs, Unreadable):
        return None
    return next((p for p in ports.netdevs.values() if p.bus == Value(n.physfn) and not p.virtual_function and p.device), None)


def mtu_range(n: Netdev, want: int, ports: Ports, about: About) -> Iterator[Finding]:
    """The device's own limits, then what stands below it: a VLAN's parent and a VF's PF must be as large, a bond's member follows
    its bond. Where iproute2 does not print the limits nothing is compared: the kernel refuses a wrong value itself."""
    low, high = n.min_mtu, n.max_mtu
    if isinstance(high, Value) and 0 < high.value < want:  # 0 = no limit
        yield about.fail(f"at most {high.value}", str(want), f"{n.name}: MTU {want} is greater than the device's maximum",
                         remedy="lower fabric.mtu in the spec")
        return
    if isinstance(low, Value) and low.value > want:
        yield about.fail(f"at least {low.value}", str(want), f"{n.name}: MTU {want} is below the device's minimum",
                         remedy="raise fabric.mtu in the spec")
        return
    for below, what in ((_of(ports, n.parent), "the interface below it"), (_physical_function(n, ports), "its physical function")):
        if below is None:
            continue
        if isinstance(below.mtu, Value) and below.mtu.value < want:
            yield about.fail(f"{below.name} has {below.mtu.value}", f"{want} or more",
                             f"{n.name}: {what}, {below.name}, has a smaller MTU",
                             remedy=f"raise {below.name} first, where its owner keeps it, and then this one")
            return
        if not isinstance(below.mtu, Value):
            yield about.unknown(below.mtu, f"{below.name}: {want} or more")
            return
    if isinstance(high, Value):
        yield about.ok(f"up to {high.value}" if high.value else "no limit", str(want))


def _mtu(fn: BoundFunction, n: Netdev, want: int, ports: Ports, spec: NodeSpec) -> Iterator[Finding]:
    subject = fn.subject(spec)
    limits = tuple(mtu_range(n, want, ports, About(Code.LINK_MTU_RANGE, subject, "link.mtu_range", ASPECT)))
    yield from limits
    about = About(Code.LINK_MTU_RUNNING, subject, "link.mtu", ASPECT)
    if not isinstance(n.mtu, Value):
        yield about.unknown(n.mtu, str(want))
        return
    now = n.mtu.value
    if now == want:
        yield about.ok(str(now), str(want))
        return
    master = _of(ports, n.master)
    if any(f.bad for f in limits):
        yield about.fail(str(now), str(want), "the MTU cannot be set as things are: see LINK_MTU_RANGE",
                         remedy="mend LINK_MTU_RANGE first")
    elif master is not None and master.kind == "bond":
        yield about.fail(str(now), str(want), f"{n.name} is a member of {master.name} and follows its MTU",
                         remedy=f"name {master.name} as the function's interface, with `members`")
    else:
        yield about.fail(str(now), str(want), "", risk=Risk.FLAP, steps=(Run(
            ("ip", "link", "set", "dev", n.name, "mtu", str(want)), undo=("ip", "link", "set", "dev", n.name, "mtu", str(now))),))


def _state(fn: BoundFunction, n: Netdev, ports: Ports, spec: NodeSpec) -> Finding:
    about = About(Code.LINK_DOWN, fn.subject(spec), "link.state", "")
    state = n.operstate or "?"
    if not n.up:
        return about.fail("administratively down", "up", f"{n.name} is switched off", remedy=f"ip link set dev {n.name} up")
    if n.carrier == Value(True) and state not in ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT"):
        return about.ok(f"up ({state})", "up")
    if n.carrier == Value(False) or state in ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT"):
        others = other_cage(fn, spec, ports)
        where = f"; {', '.join(others)} has a link: does the cable sit in the other cage?" if others else ""
        return about.fail(f"no carrier ({state})", "up", f"{n.name} has no link{where}",
                          remedy="check cable, transceiver and the switch port")
    if isinstance(n.carrier, Unreadable) and state == "UP":
        return about.ok("up (UP)", "up")
    return about.unknown(n.carrier if isinstance(n.carrier, Unreadable) else Unreadable(Reason.EMPTY, f"{n.name}: state {state}"), "up")


def _speed(fn: BoundFunction, n: Netdev, spec: NodeSpec, down: bool) -> Finding:
    about = About(Code.LINK_SPEED, fn.subject(spec), "link.speed", "")
    rate = spec.ports[fn.port].rate_gbit
    if rate is None:
        return about.skip("the spec gives no rate_gbit for this port")
    want = Rate.gbit(rate)
    if down:
        return about.unknown(Unreadable(Reason.BLOCKED, f"LINK_DOWN: {n.name} has no speed without a link"), str(want))
    if not isinstance(n.speed, Value):
        return about.unknown(n.speed, str(want))
    if n.speed.value == want:
        return about.ok(str(n.speed.value), str(want))
    slow = n.speed.value < want
    return about.fail(
        str(n.speed.value), str(want),
        f"{n.name} runs {'slower' if slow else 'faster'} than the spec says" + (": cable, breakout, autonegotiation?" if slow else ""),
        remedy="check cable, transceiver and the switch port's speed" if slow else "correct rate_gbit in the spec")


def judge_running(fn: BoundFunction, ports: Ports, spec: NodeSpec) -> Iterator[Finding]:
    subject = fn.subject(spec)
    why = blocked(fn)
    mtu = spec.fabric.mtu
    if mtu is None:
        yield About(Code.LINK_MTU_RUNNING, subject, "link.mtu", ASPECT).skip("the spec gives no fabric.mtu")
    if why is not None or not isinstance(fn.netdev, Value):
        gone = why or Unreadable(Reason.BLOCKED, "no interface")
        if mtu is not None:
            yield About(Code.LINK_MTU_RUNNING, subject, "link.mtu", ASPECT).unknown(gone, str(mtu))
        yield About(Code.LINK_DOWN, subject, "link.state", "").unknown(gone, "up")
        return
    n = fn.netdev.value
    if mtu is not None:
        yield from _mtu(fn, n, mtu, ports, spec)
    state = _state(fn, n, ports, spec)
    yield state
    yield _speed(fn, n, spec, state.bad)
