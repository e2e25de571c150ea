"""The variables that a node must have: derived ones from the names that really are on it, and the spec's own.

NCCL_IB_GID_INDEX is never among them: NCCL since 2.21 finds the right entry by itself, and the right one differs from host to host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictool import ports
from fabrictool.env.quoting import unspeakable
from fabrictool.env.targets import Target
from fabrictool.model import Code, Observed, Reason, Unreadable, Value
from fabrictool.ports import Netdev, Ports
from fabrictool.spec import NodeSpec
from fabrictool.spec.schema import HcaMatch

DERIVED = ("GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_TC", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES")
GID_INDEX = "NCCL_IB_GID_INDEX"
PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")
PLACEHOLDERS = ("bootstrap.address", "bootstrap.interface", "node")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in `env.set` that cannot be written. `name` is the variable."""

    code: Code
    name: str
    got: str
    want: str
    why: str


@dataclass(frozen=True, slots=True)
class Desired:
    """`variables` sorted by name. `blocked`: why some value is not known on this node; then nothing may be written."""

    variables: Mapping[str, str]
    blocked: Unreadable | None = None
    faults: tuple[Fault, ...] = ()


def desired(want: NodeSpec, got: Ports) -> Desired:
    """Pure: the same spec and the same reading give the same variables in the same order."""
    values: dict[str, str] = {}
    missing: list[Unreadable] = []
    for name, seen in (*_of_functions(want, got), *_of_bootstrap(want, got)):
        if isinstance(seen, Value):
            values[name] = seen.value
        else:
            missing.append(_blocked(name, seen))
    faults: list[Fault] = []
    for name, raw in want.env.set.items():
        if name == GID_INDEX:
            faults.append(Fault(Code.GID_PINNED, name, str(raw), "not set", "the right index differs from node to node and may move; "
                                "NCCL since 2.21 finds it"))
        elif name in DERIVED:
            faults.append(Fault(Code.ENV_LINT, name, str(raw), "left out", "it is derived from the spec's functions and bootstrap"))
        else:
            filled = _fill(name, str(raw), want, got)
            if isinstance(filled, Value):
                values[name] = filled.value
            elif isinstance(filled, Fault):
                faults.append(filled)
            else:
                missing.append(filled)
    return Desired({n: values[n] for n in sorted(values)}, missing[0] if missing else None, tuple(faults))


def _blocked(name: str, seen: object) -> Unreadable:
    if isinstance(seen, Unreadable):
        return Unreadable(seen.reason, f"{name} needs it: {seen.why}")
    return Unreadable(Reason.BLOCKED, f"{name} needs {getattr(seen, 'what', '')}, which is not on this node")


def _of_functions(want: NodeSpec, got: Ports) -> Iterator[tuple[str, Observed[str]]]:
    """NCCL_IB_HCA: one `=` in front makes the whole list exact; without it each name is a prefix."""
    bound = ports.bind(want, got)
    if not bound:
        return
    names: list[str] = []
    for fn in bound:
        if not isinstance(fn.rdma, Value):
            yield "NCCL_IB_HCA", fn.rdma
            return
        names.append(fn.rdma.value.name)
    names = list(dict.fromkeys(names))
    exact = "=" if want.env.hca_match is HcaMatch.EXACT else ""
    yield "NCCL_IB_HCA", Value(exact + ",".join(names))
    yield "UCX_NET_DEVICES", Value(",".join(f"{n}:1" for n in names))
    if want.fabric.traffic_class is not None:
        yield "NCCL_IB_TC", Value(str(want.fabric.traffic_class))


def _of_bootstrap(want: NodeSpec, got: Ports) -> Iterator[tuple[str, Observed[str]]]:
    """Gloo and TensorPipe take plain exact names; NCCL takes a prefix unless `=` stands in front."""
    if want.bootstrap is None:
        return
    device: Observed[Netdev] = ports.bootstrap(want, got)
    if not isinstance(device, Value):
        yield "NCCL_SOCKET_IFNAME", device
        return
    yield "NCCL_SOCKET_IFNAME", Value(f"={device.value.name}")
    yield "GLOO_SOCKET_IFNAME", Value(device.value.name)
    yield "TP_SOCKET_IFNAME", Value(device.value.name)


def _fill(name: str, raw: str, want: NodeSpec, got: Ports) -> Value[str] | Unreadable | Fault:
    """`raw` with its placeholders filled in."""
    filled: dict[str, str] = {}
    for word in PLACEHOLDER.findall(raw):
        if word not in PLACEHOLDERS:
            return Fault(Code.ENV_LINT, name, raw, "{" + "}, {".join(PLACEHOLDERS) + "}", f"{{{word}}} is no placeholder")
        if word == "node":
            filled[word] = want.name
            continue
        if want.bootstrap is None:
            return Fault(Code.ENV_LINT, name, raw, "bootstrap: INTERFACE in the spec", f"{{{word}}} needs it")
        if word == "bootstrap.address":
            seen = ports.bootstrap_address(want, got)
        else:
            device = ports.bootstrap(want, got)
            seen = Value(device.value.name) if isinstance(device, Value) else device
        if not isinstance(seen, Value):
            return _blocked(name, seen)
        filled[word] = seen.value
    return Value(PLACEHOLDER.sub(lambda m: filled[m[1]], raw))


def unwritable(target: Target, values: Mapping[str, str]) -> Fault | None:
    """The first value that this file cannot hold."""
    for name, value in values.items():
        why = unspeakable(target.style, name, value) if target.takes(name) else ""
        if why:
            return Fault(Code.ENV_LINT, name, repr(value)[:80], "plain text", why)
    return None
