"""What the interface would have after a reboot, judged from the files that its owner reads, never from what runs now."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.link.model import Claim, Link, Owner
from fabrictool.link.netplan import Definition, dropin_path, proposal
from fabrictool.link.owners import claims, link_file_mtu
from fabrictool.link.running import blocked
from fabrictool.model import Absent, Code, Finding, Observed, Reason, Risk, Run, Status, Step, Unreadable, Value, WriteFile
from fabrictool.ports import BoundFunction, Netdev
from fabrictool.room import About
from fabrictool.snapshot.whole import pinned
from fabrictool.spec import NodeSpec

ASPECT = "persisted"
_MODE = 0o600  # netplan refuses, or warns about, files that others can read

_RECIPES = {
    Owner.NETPLAN_NETWORKD: "in /etc/netplan, under the definition of {n}: `mtu: {mtu}` with `match: {{macaddress: \"{mac}\"}}` and "
                            "`set-name: {n}`; then `netplan generate`",
    Owner.NETPLAN_NM: "in /etc/netplan, under the definition of {n}: `mtu: {mtu}`; then `netplan generate`",
    Owner.NETWORKMANAGER: "nmcli connection modify UUID 802-3-ethernet.mtu {mtu}, on a profile that is bound to {n} alone",
    Owner.NETWORKD: "in {where}: [Link] MTUBytes={mtu}; then `networkctl reload`",
    Owner.IFUPDOWN: "in {where}, in the stanza `iface {n}`: a line `mtu {mtu}`",
    Owner.IFCFG: "in {where}: a line MTU={mtu}",
    Owner.WICKED: "in {where}: a line MTU='{mtu}'",
}


def recipe(c: Claim, n: Netdev, mtu: int) -> str:
    """The exact lines for a person to write."""
    return _RECIPES[c.owner].format(n=n.name, mtu=mtu, mac=n.permanent_mac or n.mac, where=c.where)


def _plan(c: Claim, n: Netdev, mtu: int, got: Link) -> Observed[tuple[Step, ...]]:
    """The steps that make the owner keep the MTU; Unreadable with the reason when fabrictool cannot write it for this owner."""
    if n.kind in ("bond", "vlan"):
        return Unreadable(Reason.BLOCKED, f"fabrictool does not write the MTU of a {n.kind}")
    if c.owner in (Owner.NETPLAN_NETWORKD, Owner.NETPLAN_NM):
        return _netplan_steps(c, n, mtu, got)
    if c.owner is not Owner.NETWORKMANAGER:
        return Unreadable(Reason.BLOCKED, f"fabrictool does not write the files of {c.owner}")
    if not c.ident or not c.exclusive:
        return Unreadable(Reason.BLOCKED, "the profile is not bound to this interface alone (by name or MAC)")
    field = ("nmcli", "connection", "modify", c.ident, "802-3-ethernet.mtu")
    modify, back = (*field, str(mtu)), (*field, str(c.mtu or 0))
    again = ("nmcli", "device", "reapply", n.name)
    if not c.active:
        return Value((Run(modify, undo=back),))
    # Steps are undone last one first: then, too, the profile has to be changed before it is applied again. Applying the old profile
    # may set an MTU that did not run: what runs now is put back after it.
    undo = ("sh", "-c", 'nmcli device reapply "$1"; ip link set dev "$1" mtu "$2"', "sh", n.name, str(n.mtu.value)) \
        if isinstance(n.mtu, Value) else again
    return Value((Run(modify, undo=undo), Run(again, undo=back)))


def _netplan_steps(c: Claim, n: Netdev, mtu: int, got: Link) -> Observed[tuple[Step, ...]]:
    if isinstance(got.netplan, Unreadable):
        return got.netplan
    if isinstance(got.ports.netdevs, Unreadable):
        return got.ports.netdevs
    d = _definition(c, got)
    text = proposal(got.netplan, d, n, mtu, got.ports.netdevs) if d else Absent(f"netplan id {c.ident}")
    if not isinstance(text, Value):
        return text
    path = dropin_path(n)
    old = got.netplan.own.get(path)
    if old is not None and (fixed := pinned(Value(old))):
        return Unreadable(Reason.BLOCKED, fixed)
    generate = ("netplan", "generate")
    return Value((WriteFile(path, text.value, old.sha256 if old else "", _MODE), Run(generate, undo=generate)))


def _definition(c: Claim, got: Link) -> Definition | None:
    if isinstance(got.netplan, Unreadable):
        return None
    return next((d for d in got.netplan.definitions if d.ident == c.ident and d.kind == "ethernets"), None)


def _mtu(about: About, c: Claim, n: Netdev, mtu: int, got: Link) -> Finding:
    kept: Observed[int] = Value(c.mtu) if c.mtu is not None else link_file_mtu(n, got)
    if isinstance(kept, Unreadable):
        kept = Absent(kept.why)  # a .link file that may not match proves nothing: the owner's own file has to say it
    said = f"{kept.value}" if isinstance(kept, Value) else "not set"
    own = None if isinstance(got.netplan, Unreadable) else got.netplan.own.get(dropin_path(n))
    loose = own is not None and own.mode is not None and own.mode & 0o077 != 0
    if kept == Value(mtu) and c.reliable and not loose:
        return about.ok(f"{said} ({c.owner})", str(mtu))
    why = f"kept by {c}"
    if kept == Value(mtu):
        why += ": others can read the file" if loose else ": matched by name only, which does not hold while udev renames"
    steps = _plan(c, n, mtu, got)
    if isinstance(steps, Value):
        # `device reapply` sets the running MTU too: that flaps, unless it is right already.
        flaps = c.owner is Owner.NETWORKMANAGER and c.active and n.mtu != Value(mtu)
        return about.fail(f"{said} ({c.owner})", str(mtu), why, steps=steps.value, risk=Risk.FLAP if flaps else Risk.NONE)
    reason = steps.why if isinstance(steps, Unreadable) else steps.what
    return About(Code.LINK_OWNER_UNSUPPORTED, about.subject, about.path, about.aspect).fail(
        f"{said} ({c.owner})", str(mtu), f"{why}; {reason}", remedy=recipe(c, n, mtu))


def judge_persisted(fn: BoundFunction, got: Link, spec: NodeSpec) -> Iterator[Finding]:
    subject = fn.subject(spec)
    about = About(Code.LINK_MTU_PERSISTED, subject, "link.mtu_persisted", ASPECT)
    owner = About(Code.LINK_TWO_OWNERS, subject, "link.owner", "")
    mtu = spec.fabric.mtu
    wanted = str(mtu or "one owner")
    if mtu is None:
        yield about.skip("the spec gives no fabric.mtu")
    gone = blocked(fn)
    if gone is not None or not isinstance(fn.netdev, Value):
        yield about.unknown(gone or Unreadable(Reason.BLOCKED, "no interface"), wanted)
        return
    n = fn.netdev.value
    found = claims(n, got)
    if isinstance(found, Unreadable):
        yield about.unknown(found, wanted)
        return
    if len(found) > 1:
        yield owner.fail("; ".join(map(str, found)), "one owner", f"{len(found)} configurations claim {n.name}: the last to act wins",
                         remedy="take the interface out of all but one of them")
        if mtu is not None:
            yield about.unknown(Unreadable(Reason.BLOCKED, "LINK_TWO_OWNERS: which of them wins is not known"), wanted)
        return
    if not found:
        yield from _unowned(fn, n, mtu, about, got, spec)
        return
    yield owner.ok(str(found[0]), "one owner")
    if mtu is not None:
        yield _mtu(about, found[0], n, mtu, got)
    dhcp = About(Code.LINK_DHCP_PROFILE, subject, "link.dhcp", "")
    if found[0].dhcp:
        yield dhcp.warn(f"DHCP ({found[0]})", "a static address",
                        "an automatic profile on a fabric port waits for DHCP, and may change address or MTU",
                        remedy="give the interface its static address in the owner's configuration")
    else:
        yield dhcp.ok("no DHCP for IPv4", "a static address")


def _unowned(fn: BoundFunction, n: Netdev, mtu: int | None, about: About, got: Link, spec: NodeSpec) -> Iterator[Finding]:
    """Nothing that fabrictool knows sets it up: a script may. So this warns; only a .link file can still keep the MTU."""
    master = n.master
    lines = f"network: {{version: 2, ethernets: {{{n.name}: {{match: {{macaddress: \"{n.permanent_mac or n.mac}\"}}, " \
            f"set-name: {n.name}, mtu: {mtu or 'MTU'}, addresses: [ADDRESS/LENGTH]}}}}}}"
    remedy = f"name it in the configuration of one owner; for netplan: {lines}"
    yield About(Code.LINK_NO_OWNER, fn.subject(spec), "link.owner", "").warn(
        "none", "one owner", f"no configuration sets {n.name} up after a reboot" + (f" (member of {master})" if master else ""),
        remedy=remedy)
    if mtu is None:
        return
    kept = link_file_mtu(n, got)
    if kept == Value(mtu):
        yield about.ok(f"{mtu} (a .link file)", str(mtu))
    else:
        yield about.fail("not set", str(mtu), "nothing keeps the MTU: see LINK_NO_OWNER", status=Status.WARN, remedy=remedy)
