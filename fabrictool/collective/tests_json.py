"""nccl-tests' JSON file (-J), versions 1 to 3, and the list that rccl-tests writes. The file also holds the whole environment and the
command line of the run: neither is kept, and nothing of the file is quoted where it is not understood."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from fabrictool.collective import jsontext
from fabrictool.collective.builder import library_version, missing
from fabrictool.collective.model import (
    NO_GATE,
    NOT_SAID,
    Bounds,
    Device,
    ErrorKind,
    Fragment,
    Parameters,
    PerIteration,
    Placement,
    Row,
    RunError,
    TestRun,
)
from fabrictool.collective.rows import NOT_COUNTED, NOT_RUN
from fabrictool.model import Absent, Observed, Reason, Unreadable, Value

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
MOST_RANKS = 100_000

Doc = Mapping[str, Any]


def parse(text: str) -> TestRun | Unreadable:
    """The run. Unreadable when it is no JSON, or JSON of something else; a file that was cut gives what it holds, not concluded."""
    got = jsontext.load(text)
    if isinstance(got, Unreadable):
        return got
    doc, whole = got
    if isinstance(doc, list) or (isinstance(doc, dict) and "busBw" in doc):
        return _rccl(doc if isinstance(doc, list) else list(jsontext.values(text)), whole or isinstance(doc, dict))
    if not isinstance(doc, dict) or not {"nccl_version", "config", "results"} & set(doc):
        return Unreadable(Reason.GARBLED, "JSON, but not of nccl-tests")
    return _nccl(doc, whole)


def _nccl(doc: Doc, whole: bool) -> TestRun:
    config = doc.get("config")
    config = config if isinstance(config, dict) else {}
    parameters = _parameters(config)
    rows, fragments, cpu_time = _rows(doc.get("results"))
    bounds, average, average_ok = _bounds(doc), *_average(doc)
    ended = _time(doc, "end_time")
    concluded = whole and all(isinstance(o, Value) for o in (bounds, average, ended)) and isinstance(doc.get("results"), list)
    code = _whole(doc.get("nccl_version"))
    return TestRun(
        program=_program(doc.get("args")), nccl=NOT_SAID if code is None else Value(library_version(code)), parameters=parameters,
        devices=_devices(config.get("devices"), parameters), rows=rows, fragments=fragments, table="results" in doc,
        missing_rows=missing(parameters, None, rows, len(fragments)) if concluded else 0, cpu_time=cpu_time, bounds=bounds,
        average_busbw=average, average_ok=average_ok, concluded=concluded, errors=_errors(doc.get("errors")),
        started=_time(doc, "start_time"), ended=ended)


def _whole(value: Any) -> int | None:
    """A whole number from 0 to 2**63."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _real(value: Any) -> float | None:
    """A finite number that is not negative. The strings "nan" and "inf" are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _program(args: Any) -> Observed[str]:
    if isinstance(args, list) and args and isinstance(args[0], str) and args[0]:
        return Value(args[0].rpartition("/")[2][:200])
    return NOT_SAID


def _time(doc: Doc, key: str) -> Observed[str]:
    value = doc.get(key)
    if value is None:
        return NOT_SAID
    return Value(value) if isinstance(value, str) and TIME.fullmatch(value) else Unreadable(Reason.GARBLED, f"{key}: no time")


def _parameters(config: Doc) -> Observed[Parameters]:
    if not config:
        return NOT_SAID
    factor = "step_factor" in config
    names = ("nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "step_factor" if factor else "step_bytes", "warmup_iters",
             "iterations", "validation", "aggregated_iterations", "graph")
    numbers = [_whole(config.get(n)) for n in names]
    broken = next((n for n, v in zip(names, numbers, strict=True) if v is None), None)
    if broken:
        return Unreadable(Reason.GARBLED, f"config.{broken}: no number")
    threads, gpus, low, high, step, warmup, iterations, validation, agg, graph = (n or 0 for n in numbers)
    return Value(Parameters(threads, gpus, low, high, step, factor, warmup, iterations, validation, agg, graph))


def _devices(devices: Any, parameters: Observed[Parameters]) -> tuple[Device, ...]:
    """One entry per process, of its first rank: the others have the ranks and the devices that follow (nccl-tests util.cu)."""
    each = parameters.value.threads * parameters.value.gpus_per_thread if isinstance(parameters, Value) else 0
    out: list[Device] = []
    for entry in devices if isinstance(devices, list) else ():
        if not isinstance(entry, dict):
            return ()
        rank, host, number = _whole(entry.get("rank")), entry.get("hostname"), _whole(entry.get("device"))
        if rank is None or number is None or not isinstance(host, str) or not host:
            return ()
        gpu, bus = (str(entry.get(k, ""))[:120] for k in ("device_info", "device_hex"))
        if not 1 <= each <= MOST_RANKS - len(out):
            return ()
        out += [Device(rank + i, host[:255], number + i, gpu, _whole(entry.get("pid")), bus if i == 0 else "",
                       _whole(entry.get("group")) or 0) for i in range(each)]
    return tuple(out)


def _rows(results: Any) -> tuple[tuple[Row, ...], tuple[Fragment, ...], bool]:
    rows: list[Row] = []
    fragments: list[Fragment] = []
    cpu_time = False
    for i, entry in enumerate(results if isinstance(results, list) else ()):
        row = _row(entry) if isinstance(entry, dict) else None
        if row is None:
            fragments.append(Fragment(0, f"results[{i}]"))
        else:
            rows.append(row)
            cpu_time = cpu_time or any("cpu_time" in half for half in entry.values() if isinstance(half, dict))
    return tuple(rows), tuple(fragments), cpu_time


def _row(entry: Doc) -> Row | None:
    size, count = _whole(entry.get("size")), _whole(entry.get("count"))
    kind, redop, root = entry.get("type"), entry.get("redop", ""), str(entry.get("root", "")).strip()
    if size is None or count is None or not isinstance(kind, str) or not isinstance(redop, str) or "in_place" not in entry:
        return None
    if not re.fullmatch(r"(-?[0-9]{1,9})?", root):
        return None
    first, second = (_placement(entry.get(k), entry.get(f"{k}_per_iter")) for k in ("out_of_place", "in_place"))
    if first is None or second is None or (isinstance(first, Absent) and isinstance(second, Absent)):
        return None
    return Row(size, count, kind[:16], redop[:16], int(root) if root else None, first, second)


def _placement(half: Any, per_iteration: Any) -> Placement | Absent | None:
    if half is None:
        return NOT_RUN
    if not isinstance(half, dict) or "nwrong" not in half:
        return None
    time = _real(half.get("time", half.get("cpu_time")))
    algbw, busbw = _real(half.get("alg_bw")), _real(half.get("bus_bw"))
    wrong = _wrong(half["nwrong"])
    if time is None or algbw is None or busbw is None or wrong is None:
        return None
    return Placement(time, algbw, busbw, wrong, _per_iteration(per_iteration))


def _wrong(value: Any) -> Observed[int] | None:
    if value is None or value == "N/A":
        return NOT_COUNTED
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):  # rccl-tests
        return Value(int(value))
    number = _real(value)
    return Value(int(number)) if number is not None and number == int(number) else None


def _per_iteration(entry: Any) -> PerIteration | None:
    if not isinstance(entry, dict):
        return None
    low, high, p99, cv = (_real(entry.get(k)) for k in ("min_us", "max_us", "p99_us", "cv_pct"))
    if low is None or high is None or p99 is None or cv is None:
        return None
    table = entry.get("per_process_max_times_us")
    by_process = [[_real(t) for t in line] if isinstance(line, list) else [None] for line in table] if isinstance(table, list) else []
    if any(t is None for line in by_process for t in line):
        by_process = []
    return PerIteration(low, high, p99, cv, tuple(tuple(t for t in line if t is not None) for line in by_process))


def _bounds(doc: Doc) -> Observed[Bounds]:
    said = doc.get("out_of_bounds")
    if said is None:
        return NOT_SAID
    count, okay = (_whole(said.get("count")), said.get("okay")) if isinstance(said, dict) else (None, None)
    if count is None or okay not in ("true", "false") or (count == 0) != (okay == "true"):
        return Unreadable(Reason.GARBLED, "out_of_bounds: count and verdict do not agree")
    return Value(Bounds.OK if okay == "true" else Bounds.FAILED)


def _average(doc: Doc) -> tuple[Observed[float], Observed[bool]]:
    """Builds from 2.17.4 to 2.17.8 misspell both keys."""
    said = doc.get("average_bus_bandwidth", doc.get("average_bus_bandwidith"))
    if said is None:
        return NOT_SAID, NO_GATE
    number = _real(said.get("bandwidth", said.get("bandwidith"))) if isinstance(said, dict) else None
    if number is None or not isinstance(said, dict):
        broken = Unreadable(Reason.GARBLED, "average_bus_bandwidth: no number")
        return broken, broken
    okay = said.get("okay")
    if okay in ("true", "false"):
        return Value(number), Value(okay == "true")
    return Value(number), NO_GATE if okay == "unchecked" else Unreadable(Reason.GARBLED, "average_bus_bandwidth: no verdict")


def _errors(errors: Any) -> tuple[RunError, ...]:
    texts = [e for e in errors if isinstance(e, str) and e.strip()] if isinstance(errors, list) else []
    return tuple(RunError(ErrorKind.LAST, t.strip()[:300]) for t in texts[:100])


def _rccl(entries: list[Any], whole: bool) -> TestRun:
    """Each entry is one placement. There is no closing mark and no verdict over all of them: nothing is concluded from it."""
    halves: dict[tuple[Any, ...], dict[bool, Placement]] = {}
    fragments: list[Fragment] = []
    names: set[str] = set()
    for i, entry in enumerate(entries):
        half = _placement({"time": entry.get("time"), "alg_bw": entry.get("algBw"), "bus_bw": entry.get("busBw"),
                           "nwrong": entry.get("wrong")}, None) if isinstance(entry, dict) else None
        size, kind = (_whole(entry.get("size")), entry.get("type")) if isinstance(entry, dict) else (None, None)
        if not isinstance(half, Placement) or size is None or not isinstance(kind, str) or entry.get("inPlace") not in (0, 1):
            fragments.append(Fragment(0, f"entry {i}"))
            continue
        names.add(str(entry.get("name", ""))[:200])
        key = (size, kind[:16], str(entry.get("redop", ""))[:16])
        places = halves.setdefault(key, {})
        if bool(entry["inPlace"]) in places:
            fragments.append(Fragment(0, f"entry {i}"))
        places[bool(entry["inPlace"])] = half
    rows = tuple(Row(size, 0, kind, redop, None, places.get(False, NOT_RUN), places.get(True, NOT_RUN))
                 for (size, kind, redop), places in halves.items())
    program: Observed[str] = Value(names.pop()) if len(names) == 1 else NOT_SAID
    if not whole:
        fragments.append(Fragment(0, "the list has no end", cut=True))
    return TestRun(program=program, rows=rows, fragments=tuple(fragments), table=bool(rows))
