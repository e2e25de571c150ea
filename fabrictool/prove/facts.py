"""What the AllReduce probe knows of its own run: written by the engine, read by every judge of its recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Recording

IDLE = ("idle.before", "idle.after")
END = "end"  # the moment after everything was ended: the section `left` once more
DEFAULT = "default"  # the run with NCCL's own choice of algorithm
KEY = "run"
REFUSED = "refused"  # the fact of a probe that ran nothing: {"code": ..., "nodes": [...]} as JSON
# A bundle may be edited, and judges compute with these: beyond the bounds there is no run. What 64 bits hold is still a float.
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]
MOST_RUNS = 100  # as in the spec
MOST_RANKS = 100_000


def moments(run: str) -> tuple[str, str, str]:
    """Counters before, the run itself, counters after."""
    return f"{run}.before", run, f"{run}.after"


@checked(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=True))
class AllReduce:
    """One AllReduce as it was asked for.

    `launcher`: direct, mpirun or srun. `program`: nccl-tests or torch. `size_bytes`: the buffer, per rank. `warmup`, `iterations`,
    `verify`: rounds (nccl-tests -w, -n, -c). `rank_nodes`: the node of each rank, in rank order. `runs`: names of the gated runs;
    `default_run`: its name, or "" where there was none. `algorithm`: NCCL_ALGO of the gated runs ("" = not pinned). `added`: the
    environment that the tool itself added; `consumer`: whose environment the ranks got. `command`: as a shell would take it.
    `limit_s`: after so many seconds a run is ended on its nodes. `network`: "" or the value of NCCL_NET that was forced (control run).
    `asked_bytes`: the size that the spec wants, 0 = the same; `bound`: why a smaller one was taken.
    """

    launcher: str
    program: str
    size_bytes: Bytes
    warmup: Count
    iterations: Count
    verify: Count
    rank_nodes: Annotated[tuple[str, ...], Field(max_length=MOST_RANKS)]
    runs: Annotated[tuple[str, ...], Field(max_length=MOST_RUNS)]
    algorithm: str = "Ring"
    default_run: str = ""
    added: Mapping[str, str] = field(default_factory=dict)
    consumer: str = ""
    command: str = ""
    limit_s: Count = 0
    network: str = ""
    asked_bytes: Bytes = 0
    bound: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.rank_nodes))

    @property
    def ranks(self) -> int:
        return len(self.rank_nodes)

    @property
    def calls(self) -> int:
        """How often each rank calls the collective in one run: nccl-tests 2.16.8 and later call W + 2 (1 + n + c) times for one size,
        because both placements (out of place, in place) are one untimed, n timed and c verified calls (nccl-tests common.cu,
        BenchTime and TimeTest); our PyTorch program is W + 1 + n + c, and has one placement."""
        if self.program == "torch":
            return self.warmup + 1 + self.iterations + self.verify
        return self.warmup + 2 * (1 + self.iterations + self.verify)

    def to_facts(self) -> dict[str, str]:
        return {KEY: json.dumps(asdict(self), sort_keys=True)}


_TYPE = TypeAdapter(AllReduce)


def all_reduce(recording: Recording) -> AllReduce | Unreadable:
    """The facts of an AllReduce recording."""
    if recording.error:
        return recording.error
    text = recording.facts.get(KEY)
    if text is None:
        return Unreadable(Reason.NOT_COLLECTED, f"{recording.probe}: the recording does not say what was run")
    try:
        facts = _TYPE.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        return Unreadable(Reason.GARBLED, f"{recording.probe}: {'.'.join(map(str, first['loc']))}: {first['msg']}"[:200])
    every = (*facts.runs, *((facts.default_run,) if facts.default_run else ()))
    twice = next((run for run in every if every.count(run) > 1), None)
    if twice is not None:  # one run is no two, and what is gated is not also the run that is not
        return Unreadable(Reason.GARBLED, f"{recording.probe}: runs: {twice[:60]!r} twice")
    return facts
