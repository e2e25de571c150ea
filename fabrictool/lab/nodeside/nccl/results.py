"""The JSON file of all_reduce_perf -J: nccl-tests 2.19.6, version 3 of the format."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from fabrictool.lab.nodeside.nccl.options import Options
from fabrictool.lab.nodeside.nccl.table import CODE, Placement, Spread

NOTE = "stand-in of a fabrictool lab"  # in the only place for free text


def number(value: float) -> str:
    """Six decimals, without the zeros at the end, but one of them."""
    text = f"{value:.6f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def opened(path: str) -> tuple[TextIO, str] | None:
    """A new file: an existing one is never written, `.0`, `.1` ... are tried. Only `.json` is known; anything else is no file."""
    if not path.endswith(".json"):
        return None
    for name in (path, *(f"{path}.{n}" for n in range(1000))):
        try:
            return open(name, "x"), name  # written when the run has ended
        except FileExistsError:
            continue
        except OSError:
            return None
    return None


def _placement(p: Placement) -> str:
    wrong = number(p.wrong) if p.wrong >= 0 else '"N/A"'
    return f'{{"time":{number(p.time_us)},"alg_bw":{number(p.algbw)},"bus_bw":{number(p.busbw)},"nwrong":{wrong}}}'


def _per_iter(p: Placement, skip: int) -> str:
    s = Spread.of(p.each_us, skip)
    keys = (("min_us", s.least), ("max_us", s.most), ("avg_us", s.mean), ("p50_us", s.p50), ("p95_us", s.p95), ("p99_us", s.p99),
            ("stdev_us", s.deviation), ("cv_pct", s.cv))
    return (f'{{"skipped_iterations":{skip},' + ",".join(f'"{k}":{number(v)}' for k, v in keys)
            + f',"times_us":[{",".join(map(number, p.each_us))}]}}')


def row(size: int, count: int, kind: str, op: str, out: Placement, inside: Placement, o: Options) -> str:
    """One element of `results`."""
    head = f'{{"size":{size},"count":{count},"type":"{kind}","redop":"{op}","root":"    -1"'
    more = (f',"out_of_place_per_iter":{_per_iter(out, o.per_iter_skip)}', f',"in_place_per_iter":{_per_iter(inside, o.per_iter_skip)}') \
        if o.per_iter else ("", "")
    return (f'{head},"out_of_place":{_placement(out)}{more[0]},"in_place":{_placement(inside)}{more[1]},'
            f'"actual_iterations":{o.iters},"experiment_name":"{NOTE}"}}')


def document(args: Sequence[str], env: Mapping[str, str], o: Options, devices: Sequence[Mapping[str, object]], rows: Sequence[str],
             errors: int, average: tuple[float, str], times: tuple[str, str]) -> str:
    """The whole file. `average`: the figure and what it was held against; `times`: start and end. The program writes down its whole
    environment, secrets included."""
    def flag(value: int) -> str:
        return "true" if value else "false"

    step = {"step_factor": o.stepfactor} if o.stepfactor > 1 else {"step_bytes": o.stepbytes}
    config: dict[str, object] = {
        "nthreads": o.nthreads, "ngpus": o.ngpus, "minimum_bytes": o.minbytes, "maximum_bytes": o.maxbytes, **step,
        "warmup_iters": o.warmup_iters, "iterations": o.iters, "aggregated_iterations": o.agg_iters, "validation": o.check,
        "graph": o.cudagraph, "blocking_collectives": flag(o.blocking), "per_iter_timing": flag(o.per_iter),
        "per_iter_skip": o.per_iter_skip, "parallel_init": flag(o.parallel_init), "devices": list(devices)}
    head = {"version": 3, "start_time": times[0], "args": list(args), "env": [f"{k}={v}" for k, v in env.items()], "nccl_version": CODE,
            "config": config}
    start = json.dumps(head, separators=(",", ":"), ensure_ascii=False)[:-1]
    okay = flag(not errors)
    return (f'{start},"results":[{",".join(rows)}],"out_of_bounds":{{"count":{errors},"okay":"{okay}"}},'
            f'"average_bus_bandwidth":{{"bandwidth":{number(average[0])},"okay":"{average[1]}"}},"errors":[""],"end_time":"{times[1]}"}}')


def environment() -> dict[str, str]:
    """Of this process, text that is not UTF-8 replaced."""
    return {k: v.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for k, v in os.environ.items()}
