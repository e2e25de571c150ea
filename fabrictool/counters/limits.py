"""What a run must have carried, and where a comparison turns. Every number has its source.

Of NCCL's algorithms only Ring has one answer; NCCL_ALGO=Ring pins it.
"""

from __future__ import annotations

from dataclasses import dataclass

# Payload is exact; headers and acknowledgements come on top: about 2 % at a path MTU of 4096 bytes, 8 % at 1024. What is short of the
# payload by more than counting at two moments explains did not go this way; beyond 1.15 somebody else sent too.
LEAST, MOST = 0.97, 1.15
FLAT = 0.01  # below this share nothing of the run was RDMA: connection set-up and keepalives are kilobytes
FOREIGN = 0.01  # a third of the tolerance below the payload: less than this lifts no short run over it
# Rails carry equal parts. Below 0.7: half the PCIe lanes, or congestion; below 0.3: next to nothing.
SHARE_WARN, SHARE_FAIL = 0.7, 0.3
STILL = 1_000_000  # bytes of a device that took no part: management datagrams stay far below
OTHER_PRIORITY = 0.03  # of the run: what TCP of the bootstrap, CNPs and log files may put on other priorities


@dataclass(frozen=True, slots=True)
class Expected:
    """Bytes that each node sends, and receives, in one run. `exact`: not more either; otherwise a lower bound. `how`: for people."""

    bytes: int
    exact: bool
    how: str


def expected(algorithm: str, calls: int, size_bytes: int, ranks: int) -> Expected:
    """In a ring of n ranks each sends 2 (n - 1) / n of the buffer a call, and one of a node's ranks sends to the next node, however
    many GPUs it has. Any algorithm without reduction in the switch moves the buffer once out of each node and once into it."""
    if algorithm.lower() == "ring":
        how = f"{calls} calls x {size_bytes} bytes x 2 ({ranks} - 1) / {ranks}"
        return Expected(calls * size_bytes * 2 * (ranks - 1) // ranks, True, how)
    return Expected(calls * size_bytes, False, f"at least {calls} calls x {size_bytes} bytes")
