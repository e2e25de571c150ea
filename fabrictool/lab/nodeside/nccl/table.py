"""The text that all_reduce_perf prints: nccl-tests 2.19.6, byte for byte. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from fabrictool.lab.nodeside.nccl.options import Options

CODE = 22809  # NCCL_VERSION_CODE of 2.28.9
STAND_IN = "# Stand-in of a fabrictool lab: no GPU computes, no RDMA hardware is there"


@dataclass(frozen=True)
class Placement:
    """One half of a row. `wrong` -1: nothing was checked. `each_us`: of every iteration, for -I."""

    time_us: float
    algbw: float
    busbw: float
    wrong: float
    each_us: tuple[float, ...] = ()


def number(value: float, width: int) -> str:
    """Two decimals as long as there is room, then fewer."""
    digits = len(str(int(value)))
    for room, decimals in ((width - 2, 2), (width - 1, 1), (width + 1, 0)):
        if digits < room:
            return f"{value:{width}.{decimals}f}"
    return f"{value:{width}.1e}"


def opening(program: str, o: Options) -> list[str]:
    step = f"{o.stepfactor}(factor)" if o.stepfactor > 1 else f"{o.stepbytes}(bytes)"
    lines = [
        f"# nccl-tests version 2.19.6 nccl-headers={CODE} nccl-library={CODE}",
        f"# Collective test starting: {program}",
        f"# nThread {o.nthreads} nGpus {o.ngpus} minBytes {o.minbytes} maxBytes {o.maxbytes} step: {step} warmup iters: {o.warmup_iters} "
        f"iters: {o.iters} agg iters: {o.agg_iters} validation: {o.check} graph: {o.cudagraph} unalign: {o.unalign}"]
    if o.per_iter:
        lines.append("# Per-Iteration Report: CUDA event timing; i_* uses max over process rows ")
    return [*lines, STAND_IN, "#", "# Using devices"]


def device(rank: int, pid: int, host: str, gpu: int, bus: str, model: str) -> str:
    return f"#  Rank {rank:2d} Group  0 Pid {pid:6d} on {host:>10} device {gpu:2d} [{bus}] {model}"


def heading(o: Options) -> list[str]:
    more = f"  {'i_min':>7}  {'i_max':>7}  {'i_p99':>7}  {'i_cv%':>7}" if o.per_iter else ""
    units = f"  {'(us)':>7}  {'(us)':>7}  {'(us)':>7}  {'(%)':>7}" if o.per_iter else ""
    stamp = f"  {'timestamp':>19}" if o.timestamps else ""
    head = f"#       size         count      type   redop    root  {'time':>7}  {'algbw':>6}  {'busbw':>6}  #wrong{more}" \
           f"  {'time':>7}  {'algbw':>6}  {'busbw':>6}  #wrong{more}{stamp} "
    unit = f"#        (B)    (elements)                            {'(us)':>7}  (GB/s)  (GB/s)        {units}" \
           f"  {'(us)':>7}  (GB/s)  (GB/s)        {units} "
    if o.per_iter:
        first = f"#{'out-of-place (+ per-iteration)':>95}{'in-place (+ per-iteration)':>58}"
    else:
        first = f"#{'out-of-place':>74}{'in-place':>31}          "
    return ["#", first, head, unit]


def begin(size: int, count: int, kind: str, op: str) -> str:
    """What is there before the first half has run."""
    return f"{size:12d}  {count:12d}  {kind:>8}  {op:>6}  {-1:6d}"


def half(p: Placement, o: Options) -> str:
    wrong = "N/A" if p.wrong < 0 else f"{p.wrong:g}"
    text = f"  {number(p.time_us, 7)}  {number(p.algbw, 6)}  {number(p.busbw, 6)}  {wrong:>6}"
    if not o.per_iter:
        return text
    s = Spread.of(p.each_us, o.per_iter_skip)
    return text + "".join(f"  {number(x, 7)}" for x in (s.least, s.most, s.p99, s.cv))


@dataclass(frozen=True)
class Spread:
    """Of the iterations of one loop, in microseconds; `cv` in percent."""

    least: float
    most: float
    mean: float
    p50: float
    p95: float
    p99: float
    deviation: float
    cv: float

    @classmethod
    def of(cls, every: Sequence[float], skip: int) -> Spread:
        seen = sorted(every[skip:] or every)

        def rank(percent: int) -> float:
            return seen[max(-(-percent * len(seen) // 100) - 1, 0)] if seen else 0.0

        mean = fmean(seen) if seen else 0.0
        spread = pstdev(seen) if seen else 0.0
        return cls(seen[0] if seen else 0.0, seen[-1] if seen else 0.0, mean, seen[len(seen) // 2] if seen else 0.0, rank(95),
                   rank(99), spread, 100 * spread / mean if mean else 0.0)


def closing(program: str, errors: int, average: float, least: float | None) -> list[str]:
    """`least`: NCCL_TESTS_MIN_BW, if it is set."""
    verdict = "" if least is None else "OK" if average >= 0.9 * least else "FAILED"
    return [f"# Out of bounds values : {errors} {'FAILED' if errors else 'OK'}",
            f"# Avg bus bandwidth    : {average:g} {verdict}", "#", f"# Collective test concluded: {program}", "#", ""]
