"""The names room's judge.

/etc/hosts is one file, so it is set by one step: the finding `names.hosts` carries it, complete, with all names that can be set now.
What each name resolves to has a finding of its own; it is WARN while `names.hosts` repairs it and FAIL where nothing can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.model import Absent, Code, Finding, Observed, Reason, Status, Subject, SubjectKind, Unreadable, Value, WriteFile
from fabrictool.names import cloud, hosts, inside
from fabrictool.names.sections import HOSTS, Answer, Resolved, State
from fabrictool.room import About, Fleet
from fabrictool.snapshot.whole import pick, pinned
from fabrictool.spec import NodeSpec

ASPECTS = ("hosts", "template")
EMPTY_HOSTS = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"  # what every distribution ships


@dataclass(frozen=True, slots=True)
class Wrong:
    """A name that resolves to something else than it should."""

    about: About
    name: str
    got: str
    address: str
    why: str
    remedy: str = ""

    @property
    def writable(self) -> bool:
        return hosts.HOST_NAME.fullmatch(self.name) is not None and not self.remedy


def judge(want: NodeSpec, got: State, fleet: Fleet) -> Iterator[Finding]:
    node = Subject(SubjectKind.NODE, (want.name,))
    address = ports.bootstrap_address(want, got.ports) if want.bootstrap else None
    if isinstance(got.resolved, Unreadable):
        yield About(Code.NAME_LOOPBACK, node, "names.self", "hosts").unknown(got.resolved, "the bootstrap address")
        yield from _peers_unknown(want, got.resolved)
    else:
        wrong: list[Wrong] = []
        for seen in (*_own(node, want, got.resolved, address), *_peers(want, got.resolved, fleet)):
            if isinstance(seen, Wrong):
                wrong.append(seen)
            else:
                yield seen
        yield from _hosts(node, want, got, tuple(wrong))
        yield from _mdns(node, want, got.resolved, got)
        yield from _hostname(node, got.resolved, got)
    yield from cloud.judge(node, want, got)
    yield from inside.judge(node, want, got, address)


def mismatch(answer: Answer, address: str) -> str:
    """Why this is not exactly `address`; "" if it is. Addresses of the other family do not matter, loopback ones do."""
    need = hosts.ip(address)
    family = [a for a in answer.addresses if (have := hosts.ip(a)) is not None and need is not None and have.version == need.version]
    if any(hosts.loopback(a) for a in answer.addresses):
        return "loopback leads every other node to itself"
    if not family:
        return "other nodes cannot be reached by this name" if answer.addresses else "the name is not known here"
    if not all(hosts.same(a, address) for a in family):
        return "it is another address"
    return ""


def _own(node: Subject, want: NodeSpec, resolved: Resolved, address: Observed[str] | None) -> Iterator[Finding | Wrong]:
    """The running host name, and the spec's name of the node where it is another one."""
    names = [resolved.own] + [want.name] * (want.name != resolved.own and hosts.ip(want.name) is None)
    for name in names:
        path = "names.self" if name == resolved.own else f"names.self.{name}"
        answer = resolved.of(name)
        about = About(Code.NAME_LOOPBACK, node, path, "hosts")
        wanted = f"{name} = the bootstrap address"
        if not isinstance(answer, Value):
            yield about.unknown(answer, wanted)
            continue
        looped = any(hosts.loopback(a) for a in answer.value.addresses)
        if address is None:
            text = f"{name} = {answer.value}"
            if looped:
                yield about.fail(text, "not a loopback address", "Gloo and others advertise it to the other nodes",
                                 remedy="give the spec a `bootstrap` interface, then `fabrictool apply` sets the name")
            else:
                yield about.ok(text, "not a loopback address")
        elif not isinstance(address, Value):
            yield about.unknown(_blocked(address), wanted)
        else:
            yield _compared(about, name, answer.value, address.value, looped)


def _blocked(seen: Unreadable | Absent) -> Unreadable:
    if isinstance(seen, Unreadable):
        return Unreadable(seen.reason, f"bootstrap address: {seen.why}")
    return Unreadable(Reason.BLOCKED, f"bootstrap address: {seen.what}: not on this node")


def _compared(about: About, name: str, answer: Answer, address: str, looped: bool, why: str = "") -> Finding | Wrong:
    why_not = mismatch(answer, address)
    if not why_not:
        return about.ok(f"{name} = {address}")
    code = Code.NAME_LOOPBACK if looped else Code.NAME_DIFFERS
    if looped and not why:
        why = "Gloo and others advertise the address of the host's own name: "
    return Wrong(About(code, about.subject, about.path, about.aspect), name, f"{name} = {answer}", address, why + why_not)


def _pair(want: NodeSpec, peer: str) -> Subject:
    return Subject(SubjectKind.PAIR, (want.name,), peer=peer)


def _peers_unknown(want: NodeSpec, seen: Unreadable) -> Iterator[Finding]:
    for peer in want.nodes:
        if peer != want.name:
            yield About(Code.NAME_DIFFERS, _pair(want, peer), "names.peers", "hosts").unknown(seen, f"{peer} = its bootstrap address")


def _peers(want: NodeSpec, resolved: Resolved, fleet: Fleet) -> Iterator[Finding | Wrong]:
    """Every other node's name, against the address that node has itself."""
    for peer in want.nodes:
        about = About(Code.NAME_DIFFERS, _pair(want, peer), "names.peers", "hosts")
        if peer == want.name:
            continue
        if hosts.ip(peer) is not None:
            yield about.skip(f"{peer} is an address, not a name")
            continue
        if want.bootstrap is None:
            yield about.skip("the spec names no bootstrap interface")
            continue
        if peer in fleet.left_out and not isinstance(fleet.addresses.get(peer), Value):
            yield about.skip(f"{peer} is not among the selected nodes: its address is not known")
            continue
        address: Observed[str] = fleet.addresses.get(peer, Unreadable(Reason.NOT_COLLECTED, "the node was not read"))
        answer = resolved.of(peer)
        if not isinstance(address, Value):
            why = address.why if isinstance(address, Unreadable) else f"{address.what}: not there"
            reason = address.reason if isinstance(address, Unreadable) else Reason.BLOCKED
            yield about.unknown(Unreadable(reason, f"bootstrap address of {peer}: {why}"), f"{peer} = its bootstrap address")
        elif not isinstance(answer, Value):
            yield about.unknown(answer, f"{peer} = {address.value}")
        elif peer.lower() == resolved.own.lower():
            yield Wrong(about, peer, f"{peer} = {answer.value}", address.value, "this node calls itself by another node's name",
                        f"name this node {want.name}: hostnamectl set-hostname {want.name}")
        else:
            # The code of a loopback answer is the same: the node's own name is what NAME_LOOPBACK is about.
            yield _compared(about, peer, answer.value, address.value, looped=False, why=f"on {want.name}: ")


def _hosts(node: Subject, want: NodeSpec, got: State, wrong: tuple[Wrong, ...]) -> Iterator[Finding]:
    """The one step, then what each wrong name resolves to."""
    code = Code.NAME_LOOPBACK if any(w.about.code is Code.NAME_LOOPBACK for w in wrong) else Code.NAME_DIFFERS
    about = About(code, node, "names.hosts", "hosts")
    fix = {w.name: w.address for w in wrong if w.writable}
    file = pick(got.files, HOSTS)
    fixed = pinned(file)
    repaired = False
    if isinstance(file, Unreadable):
        yield about.unknown(file, f"{HOSTS} readable")
    elif not fix:
        yield about.ok(f"{HOSTS}: nothing to set for what was compared")
    else:
        now = file.value.text if isinstance(file, Value) else ""
        need = hosts.edited(now or EMPTY_HOSTS, fix)
        repaired = need != now
        if repaired:
            before, mode = (file.value.sha256, file.value.mode) if isinstance(file, Value) else ("", None)
            step = WriteFile(HOSTS, need, before, 0o644 if mode is None else mode)
            yield about.fail("; ".join(w.got for w in wrong if w.writable), "; ".join(f"{n} = {a}" for n, a in fix.items()),
                             f"{HOSTS} does not say so{'' if fixed else '; all other lines of it are kept'}",
                             steps=() if fixed else (step,), remedy=fixed)
        else:
            yield about.ok(f"{HOSTS} says so already")
    for w in wrong:
        if w.writable and repaired and fixed:
            yield w.about.fail(w.got, f"{w.name} = {w.address}", w.why, remedy=fixed)
        elif w.writable and repaired:
            yield w.about.warn(w.got, f"{w.name} = {w.address}", w.why, remedy="`fabrictool apply` sets it (names.hosts)")
        else:
            yield w.about.fail(w.got, f"{w.name} = {w.address}", w.why, remedy=w.remedy or _why_not_repaired(w, got))


def _why_not_repaired(w: Wrong, got: State) -> str:
    if not w.writable:
        return f"{w.name!r} cannot stand in {HOSTS}: name the node otherwise in the spec"
    return (f"{HOSTS} says {w.address} already, so something else answers first: put `files` first in the hosts line of "
            f"/etc/nsswitch.conf ({_order(got) or 'unreadable'}), and look for caches (nscd, sssd)")


def _order(got: State) -> str:
    file = pick(got.files, "/etc/nsswitch.conf")
    if not isinstance(file, Value):
        return ""
    for line in file.value.text.split("\n"):
        head, colon, rest = line.partition("#")[0].partition(":")
        if colon and head.strip() == "hosts":
            return " ".join(rest.split())
    return ""


def _mdns(node: Subject, want: NodeSpec, resolved: Resolved, got: State) -> Iterator[Finding]:
    """Multicast DNS answers for whoever speaks first, and `.local` names move with it."""
    about = About(Code.NAME_MDNS, node, "names.mdns", "resolver")
    remedy = "use names without .local, and put `files` first in the hosts line of /etc/nsswitch.conf"
    found = [f"{n} answers as {c}" for n, a in resolved.answers.items() if isinstance(a, Value)
             for c in a.value.canonical if c.rstrip(".").lower().endswith(".local")]
    found += [f"the spec calls a node {n}" for n in want.nodes if n.lower().endswith(".local")]
    order = _order(got).split()
    first = next((i for i, w in enumerate(order) if w.startswith("mdns")), None)
    if first is not None and "files" not in order[:first]:
        found.append(f"nsswitch asks {order[first]} before files")
    if found:
        yield about.warn("; ".join(found)[:400], "no .local answers", "multicast DNS may give another address tomorrow", remedy=remedy)
    elif isinstance(nsswitch := pick(got.files, "/etc/nsswitch.conf"), Unreadable):
        yield about.unknown(nsswitch, "no .local answers")
    else:
        yield about.ok("no .local answers")


def _hostname(node: Subject, resolved: Resolved, got: State) -> Iterator[Finding]:
    """The running host name and the one of the next boot."""
    about = About(Code.NAME_DIFFERS, node, "names.hostname", "resolver")
    want = f"{resolved.own} also after a reboot"
    file = pick(got.files, "/etc/hostname")
    if isinstance(file, Absent):
        yield Finding(about.code, node, about.path, about.aspect, "", "", "no /etc/hostname here", Status.SKIP)
    elif isinstance(file, Unreadable):
        yield about.unknown(file, want)
    else:
        lines = (ln.strip() for ln in file.value.text.split("\n"))
        name = next((ln for ln in lines if ln and not ln.startswith("#")), "")
        if name in ("", resolved.own):
            yield about.ok(name or "empty", want)
        else:
            yield about.warn(f"/etc/hostname says {name}", want, f"the node is called {resolved.own} now",
                             remedy=f"hostnamectl set-hostname {want.partition(' ')[0]}")
