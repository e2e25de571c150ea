"""The PCIe tree above NICs and GPUs, and where Access Control Services send their traffic to each other around by the CPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictool.model import Reason, Unreadable
from fabrictool.ports.sections import targets
from fabrictool.snapshot import Snapshot
from fabrictool.system import sections

_BDF = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HEAD = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ", re.I)
_ACS = re.compile(r"\s*ACSCtl:\s+SrcValid[+-] TransBlk[+-] ReqRedir([+-]) CmpltRedir([+-])")


@dataclass(frozen=True, slots=True)
class Way:
    """From a function up to the root: addresses of the bridges above it, outermost first, and its own last."""

    steps: tuple[str, ...]

    @property
    def device(self) -> str:
        return self.steps[-1]

    def below(self, other: Way) -> tuple[str, ...] | None:
        """The bridges between the two, on this one's side of the bridge that they share; None: they share none."""
        shared = 0
        for mine, theirs in zip(self.steps[:-1], other.steps[:-1], strict=False):
            if mine != theirs:
                break
            shared += 1
        return self.steps[shared:-1] if shared else None


def ways(snap: Snapshot) -> tuple[Mapping[str, Way], tuple[Way, ...]] | Unreadable:
    """(RDMA device -> its way, the ways of the GPUs)."""
    nics, gpus = targets(snap, "ports.links"), targets(snap, sections.PCI_PATHS.name)
    if isinstance(nics, Unreadable):
        return nics
    if isinstance(gpus, Unreadable):
        return gpus
    head, tail = "/sys/class/infiniband/", "/device"
    found = {path[len(head):-len(tail)]: way for path, target in nics.items()
             if path.startswith(head) and path.endswith(tail) and (way := _way(target))}
    return found, tuple(way for path, target in gpus.items() if _BDF.fullmatch(path.rsplit("/", 1)[-1]) and (way := _way(target)))


def _way(target: str) -> Way | None:
    steps = tuple(part for part in target.split("/") if _BDF.fullmatch(part))
    return Way(steps) if steps else None


def redirects(snap: Snapshot) -> Mapping[str, bool] | Unreadable:
    """Every bridge that lspci lists: whether it redirects requests or completions between devices below it to the root."""
    raw = snap.raw(sections.BRIDGES.name)
    if isinstance(raw, Unreadable):
        return raw
    if raw.rc != 0:
        return Unreadable(Reason.FAILED, f"lspci: exit status {raw.rc}: {raw.tail or 'no message'}")
    return parse_acs(raw.out)


def parse_acs(text: str) -> Mapping[str, bool] | Unreadable:
    """`lspci -D -vvv`. No bridge at all is an answer: virtual machines have none."""
    found: dict[str, bool] = {}
    here = ""
    for line in text.split("\n"):
        head = _HEAD.match(line)
        if head:
            here = head[1].lower()
            found.setdefault(here, False)
        elif "<access denied>" in line:
            return Unreadable(Reason.NEEDS_ROOT, "lspci: the capabilities of bridges are shown to root only")
        elif here and "ACSCtl:" in line:
            m = _ACS.match(line)
            if m is None:
                return Unreadable(Reason.GARBLED, f"lspci: {line.strip()[:80]!r}")
            found[here] = found[here] or "+" in (m[1], m[2])
    if text.strip() and not here:
        return Unreadable(Reason.GARBLED, f"lspci: no device in it: {text.strip()[:60]!r}")
    return found
