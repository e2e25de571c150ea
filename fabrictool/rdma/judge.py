"""Wanted and found RDMA ports. Read only: what is wrong here is mended elsewhere, and each finding says where."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool import ports
from fabrictool.model import Absent, Code, Finding, Reason, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.ports import BoundFunction
from fabrictool.rdma.model import GidEntry, PortState, Rdma, RdmaPort
from fabrictool.room import About, Fleet
from fabrictool.spec import NodeSpec
from fabrictool.values import Dscp, Rate

UP = {"ACTIVE": PortState.ACTIVE, "DOWN": PortState.DOWN, "INIT": PortState.INIT, "ARMED": PortState.ARMED,
      "ACTIVE_DEFER": PortState.ACTIVE_DEFER}
IBV_MTUS = (256, 512, 1024, 2048, 4096)
VANISHED = "check cable and PCI (a hot-plugged function vanishes with its cable), the driver, and the name in the spec"
HEADERS = (96, 80)  # bytes that mlx5 keeps free for RoCE headers: 96, older kernels 80


def judge(want: NodeSpec, got: Rdma, fleet: Fleet) -> Iterator[Finding]:
    if not want.ports:
        yield About(Code.RDMA_ABSENT, Subject(SubjectKind.NODE, (want.name,)), "rdma.device", "").skip("the spec names no port")
        return
    for fn in ports.bind(want, got.ports):
        yield from _function(want, got, fn)


def _function(want: NodeSpec, got: Rdma, fn: BoundFunction) -> Iterator[Finding]:
    subject = fn.subject(want)
    about = About(Code.RDMA_ABSENT, subject, "rdma.device", "")
    if isinstance(fn.rdma, Unreadable):
        yield about.unknown(fn.rdma, fn.want.rdma or "an RDMA device")
        return
    if isinstance(fn.rdma, Absent):
        if isinstance(fn.netdev, Absent) and fn.want.rdma is None:
            yield about.unknown(Unreadable(Reason.BLOCKED, f"LINK_ABSENT: {fn.netdev.what} is not on the node"), "an RDMA device")
            return
        why, remedy = f"{fn.rdma.what} is not on the node", VANISHED
        if isinstance(got.stack, Absent):
            why, remedy = "the kernel's RDMA core is not loaded", "load the NIC's RDMA driver (mlx5_ib)"
        yield about.fail("not there", fn.want.rdma or "an RDMA device", why, remedy=remedy)
        return
    port = got.device(fn.rdma_name)
    yield about.ok(port.name)
    yield judge_state(subject, port)
    yield judge_link_layer(subject, port)
    yield judge_rate(want, subject, fn, port)
    yield judge_active_mtu(subject, fn, port)
    yield judge_gid(want, subject, fn, port)
    yield judge_override(want, subject, port)


def judge_state(subject: Subject, port: RdmaPort) -> Finding:
    about = About(Code.RDMA_DOWN, subject, "rdma.state", "")
    first, second = port.state, port.link
    if not isinstance(first, Value):
        if not isinstance(second, Value) or second.value.state not in UP:
            return about.unknown(first, "ACTIVE")
        state, note = UP[second.value.state], " (rdma link alone)"
    else:
        state, note = first.value, ""
        if isinstance(second, Value) and second.value.state and second.value.state != state.name:
            return About(Code.RDMA_READERS_DISAGREE, subject, "rdma.state", "").fail(
                f"sysfs {state.name}, rdma link {second.value.state}", "ACTIVE",
                "the state changed while it was read, or a reader is wrong", status=Status.UNKNOWN,
                remedy="run again; if it stays so, run `rdma link` on the node")
    physical = port.phys_state.value if isinstance(port.phys_state, Value) else ""
    shown = f"{state.name}{f', {physical}' if physical else ''}{note}"
    if state is PortState.ACTIVE and physical in ("", "LinkUp"):
        return about.ok(shown, "ACTIVE")
    return about.fail(shown, "ACTIVE", "no RDMA traffic can use the port",
                      remedy="check the cable, the switch port and `ip link` of the interface")


def judge_link_layer(subject: Subject, port: RdmaPort) -> Finding:
    about = About(Code.RDMA_LINK_LAYER, subject, "rdma.link_layer", "")
    got = port.link_layer
    if not isinstance(got, Value):
        return about.unknown(got, "Ethernet")
    if got.value == "Ethernet":
        return about.ok("Ethernet")
    return about.fail(got.value, "Ethernet", "RoCE needs the port in Ethernet mode",
                      remedy="mlxconfig -d PCI set LINK_TYPE_P1=2, then a cold start")


def judge_rate(want: NodeSpec, subject: Subject, fn: BoundFunction, port: RdmaPort) -> Finding:
    about = About(Code.RDMA_RATE, subject, "rdma.rate", "")
    gbit = want.ports[fn.port].rate_gbit
    if gbit is None:
        return about.skip("the spec gives no rate_gbit")
    wanted = str(Rate.gbit(gbit))
    if port.state != Value(PortState.ACTIVE):
        why = "the rate is shown only while the port is ACTIVE"
        return about.unknown(Unreadable(Reason.BLOCKED, f"RDMA_DOWN: {why}"), wanted)
    got = port.rate
    if not isinstance(got, Value):
        return about.unknown(got, wanted)
    # A LAG's device shows the rate of one member or of all: the spec's rate is the sum.
    if got.value == Rate.gbit(gbit) or (fn.members and got.value.bits_per_s * len(fn.members) == Rate.gbit(gbit).bits_per_s):
        return about.ok(str(got.value), wanted)
    return about.fail(str(got.value), wanted, "the port negotiated another rate than the spec says",
                      remedy="check cable and transceiver, and the switch port's speed; or correct rate_gbit")


def expected_mtus(netdev_mtu: int) -> frozenset[int]:
    """The RDMA MTUs that fit an interface MTU (bytes): the largest of 256..4096 that leaves room for the RoCE headers.

    Two answers where the kernel's version decides; empty where not even 256 fits.
    """
    return frozenset(max(fits) for h in HEADERS if (fits := [m for m in IBV_MTUS if m <= netdev_mtu - h]))


def judge_active_mtu(subject: Subject, fn: BoundFunction, port: RdmaPort) -> Finding:
    """Against the interface's own MTU: whether that one is as wanted is the link room's question."""
    about = About(Code.RDMA_ACTIVE_MTU, subject, "rdma.active_mtu", "")
    mtu: Unreadable | Absent | Value[int]
    mtu = fn.netdev.value.mtu if isinstance(fn.netdev, Value) else fn.netdev
    if not isinstance(mtu, Value):
        why = mtu.why if isinstance(mtu, Unreadable) else f"{mtu.what}: absent"
        return about.unknown(Unreadable(Reason.BLOCKED, f"the interface's MTU is not known: {why}"), "")
    fits = expected_mtus(mtu.value)
    wanted = " or ".join(map(str, sorted(fits))) + f" (interface MTU {mtu.value})"
    got = port.active_mtu
    if not isinstance(got, Value):
        return about.unknown(got, wanted)
    if got.value in fits:
        return about.ok(f"{got.value} (interface MTU {mtu.value})", wanted)
    return about.fail(str(got.value), wanted, "the RDMA device does not follow its interface's MTU",
                      remedy="set the interface down and up while nothing uses it, or reload the driver")


def judge_gid(want: NodeSpec, subject: Subject, fn: BoundFunction, port: RdmaPort) -> Finding:
    """The GID that NCCL's automatic choice needs: RoCE v2, IPv4-mapped, of this rail's address, on this interface."""
    about = About(Code.NO_ROCEV2_GID, subject, "rdma.gid", "")
    rail = want.fabric.rails.get(fn.want.rail)
    if rail is None:
        return about.skip("the spec gives this rail no subnet")
    wanted = f"RoCE v2 GID of an address in {rail.subnet}"
    address = ports.rail_address(fn, want)
    if isinstance(address, Unreadable):
        return about.unknown(address, wanted)
    if isinstance(address, Absent):
        if not isinstance(fn.netdev, Value):
            return about.unknown(Unreadable(Reason.BLOCKED, f"LINK_ABSENT: {address.what} is not on the node"), wanted)
        return about.fail("no such address", wanted, f"{address.what}: absent, so there is no GID for it",
                          remedy="give the interface its address in the rail's subnet, through its owner (netplan, NetworkManager ...)")
    wanted = f"RoCE v2 GID of {address.value} on {fn.interface}"
    if not isinstance(port.gids, Value):
        return about.unknown(port.gids, wanted)
    same = [g for g in port.gids.value if g.gid.ipv4 is not None and str(g.gid.ipv4) == address.value]
    for g in same:
        if g.kind == Value("RoCE v2") and g.netdev == Value(fn.interface):
            return about.ok(f"GID {g.index}: RoCE v2, {address.value}, {fn.interface}", wanted)
    blind = next((o for g in same for o in (g.kind, g.netdev) if isinstance(o, Unreadable)), None)
    if blind:
        return about.unknown(blind, wanted)
    shown = "; ".join(_gid_text(g) for g in same) or f"{len(port.gids.value)} GIDs, none of {address.value}"
    why = "the address has only RoCE v1 GIDs" if same and all(g.kind != Value("RoCE v2") for g in same) else (
        "the GID belongs to another interface" if same else "the RDMA device has no GID of the rail's address")
    return about.fail(shown, wanted, why, remedy="check that the RDMA device belongs to this interface and that RoCE v2 is on "
                                                 "(`show_gids`); setting the address again makes the driver add its GIDs")


def _gid_text(g: GidEntry) -> str:
    kind = g.kind.value if isinstance(g.kind, Value) else "?"
    return f"GID {g.index}: {kind} on {g.netdev.value if isinstance(g.netdev, Value) else '?'}"


def judge_override(want: NodeSpec, subject: Subject, port: RdmaPort) -> Finding:
    about = About(Code.RDMA_TCLASS_OVERRIDE, subject, "rdma.traffic_class", "")
    tc = want.fabric.traffic_class
    if tc is None:
        return about.skip("the spec gives no traffic_class")
    wanted = f"none, or one with DSCP {Dscp.from_tc(tc)}"
    got = port.override
    if isinstance(got, Unreadable):
        return about.unknown(got, wanted)
    if isinstance(got, Absent):
        return about.ok(f"no {got.what}", wanted)
    text = f"{got.value} (DSCP {Dscp.from_tc(got.value)})"
    if Dscp.from_tc(got.value) == Dscp.from_tc(tc):
        return about.ok(text, wanted)
    return about.fail(text, wanted, "the driver gives this class to every queue pair: NCCL_IB_TC has no effect",
                      remedy=f"as root: echo {tc} > /sys/class/infiniband/{port.name}/tc/1/traffic_class, and mend what sets it at boot")
