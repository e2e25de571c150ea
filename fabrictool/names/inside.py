"""The consumers' containers: what their own name resolves to inside. A container copies /etc/hosts when it starts."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.model import Absent, Code, Finding, Observed, Reason, Subject, Unreadable, Value
from fabrictool.names import hosts
from fabrictool.names.sections import HOSTS, State
from fabrictool.room import About
from fabrictool.snapshot.consumers import Consumer, Inside
from fabrictool.spec import NodeSpec

ASPECT = "consumers"
WANT = "its own name is not a loopback address inside"
IFNAME = "GLOO_SOCKET_IFNAME"


def judge(node: Subject, want: NodeSpec, got: State, address: Observed[str] | None) -> Iterator[Finding]:
    patterns = [p for p in want.env.consumers if p.startswith("docker:")]
    if not patterns:
        yield About(Code.GLOO_LOOPBACK, node, "names.inside", ASPECT).skip("the spec names no containers")
    for pattern in patterns:
        about = About(Code.GLOO_LOOPBACK, node, f"names.inside.{pattern}", ASPECT)
        found: tuple[Consumer, ...] | Unreadable
        found = got.consumers if isinstance(got.consumers, Unreadable) else got.consumers.named(pattern)
        if isinstance(found, Unreadable):
            yield about.unknown(found, WANT)
        elif not found:
            yield about.ok("none is running", WANT)
        else:
            for consumer in found:
                yield _one(node, consumer, address)


def _one(node: Subject, consumer: Consumer, address: Observed[str] | None) -> Finding:
    about = About(Code.GLOO_LOOPBACK, node, f"names.inside.{consumer.label}", ASPECT)
    box = consumer.container
    lost = Unreadable(Reason.NOT_COLLECTED, f"{HOSTS} of {consumer.label}: not read")
    file: Observed[Inside] = box.files.get(HOSTS, lost) if box else lost
    if box is None or isinstance(file, Unreadable):
        return about.unknown(file if isinstance(file, Unreadable) else lost, WANT)
    if not box.hostname:
        return about.unknown(Unreadable(Reason.EMPTY, f"the host name of {consumer.label} is not known"), WANT)
    found = () if isinstance(file, Absent) else hosts.lookup(file.value.text, box.hostname)
    got = f"{box.hostname} = {', '.join(found) or f'not in its {HOSTS}'}"
    bound = [p.env.value[IFNAME] for p in consumer.ranks if isinstance(p.env, Value) and p.env.value.get(IFNAME)]
    calm = f"{IFNAME}={bound[0]} spares Gloo the name, other programs use it" if bound else ""
    again = f"repair {HOSTS} on the node, then start {box.name} anew: it copies the file when it starts"
    if any(hosts.loopback(a) for a in found):
        why = "Gloo binds and advertises it: other ranks connect to themselves and hang"
        return about.warn(got, WANT, calm, remedy=again) if calm else about.fail(got, WANT, why, remedy=again)
    if not found:
        why = calm or "unless DNS answers, Gloo falls back to 127.0.0.1"
        return about.ok(f"{got}; {calm}", WANT) if calm else about.warn(got, WANT, why, remedy=again)
    if isinstance(address, Value) and not all(hosts.same(a, address.value) for a in found):
        differs = About(Code.NAME_DIFFERS, node, about.path, ASPECT)
        why = calm or "other nodes cannot reach it there, unless the container's network is routed"
        return differs.warn(got, f"{box.hostname} = {address.value}", why, remedy="run it with --network host, or set " + IFNAME)
    return about.ok(got, WANT)
