"""NCCL_IB_GID_INDEX: which entry would be right on each RDMA device, and what a pinned one hits. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fabrictool.env.rules import Problem
from fabrictool.model import Code, Unreadable
from fabrictool.values import Gid

Gids = Mapping[str, Mapping[int, tuple[Gid, str]]] | Unreadable
AUTOMATIC_SINCE = (2, 21)  # NCCL chooses the GID by itself from here on; before, index 0


def right(gids: Gids, device: str) -> tuple[int, ...] | Unreadable:
    """The indices that RoCE v2 over IPv4 uses on this device, as NCCL's automatic choice would."""
    if isinstance(gids, Unreadable):
        return gids
    return tuple(i for i, (gid, kind) in sorted(gids.get(device, {}).items()) if kind == "RoCE v2" and gid.ipv4 is not None)


def advice(gids: Gids, devices: Iterable[str]) -> str:
    """For people: the index to give to an NCCL that does not choose by itself."""
    firsts: dict[str, str] = {}
    for device in devices:
        found = right(gids, device)
        if isinstance(found, Unreadable):
            return f"not known: {found.why}"
        firsts[device] = str(found[0]) if found else "none"
    if len(set(firsts.values())) == 1 and "none" not in firsts.values():
        return next(iter(firsts.values()))
    return ", ".join(f"{d}: {i}" for d, i in firsts.items()) or "no RDMA device in the spec"


def fits(value: str, gids: Gids, devices: Iterable[str]) -> bool:
    """Whether this index is a RoCE v2 IPv4 entry on every device. False also where that cannot be read."""
    if not re.fullmatch(r"\d{1,9}", value):
        return False
    hits = [right(gids, d) for d in devices]
    return bool(hits) and all(not isinstance(h, Unreadable) and int(value) in h for h in hits)


def pinned(value: str, gids: Gids, devices: tuple[str, ...]) -> Problem | None:
    """The finding for a set index; None for -1, which asks for the automatic choice."""
    text = value.strip()
    if text == "-1":
        return None
    want = "not set"
    if not text:
        return Problem(Code.GID_PINNED, want, "it is set to nothing: it chooses no entry and hides that nothing was meant to be set")
    if isinstance(gids, Unreadable):
        return Problem(Code.GID_PINNED, want, f"pinned, and whether the entry is right cannot be read: {gids.why}")
    wrong = [d for d in devices if not fits(text, gids, (d,))]
    if not wrong:
        return Problem(Code.GID_PINNED, want, "the entry is right today, but a new address or VLAN moves it; NCCL since 2.21 finds it")
    said = []
    for device in wrong:
        entry = gids.get(device, {}).get(int(text)) if re.fullmatch(r"\d{1,9}", text) else None
        said.append(f"{device} has {f'{entry[1]} {entry[0]}' if entry else 'nothing'} there")
    return Problem(Code.GID_PINNED, want, f"not a RoCE v2 IPv4 entry: {'; '.join(said)}; right would be {advice(gids, devices)}")


def version(text: str) -> tuple[int, ...]:
    """`2.27.3` or `2.27.3.post1` -> (2, 27, 3)."""
    return tuple(int(n) for n in re.findall(r"\d{1,9}", text)[:3])
