"""What must hold between a node before and after apply. Each law is a function; it raises AssertionError with the case's seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fabrictool.model import Finding, Risk, Status, Subject
from fabrictool.ops.session import session
from tests.property.cases import Case
from tests.property.host import Host, apply, engine_undo, judged

Key = tuple[Subject, str]
WORST = (Status.SKIP, Status.PASS, Status.WARN, Status.UNKNOWN, Status.FAIL)
# Findings without steps that follow from one beside them which has steps: path -> the paths that may carry the step.
CONSEQUENCE: Mapping[str, tuple[str, ...]] = {
    "names.self": ("names.hosts",), "names.peers": ("names.hosts",),  # /etc/hosts is one file: one finding carries its step
    **{f"env.lint.{file}": (f"env.{aspect}",) for aspect, file in (
        ("nccl_conf", "/etc/nccl.conf"), ("docker_env", "/etc/fabrictool/nccl.env"))},  # the file is written anew
}
# The only files that apply may ever write or change on a node, and links that enabling makes.
MAY_WRITE = (r"/etc/netplan/90-fabrictool-{if}\.yaml", r"/etc/fabrictool/(qos\.sh|nccl\.env)", r"/etc/nccl\.conf", r"/etc/hosts",
             r"/etc/systemd/system/fabrictool-qos-{if}\.service", r"/etc/udev/rules\.d/90-fabrictool-qos-{if}\.rules",
             r"/etc/systemd/system/sys-subsystem-net-devices-{if}\.device\.wants/fabrictool-qos-{if}\.service",
             r"/etc/profile\.d/fabrictool\.sh", r"/etc/systemd/system/vllm\.service\.d/50-fabrictool\.conf",
             r"/etc/cloud/cloud\.cfg\.d/99-fabrictool-hosts\.cfg", r"/etc/NetworkManager/system-connections/fabric-\d\.nmconnection")


def key(f: Finding) -> Key:
    """A comparison, whatever it found: the code of an unreadable one tells why, not what."""
    return f.subject, f.path


def shown(findings: Iterable[Finding]) -> str:
    return "\n".join(f"  {f.status} {f.code} {f.path} {f.subject.place}: {f.got!r}, want {f.want!r}: {f.why} {[*f.steps]}"
                     for f in findings)


def blocked(found: Iterable[Finding]) -> set[tuple[str, str]]:
    """(room, aspect) of which something is not known about the node itself."""
    return {(f.room, f.aspect) for f in found if f.status is Status.UNKNOWN and not f.subject.peer}


def settable(found: Iterable[Finding]) -> list[Finding]:
    return [f for f in found if f.steps and f.status is Status.FAIL]


def nothing_settable_is_left(before: Iterable[Finding], after: Iterable[Finding]) -> None:
    """Except in aspects that were not known, where nothing may be written."""
    left = [f for f in settable(after) if (f.room, f.aspect) not in blocked(before)]
    assert not left, f"steps are left:\n{shown(left)}"


def what_was_readable_still_is(before: Iterable[Finding], after: Iterable[Finding]) -> None:
    old = {key(f) for f in before if f.status is Status.UNKNOWN}
    new = [f for f in after if f.status is Status.UNKNOWN and key(f) not in old]
    assert not new, f"unreadable now:\n{shown(new)}"


def bare(got: str) -> str:
    """Without the note of who read it: a reader's own words may change with what there is to print."""
    return got.partition(" (dcb alone")[0]


def follows(path: str, carriers: Iterable[str]) -> bool:
    """Whether what stands at `path` may be mended by steps of the findings at `carriers`."""
    return any((path == p or path.startswith(f"{p}.")) and any(c == w or c.startswith(f"{w}.") for c in carriers for w in of)
               for p, of in CONSEQUENCE.items())


def what_could_not_be_set_is_as_before(before: Iterable[Finding], after: Iterable[Finding]) -> None:
    """A finding without steps stays as it is, word for word; what was good stays good. What follows from something else that was set
    may be mended by it, never worsened."""
    now = {key(f): f for f in after}
    carriers = {f.path for f in settable(before) if (f.room, f.aspect) not in blocked(before)}
    for old in before:
        if old.steps or old.status not in (Status.FAIL, Status.WARN, Status.PASS):
            continue
        new = now.get(key(old))
        if follows(old.path, carriers):
            better = new is None or WORST.index(new.status) <= WORST.index(old.status)
            assert better, f"worse than before:\n{shown((old, *((new,) if new else ())))}"
            continue
        assert new is not None, f"not judged any more:\n{shown([old])}"
        same = (new.code, new.status, new.steps) == (old.code, old.status, ()) and (bare(new.got) == bare(old.got) or not old.bad)
        assert same, f"not as before:\n{shown((old, new))}"
    known = {key(f) for f in before}
    fresh = [f for f in after if f.bad and key(f) not in known and not follows(f.path, carriers)]
    assert not fresh, f"new:\n{shown(fresh)}"


def foreign_things_are_untouched(case: Case, old: Mapping[str, object], new: Mapping[str, object],
                                 files: Mapping[str, tuple[str, int]], flaps: Mapping[str, int]) -> None:
    """Registers, links and counters of interfaces that the spec does not name; and all files but those that are apply's. Functions
    of one cage may share its registers: then only a protected one must stay as it is."""
    mine = case.mine | (frozenset() if case.protected_twin else case.twins)
    for name in old:
        if not any(i in name for i in mine):
            assert new[name] == old[name], f"{name}: {old[name]} -> {new[name]}"
    for name, count in case.sim.flaps().items():
        assert count == flaps[name] or any(i in name for i in mine), f"{name} flapped"
    names = "|".join(map(re.escape, sorted(case.mine)))
    may = re.compile("|".join(p.replace("{if}", f"({names})") for p in MAY_WRITE))
    now = case.sim.root.everything()
    for path in files.keys() | now.keys():
        assert files.get(path) == now.get(path) or may.fullmatch(path), f"{path} changed"


def nothing_was_written_blindly(host: Host, before: Iterable[Finding]) -> None:
    wrong = set(host.order) & blocked(before)
    assert not wrong, f"written although something was not known: {wrong}"


def links_flapped_once(case: Case, before: Iterable[Finding], flaps: Mapping[str, int]) -> None:
    """A port's link goes down exactly once where its PFC was set, and never else: twins that share it are not set twice."""
    to_set = {f.subject.function for f in settable(before) if f.path == "qos.pfc" and (f.room, f.aspect) not in blocked(before)}
    for f in settable(before):
        assert f.path != "qos.pfc" or f.risk is Risk.FLAP
    for fn in case.sim.state.functions.values():
        group = {fn.interface} if not case.sim.state.twins_share else {
            o.interface for o in case.sim.state.functions.values() if (o.port, o.sys_image_guid) == (fn.port, fn.sys_image_guid)}
        want = int(bool(group & to_set))
        assert fn.flaps - flaps[fn.interface] == want, f"{fn.interface}: {fn.flaps - flaps[fn.interface]} flaps, not {want}"


def what_is_in_use_stays_up(case: Case, qps: Mapping[str, int], registers: Mapping[str, object], flaps: Mapping[str, int]) -> None:
    """No flap, and no other MTU, on a function with queue pairs up or with the SSH session on it; nor on one that shares its cage."""
    server = case.sim.ssh.split()[2]
    functions = case.sim.state.functions.values()
    for used in functions:
        if used.rdma in qps or any(a.split("/")[0] == server for a in case.sim.nics[used.interface].addresses):
            for f in functions:
                if (f.port, f.sys_image_guid) == (used.port, used.sys_image_guid):
                    assert f.flaps == flaps[f.interface], f"{f.interface} flapped in use"
                    assert case.sim.nics[f.interface].mtu == registers[f"mtu {f.interface}"], f"{f.interface}: MTU set in use"


def what_twins_share_is_set_once(case: Case) -> None:
    """After one function of a cage was set, its twin is looked at again before it is told the same."""
    if case.sim.state.twins_share:
        port = {f.interface: (f.port, f.sys_image_guid) for f in case.sim.state.functions.values()}
        told = [(port[s.argv[2]], s.argv[3:]) for s in case.sim.ran if s.argv[0] in ("mlnx_qos", "ethtool") and s.argv[2] in port]
        twice = {t for t in told if told.count(t) > 1}
        assert not twice, f"told both functions of a cage: {twice}"


def nothing_to_do_is_nothing_done(host: Host, managed: bool) -> None:
    """A second apply: one read of the node, no command."""
    sim = host.sim
    steps, reads, before = len(sim.ran), sim.reads, (sim.registers(), sim.root.everything(), sim.flaps())
    if managed:
        apply(host, managed)
    else:
        session(host).fresh = frozenset()  # type: ignore[arg-type]  # another process
        apply(host, managed)
    assert sim.ran[steps:] == []
    # A refusal is an operation of pyinfra's too: after it nothing is known to be fresh.
    assert sim.reads == reads + 1 or session(host).refused  # type: ignore[arg-type]
    assert (sim.registers(), sim.root.everything(), sim.flaps()) == before


def mtus_in(files: Mapping[str, tuple[str, int]]) -> dict[str, tuple[object, int]]:
    """The files, NetworkManager's profiles by their settings: NetworkManager writes them in its own way."""
    out: dict[str, tuple[object, int]] = {}
    for path, (text, mode) in files.items():
        profile = path.endswith(".nmconnection")
        out[path] = (sorted(ln for ln in text.split("\n") if "=" in ln), mode) if profile else (text, mode)
    return out


def undo_gives_it_back(host: Host, registers: Mapping[str, object], files: Mapping[str, tuple[str, int]],
                       before: tuple[Finding, ...]) -> None:
    """Everything undone, newest first: registers, links and files are as they were, and so is every judgement."""
    sim = host.sim
    why = engine_undo.undo(host, {"link", "qos", "env", "names"})
    now = sim.registers()
    assert now == registers, {k: (registers[k], v) for k, v in now.items() if v != registers[k]}
    old, new = mtus_in(files), mtus_in(sim.root.everything())
    assert new == old, {p for p in old.keys() | new.keys() if old.get(p) != new.get(p)}
    again = judged(host)
    assert [(f.id, f.status, f.got) for f in again] == [(f.id, f.status, f.got) for f in before]
    assert not why or sim.state.tools, why
