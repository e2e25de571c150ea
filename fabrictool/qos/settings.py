"""The comparisons of one interface, aspect by aspect, in the order in which they are set. Facts: mlx5's en_dcbnl."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.model import Absent, Code, Finding, Risk, Run, Step, Unreadable, Value
from fabrictool.qos.model import DscpMap, Pause
from fabrictool.qos.target import Target
from fabrictool.values import Priorities


def dcbx(t: Target) -> Iterator[Finding]:
    about, want = t.about(Code.QOS_FW_DCBX, "dcbx"), "OS controlled"
    seen = t.nic.os_controlled
    if stuck := t.unsettled(about, seen, want):
        yield stuck
    elif seen.value == Value(True):
        yield about.ok(want + seen.note, want)
    else:
        yield t.differs(about, "firmware controlled" + seen.note, want,
                        "the firmware may take over what the switch advertises at any LLDP exchange",
                        (t.call("-d", "os", undo=("-d", "fw")),))


def trust(t: Target) -> Iterator[Finding]:
    about, want = t.about(Code.QOS_TRUST, "trust"), t.qos.trust
    seen = t.nic.trust
    got = seen.value
    if stuck := t.unsettled(about, seen, want):
        yield stuck
    elif isinstance(got, Value) and got.value == want:
        yield about.ok(want + seen.note, want)
    elif isinstance(got, Value):
        why = ("the DSCP of packets is ignored: RoCE without a VLAN tag goes to the priority of untagged packets" if want == "dscp"
               else "the priority follows the DSCP instead of the VLAN tag")
        yield t.differs(about, got.value + seen.note, want, why, (t.call("--trust", want, undo=_untrust(t)),))


def _untrust(t: Target) -> tuple[str, ...]:
    """Back to the old trust. `--trust dscp` would write the default map, so an old map is put back entry by entry."""
    if t.qos.trust == "dscp":
        return ("--trust", "pcp")
    old = t.nic.dscp_map.value
    entries = old.value.entries if isinstance(old, Value) else ()
    if not entries or (len(entries) == 64 and all(p == d >> 3 for d, p in entries)):
        return ("--trust", "dscp")
    return tuple(w for d, p in entries for w in ("--dscp2prio", f"set,{d},{p}"))


def dscp_map(t: Target) -> Iterator[Finding]:
    """Also where trust already says dscp: `--trust dscp` repairs no map."""
    about = t.about(Code.QOS_DSCP_MAP, "map")
    if t.qos.trust != "dscp" or not t.qos.dscp_to_priority:
        yield about.skip("the spec maps no DSCP" if t.qos.trust == "dscp" else "the spec does not trust the DSCP")
        return
    wanted = sorted(t.qos.dscp_to_priority.items())
    text = ", ".join(f"{d} -> {p}" for d, p in wanted)
    seen = t.nic.dscp_map
    if stuck := t.unsettled(about, seen, text):
        yield stuck
        return
    got = seen.value
    for dscp, priority in wanted:
        one = t.about(Code.QOS_DSCP_MAP, "map", f"map.{dscp}")
        now = got.value.priorities(dscp) if isinstance(got, Value) else ()
        want = f"DSCP {dscp} -> priority {priority}"
        if now == (priority,):
            yield one.ok(want + seen.note, want)
            continue
        steps = _remap(t, dscp, priority, now)
        if isinstance(got, Absent):
            yield t.differs(one, "no DSCP entries" + seen.note, want,
                            "the map exists only while trust is dscp; needed unless setting trust brings it", steps)
        else:
            shown = f"DSCP {dscp} -> priority {' and '.join(map(str, now))}" if now else "no entry"
            why = "the traffic class of the fabric lands on another priority" if priority not in now else "two entries for one DSCP"
            yield t.differs(one, shown + seen.note, want, why, steps)
    if isinstance(got, Value):
        yield _strangers(t, got.value)


def _remap(t: Target, dscp: int, priority: int, now: tuple[int, ...]) -> tuple[Step, ...]:
    """mlx5 replaces an entry that is set anew. Where the wanted entry stands beside others (other drivers), those go."""
    if priority not in now:
        undo = ("--dscp2prio", f"set,{dscp},{now[0]}" if now else f"del,{dscp},{priority}")
        return (t.call("--dscp2prio", f"set,{dscp},{priority}", undo=undo),)
    return tuple(t.call("--dscp2prio", f"del,{dscp},{p}", undo=("--dscp2prio", f"set,{dscp},{p}")) for p in now if p != priority)


def _strangers(t: Target, got: DscpMap) -> Finding:
    """DSCPs that neither the spec nor the default puts on a lossless priority, and that are there all the same."""
    about = t.about(Code.QOS_DSCP_MAP, "map", "map.others")
    extra = sorted({d for d, p in got.entries if p in t.qos.pfc and p != d >> 3 and d not in t.qos.dscp_to_priority})
    if not extra:
        return about.ok("no other DSCP is mapped to a lossless priority beyond the default")
    return about.warn("DSCP " + ",".join(str(d) for d in extra), "only the spec's DSCPs and the default ones",
                      "that traffic shares the lossless priority and can pause the fabric",
                      remedy="`mlnx_qos -i IF --dscp2prio set,DSCP,PRIORITY` for each, or list them in dscp_to_priority")


def pause(t: Target) -> Iterator[Finding]:
    about = t.about(Code.QOS_GLOBAL_PAUSE, "pause")
    on = t.qos.global_pause
    want = str(Pause(on, on))
    got = t.nic.pause
    if not isinstance(got, Value):
        yield about.unknown(got, want)
        return
    if got.value == Pause(on, on):
        yield about.ok(want)
        return

    def argv(p: Pause) -> tuple[str, ...]:
        return ("ethtool", "-A", t.nic.name, "rx", "on" if p.rx else "off", "tx", "on" if p.tx else "off")

    why = "" if on else "global pause stops all priorities at once, and excludes PFC"
    yield t.differs(about, str(got.value), want, why, (Run(argv(Pause(on, on)), 20, argv(got.value)),))


def pfc(t: Target) -> Iterator[Finding]:
    want = Priorities.of(t.qos.pfc)
    about, seen = t.about(Code.QOS_PFC_MASK, "pfc"), t.nic.pfc
    got = seen.value
    if stuck := t.unsettled(about, seen, str(want)):
        yield stuck
    elif isinstance(got, Value) and got.value == want:
        yield about.ok(str(want) + seen.note, str(want))
    elif isinstance(got, Value):
        have = got.value
        wrong = bool(have.members and want.members and not have.members & want.members)
        code = Code.QOS_PFC_WRONG_PRIORITY if wrong else Code.QOS_PFC_MASK
        why = ("PFC protects another priority than the fabric's" if wrong else
               "the fabric's priority is not protected" if want.members - have.members else
               "priorities beside the fabric's can pause the link")
        yield t.differs(t.about(code, "pfc"), str(have) + seen.note, str(want), why,
                        (t.call("-f", want.mask, undo=("-f", have.mask), timeout_s=30),), Risk.FLAP)


def tc(t: Target) -> Iterator[Finding]:
    yield _shared_tc(t)
    yield _buffer(t)


def _shared_tc(t: Target) -> Finding:
    about, seen = t.about(Code.QOS_SHARED_TC, "tc", "tc.shared"), t.nic.prio_tc
    if not t.qos.pfc:
        return about.skip("the spec has no lossless priority")
    want = "lossless priorities in traffic classes of their own"
    if stuck := t.unsettled(about, seen, want):
        return stuck
    got = seen.value
    if not isinstance(got, Value):
        return about.unknown(got, want)
    tcs, lossless = got.value, sorted(set(t.qos.pfc))
    used = _used(t)
    clash = {p: [q for q in used if q not in lossless and tcs[q] == tcs[p]] for p in lossless}
    text = "priority -> class: " + " ".join(f"{p}:{c}" for p, c in enumerate(tcs)) + seen.note
    if not any(clash.values()):
        return about.ok(text, want)
    why = "; ".join(
        f"lossless priority {p} shares class {tcs[p]} with priority {','.join(map(str, qs))}" for p, qs in clash.items() if qs)
    apart = list(tcs)
    for p in (p for p, qs in clash.items() if qs):
        free = [c for c in (p, *range(8)) if c not in {apart[q] for q in range(8) if q != p}]
        apart[p] = free[0]  # eight classes, eight priorities, two of them share: one class is free
    step = t.call("-p", ",".join(map(str, apart)), undo=("-p", ",".join(map(str, tcs))))
    if t.nic.ets.value == Value(False):
        return t.differs(about, text, want, why, (step,))
    return about.fail(text, want, why, remedy="the classes are weighted (ETS): choose map and weights together, "
                                              f"for example `mlnx_qos -i {t.nic.name} -p {','.join(map(str, apart))}`")


def _used(t: Target) -> list[int]:
    """Priorities that traffic can take: 0 always (no tag, no IP); all eight unless a whole DSCP map says otherwise."""
    got = t.nic.dscp_map.value
    if isinstance(got, Value) and got.value.whole:
        return sorted({0} | {p for _, p in got.value.entries})
    return list(range(8))


def _buffer(t: Target) -> Finding:
    about = t.about(Code.QOS_BUFFER, "tc", "tc.buffer")
    if not t.qos.pfc:
        return about.skip("the spec has no lossless priority")
    want = "a receive buffer for every lossless priority"
    for seen in (t.nic.prio_buffer, t.nic.buffer_bytes):
        if stuck := t.unsettled(about, seen, want):
            return stuck
    buffers, sizes = t.nic.prio_buffer.value, t.nic.buffer_bytes.value
    if not isinstance(buffers, Value) or not isinstance(sizes, Value):
        return about.skip("the driver offers no view of its buffers")
    held = {p: sizes.value[buffers.value[p]] for p in sorted(set(t.qos.pfc))}
    text = ", ".join(f"priority {p}: buffer {buffers.value[p]}, {n} bytes" for p, n in held.items()) + t.nic.buffer_bytes.note
    if all(held.values()):
        return about.ok(text, want)
    return about.fail(text, want, "a lossless priority without a buffer drops what PFC should hold back",
                      remedy=f"give the port its automatic headroom back, for example `mlnx_qos -i {t.nic.name} --cable_len 5`, or set "
                             "--prio2buffer and --buffer_size together")


def ecn(t: Target) -> Iterator[Finding]:
    """Congestion control by priority, where the spec asks for it."""
    about = t.about(Code.QOS_ECN, "ecn")
    if t.qos.ecn is None or not t.qos.pfc:
        yield about.skip("the spec does not ask for ECN")
        return
    word = "on" if t.qos.ecn else "off"
    got = t.nic.ecn
    if not isinstance(got, Value):
        why = got.why if isinstance(got, Unreadable) else f"{got.what}: absent"
        yield about.unknown(got, word, f"{why}; on the kernel's own driver look at debugfs mlx5/BDF/cc_params")
        return
    ends = (("roce_np", "notification point", dict(got.value.notify)), ("roce_rp", "reaction point", dict(got.value.react)))
    for end, name, flags in ends:
        for priority in sorted(set(t.qos.pfc)):
            one = t.about(Code.QOS_ECN, "ecn", f"ecn.{end}.{priority}")
            now = flags.get(priority)
            if now is None:
                yield one.unknown(Absent(f"ecn/{end}/enable/{priority}"), word)
            elif now is t.qos.ecn:
                yield one.ok(f"{name}, priority {priority}: {word}", word)
            else:
                path = f"/sys/class/net/{t.nic.name}/ecn/{end}/enable/{priority}"
                yield t.differs(one, "on" if now else "off", word, f"{name}, priority {priority}: congestion control is not as wanted",
                                (Run(_poke(path, t.qos.ecn), 10, _poke(path, now)),))


def _poke(path: str, on: bool) -> tuple[str, ...]:
    """Writing a sysfs file in place: it cannot be renamed over."""
    return ("sh", "-c", 'printf "%s\\n" "$1" >"$2"', "sh", str(int(on)), path)
