"""What checks of traffic say of a fleet with one fault, or with none: every finding that does not pass, and what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

# checks that make traffic, or judge what was made
TRAFFIC = ("allreduce", "rdma_counters", "lossless_priority", "rails", "path_mtu", "bootstrap_tcp")


class Of(StrEnum):
    """What a finding is about, as seen from the fault. A rank's bytes go to the next node, and come from the previous one."""

    NODE = "node"
    NEXT = "next-node"
    FUNCTION = "function"
    PREVIOUS_FUNCTION = "previous-node-function"
    NEXT_FUNCTION = "next-node-function"
    PORT = "port"
    NEXT_PORT = "next-node-port"
    PAIR = "pair"
    EACH = "each-node"
    RAIL = "each-node-rail"
    ALL = "fleet"
    SOME = "some-nodes"


STATUS = {"?": "unknown", "~": "warn", "": "fail"}
EXIT = {"fail": 1, "unknown": 3, "warn": 0}


@dataclass(frozen=True, slots=True)
class Told:
    """One finding, or one for each thing of a kind. `may`: timing decides which of several things of this code are told of; one is."""

    status: str
    code: str
    of: Of
    may: bool = False

    @classmethod
    def parse(cls, text: str) -> Told:
        """`CODE@of`; `?` in front: unknown, `~`: a warning; `*` behind: may."""
        mark = text[0] if text[0] in STATUS else ""
        code, _, of = text[len(mark):].removesuffix("*").partition("@")
        return cls(STATUS[mark], code, Of(of), text.endswith("*"))


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one check says against a fleet; nothing else stands beside it. `exit`: of the command, were it the only check."""

    told: tuple[Told, ...]

    @property
    def exit(self) -> int:
        exits = {EXIT[t.status] for t in self.told}
        return 1 if 1 in exits else max(exits)

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(t.code for t in self.told))


Traffic = Mapping[str, Seen]


def seen(**checks: str) -> Traffic:
    """Check -> what it says, each finding as `Told.parse` reads it, in the order in which it should be read."""
    return {check: Seen(tuple(map(Told.parse, text.split()))) for check, text in checks.items()}


@dataclass(frozen=True, slots=True)
class Number:
    """Evidence of a check that passes on four healthy Sparks of the lab: between `least` and `most`, or the text `least`."""

    check: str
    key: str
    least: float | str
    most: float = 0.0

    @property
    def shown(self) -> str:
        return str(self.least) if isinstance(self.least, str) or self.least == self.most else f"{self.least:g} to {self.most:g}"

    def holds(self, value: object) -> bool:
        if isinstance(self.least, str):
            return value == self.least
        return isinstance(value, int | float) and self.least <= value <= self.most


HEALTHY = (
    Number("allreduce", "busbw_gbytes_per_s", 22.0, 23.0),
    Number("allreduce", "line_rate_gbytes_per_s", 25, 25),
    Number("allreduce", "ranks", 4, 4),
    Number("allreduce", "expected_per_node_bytes", 339738624, 339738624),  # 27 calls x 8388608 bytes x 3/2
    Number("rdma_counters", "least_share_of_expected", 1.0, 1.1),
    Number("lossless_priority", "proven", "exercised"),
    Number("rails", "slowest_function_gbit_per_s", 85.0, 95.0),  # both functions of a port share its 22.3 GB/s
    Number("path_mtu", "mtu_bytes", 9000, 9000),
    Number("path_mtu", "pairs_with_a_verdict", 12, 12),  # 6 pairs on 2 rails
    Number("bootstrap_tcp", "pairs_connected_both_ways", 6, 6),
)
