"""What each variable may say on this node (reference: the programs' own parsing; the texts name the effect). Pure.

A rule returns the problems of one value; none is the evidence that the value is good here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabrictool.model import Code, Status, Unreadable
from fabrictool.ports import Netdev

# Interfaces whose addresses other nodes cannot reach (NCCL skips only docker and lo by itself, virbr since 2.28).
NOT_ROUTED = ("lo", "docker", "veth", "br-", "cali", "flannel", "cni", "virbr", "tun", "tailscale", "wl", "kube-ipvs", "podman")


@dataclass(frozen=True, slots=True)
class Problem:
    """One rule broken. `unread`: the rule needs something that could not be read."""

    code: Code
    want: str
    why: str
    status: Status = Status.FAIL
    unread: Unreadable | None = None


@dataclass(frozen=True, slots=True)
class Here:
    """What the rules know of the node. `hcas`: the spec's RDMA devices as bound; `other`: the spec's other_rdma."""

    netdevs: Mapping[str, Netdev] | Unreadable
    rdma: tuple[str, ...] | Unreadable
    bootstrap: str = ""
    hcas: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    fabric: bool = False
    gpu: bool = False
    nodes: int = 1


def no_such(want: str, why: str) -> Problem:
    return Problem(Code.ENV_NO_SUCH_INTERFACE, want, why)


def lint(want: str, why: str, status: Status = Status.FAIL) -> Problem:
    return Problem(Code.ENV_LINT, want, why, status)


def unread(code: Code, seen: Unreadable) -> Problem:
    return Problem(code, "a name that is on this node", seen.why, Status.UNKNOWN, seen)


def _selected(value: str, names: tuple[str, ...]) -> tuple[bool, bool, dict[str, list[str]]]:
    """NCCL's list grammar `[^][=]name[:port],...`: whether it excludes, whether it is exact, and what each name takes of `names`."""
    exclude = value.startswith("^")
    rest = value[1:] if exclude else value
    exact = rest.startswith("=")
    rest = rest[1:] if exact else rest
    tokens = (t.split(":", 1)[0] for t in rest.split(",") if t)
    takes = {t: [n for n in names if (n == t if exact else n.startswith(t))] for t in tokens}
    return exclude, exact, takes


def socket_ifname(value: str, here: Here) -> Iterator[Problem]:
    if isinstance(here.netdevs, Unreadable):
        yield unread(Code.ENV_NO_SUCH_INTERFACE, here.netdevs)
        return
    exclude, exact, takes = _selected(value, tuple(here.netdevs))
    good = f"={here.bootstrap}" if here.bootstrap else "=INTERFACE"
    if not takes or len(value) < 2:
        yield no_such(good, "it names nothing" if not takes else "NCCL ignores a value of one character")
        return
    if exclude:
        out = {n for hit in takes.values() for n in hit}
        left = [n for n in here.netdevs if n not in out]
        stray = [n for n in left if n.startswith(NOT_ROUTED)]
        if stray:
            yield lint(good, f"this exclusion leaves interfaces that other nodes cannot reach: {', '.join(stray)}")
        elif here.bootstrap and here.bootstrap not in left:
            yield lint(good, f"this excludes the bootstrap interface {here.bootstrap}")
        return
    missing = [t for t, hit in takes.items() if not hit]
    if missing:
        yield no_such(good, f"no interface here {'is' if exact else 'begins with'} {', '.join(missing)}")
        return
    several = [f"{t} takes {', '.join(hit)}" for t, hit in takes.items() if len(hit) > 1]
    if several:
        yield lint(good, f"without = a name is a prefix: {'; '.join(several)}")
    chosen = [n for n in here.netdevs if any(n in hit for hit in takes.values())]  # kernel order, and the first is the bootstrap
    if here.bootstrap and chosen[0] != here.bootstrap:
        yield lint(good, f"NCCL's bootstrap takes the first interface in the kernel's order, {chosen[0]}, not {here.bootstrap}")
    yield from _usable(chosen[:1], here.netdevs, good)


def _usable(names: list[str], netdevs: Mapping[str, Netdev], good: str) -> Iterator[Problem]:
    for name in names:
        if not any(a.version == 4 for a in netdevs[name].addresses):
            yield lint(good, f"{name} has no IPv4 address", Status.WARN)
        if name.startswith(NOT_ROUTED):
            yield lint(good, f"other nodes cannot reach {name}")


def exact_ifname(value: str, here: Here) -> Iterator[Problem]:
    """Gloo and TensorPipe: a comma list of exact names, no operators."""
    good = here.bootstrap or "INTERFACE"
    if value.startswith(("^", "=")):
        yield no_such(good, f"operators are NCCL's: here {value[0]} is taken as part of the name, and no interface is called so")
    elif isinstance(here.netdevs, Unreadable):
        yield unread(Code.ENV_NO_SUCH_INTERFACE, here.netdevs)
    else:
        names = value.split(",")
        missing = [n or "(nothing)" for n in names if n not in here.netdevs]
        if missing:
            yield no_such(good, f"no interface here is called {', '.join(missing)}; a prefix is not enough")
        else:
            yield from _usable(names, here.netdevs, good)


def ib_hca(value: str, here: Here) -> Iterator[Problem]:
    if isinstance(here.rdma, Unreadable):
        yield unread(Code.ENV_NO_SUCH_INTERFACE, here.rdma)
        return
    exclude, exact, takes = _selected(value, here.rdma)
    good = "=" + ",".join(here.hcas) if here.hcas else "=DEVICE,..."
    if not takes:
        yield no_such(good, "it names nothing")
        return
    missing = [t for t, some in takes.items() if not some]
    if missing and not exclude:
        yield no_such(good, f"no RDMA device here {'is' if exact else 'begins with'} {', '.join(missing)}")
        return
    hit = {n for some in takes.values() for n in some}
    chosen = [n for n in here.rdma if (n in hit) != exclude]
    if not exact and not exclude:
        several = [f"{t} takes {', '.join(some)}" for t, some in takes.items() if len(some) > 1]
        if several:
            yield lint(good, f"without = a name is a prefix: {'; '.join(several)}")
    left_out = [n for n in here.hcas if n not in chosen]
    if left_out:
        yield lint(good, f"this leaves out the spec's {', '.join(left_out)}")
    foreign = [n for n in chosen if n in here.other]
    if foreign:
        yield lint(good, f"this takes {', '.join(foreign)}, which the spec keeps for others")


def ucx_devices(value: str, here: Here) -> Iterator[Problem]:
    if value == "all":
        return
    good = ",".join(f"{n}:1" for n in here.hcas) if here.hcas else "DEVICE:1,..."
    if isinstance(here.rdma, Unreadable):
        yield unread(Code.ENV_NO_SUCH_INTERFACE, here.rdma)
        return
    if isinstance(here.netdevs, Unreadable):
        yield unread(Code.ENV_NO_SUCH_INTERFACE, here.netdevs)
        return
    names = [t.strip().lstrip("^") for t in value.split(",") if t.strip()]
    rdma = [n for n in names if n.partition(":")[0] in here.rdma]
    sockets = [n for n in names if n in here.netdevs]
    missing = [n for n in names if n not in rdma and n not in sockets]
    if missing or not names:
        yield no_such(good, f"neither an RDMA device nor an interface here: {', '.join(missing) or '(nothing)'}")
    elif not rdma:
        yield lint(good, "interfaces only: UCX, and NIXL in the same environment, is limited to TCP", Status.WARN)
    elif bare := [n for n in rdma if ":" not in n]:
        yield lint(good, f"UCX names RDMA devices with their port: {', '.join(f'{n}:1' for n in bare)}", Status.WARN)
    elif sockets:
        yield lint(good, f"RDMA devices and interfaces mixed: {', '.join(sockets)} is there for TCP only", Status.WARN)


_RDMA_TLS = re.compile(r"rc|rc_\w+|dc|dc_\w+|ib|all")


def ucx_tls(value: str, here: Here) -> Iterator[Problem]:
    good = "rc,cuda_copy,cuda_ipc,sm,self"
    deny = value.startswith("^")
    names = [t for t in value.lstrip("^=").split(",") if t]
    rdma = [t for t in names if _RDMA_TLS.fullmatch(t)]
    if here.fabric and ((deny and any(t in ("rc", "ib", "all") for t in names)) or (not deny and not rdma)):
        yield lint(good, "no RDMA transport is left: transfers go over TCP or shared memory", Status.WARN)
    cuda = any(t in ("all", "cuda") or t.startswith("cuda_copy") for t in names)
    if here.gpu and ((deny and any(t in ("cuda", "cuda_copy") for t in names)) or (not deny and not cuda)):
        yield lint(good, "without cuda_copy GPU memory is not supported", Status.WARN)


# name -> (lowest, highest, highest that raises no question). RETRY_CNT has three bits, TIMEOUT five (4.096 us * 2^t) in the InfiniBand
# specification; a timeout above 22 is over 17 s a try and hides hangs. QPS: NCCL's own limit. TC: one byte.
RANGES: Mapping[str, tuple[int, int, int]] = {
    "NCCL_IB_RETRY_CNT": (0, 7, 7), "NCCL_IB_TIMEOUT": (0, 31, 22), "NCCL_IB_QPS_PER_CONNECTION": (1, 128, 128),
    "NCCL_IB_TC": (0, 255, 255), "NCCL_IB_SPLIT_DATA_ON_QPS": (0, 1, 1), "NCCL_CROSS_NIC": (0, 2, 2),
}


def in_range(name: str, value: str) -> Iterator[Problem]:
    low, high, calm = RANGES[name]
    if not re.fullmatch(r"[+-]?\d{1,40}|0[xX][0-9a-fA-F]{1,40}", value):
        yield lint(f"{low}..{high}", "it is no number, and NCCL then takes its default")
        return
    number = int(value, 0) if value.lower().startswith("0x") else int(value)
    if not low <= number <= high and not (number == -1 and name == "NCCL_IB_TC"):
        yield lint(f"{low}..{high}", f"{number} is out of range")
    elif number > calm:
        yield lint(f"at most {calm}", "a lost packet is retried for so long that a dead path looks like a hang", Status.WARN)


def address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def own_address(name: str, value: str, here: Here) -> Iterator[Problem]:
    """What this host advertises of itself."""
    ip = address(value)
    if value == "localhost" or (ip is not None and ip.is_loopback):
        if here.nodes > 1:
            yield lint("an address that other nodes reach", f"{value} leads every other node to itself")
    elif ip is None or name == "MASTER_ADDR":
        return  # a name, or another host's address
    elif isinstance(here.netdevs, Unreadable):
        yield unread(Code.ENV_LINT, here.netdevs)
    elif not ip.is_unspecified and all(a.ip != ip for n in here.netdevs.values() for a in n.addresses):
        yield lint("an address of this host", f"no interface here has {value}")


def forced_off(name: str, value: str, here: Here) -> Iterator[Problem]:
    if not here.fabric:
        return
    if name == "NCCL_NET" and value.lower() == "socket":
        yield lint("not set, or IB", "NCCL is told to use TCP, and the spec has an RDMA fabric")
    if name == "NCCL_IB_DISABLE" and value.strip() not in ("0", ""):
        yield lint("not set, or 0", "NCCL's InfiniBand/RoCE transport is switched off, and the spec has an RDMA fabric")
