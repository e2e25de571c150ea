"""How long a run may take, layer by layer, and how much a rank may send. One place, so that the order of the limits can be seen.

Each layer ends what the one inside it could not: nccl-tests' own -T looks only at a stream that does not finish, not at the start nor
at MPI; the launcher does not see a node that hangs; `timeout` on the node does not see a dead workstation's next steps; and the guard
on the node needs nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

SLOW_BYTES_PER_S = 250e6  # a run over a 2.5 Gb/s path must still come to its end and be judged
LEAST_S, MOST_S = 60, 900
START_S = 120  # the spec's collective.start_s by default: NCCL itself tries to connect for about 60 s (2.24 and later)
STEP_S = 15  # a layer has so long to end and to report before the next one acts
GUARD_S = 120  # what comes after a run (counters, outputs) until the next sign of life
UNIFIED_SHARE = 8  # of what is free on unified memory: send, receive and check buffers, and room for everything else
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, each counted from the start of its own layer. `start_s`: our own program's, until its first call has shown that the ranks
    are connected; `program_s`: nccl-tests' -T; `launcher_s`: mpirun --timeout, srun --time, or the deadline of our own program; `node_s`:
    `timeout -k` and RuntimeMaxSec on the node; `ours_s`: how long the workstation waits; `guard_s`: when the node ends everything by
    itself."""

    start_s: int
    program_s: int
    launcher_s: int
    node_s: int
    ours_s: int
    guard_s: int

    @classmethod
    def of(cls, bytes_per_node: int, start_s: int = START_S) -> Limits:
        """For a run in which each node sends so many bytes."""
        program = int(min(max(bytes_per_node / SLOW_BYTES_PER_S, LEAST_S), MOST_S))
        launcher = program + start_s
        node = launcher + STEP_S
        ours = node + STEP_S
        return cls(start_s, program, launcher, node, ours, ours + GUARD_S)


def sent_bytes(size_bytes: int, calls: int, ranks: int) -> int:
    """What each node sends in a ring over `ranks` ranks: NCCL's ring sends S * 2 (n - 1) / n over every hop of it, once per call."""
    return size_bytes * calls * 2 * (ranks - 1) // ranks if ranks > 1 else 0


def idle_s(bytes_per_node: int, line_bytes_per_s: float) -> int:
    """How long to watch a fabric at rest, in seconds: as long as the run would take at half the line rate."""
    rate = line_bytes_per_s / 2 if line_bytes_per_s > 0 else SLOW_BYTES_PER_S
    return int(min(max(bytes_per_node / rate + 2, 3), 60))


def unified_size(size_bytes: int, available_bytes: int, ranks_per_node: int) -> int:
    """The largest buffer, at most `size_bytes`, of which each rank of a node may have one where GPUs share the system's memory."""
    most = available_bytes // UNIFIED_SHARE // max(1, ranks_per_node)
    return size_bytes if size_bytes <= most else most // MIB * MIB


def control_size(size_bytes: int, calls: int, ranks: int, most_per_node: int) -> int:
    """The largest buffer, at most `size_bytes`, with which no node sends more than `most_per_node` bytes."""
    per_byte = sent_bytes(MIB, calls, ranks)
    most = most_per_node * MIB // per_byte if per_byte else size_bytes
    return size_bytes if size_bytes <= most else most // MIB * MIB
