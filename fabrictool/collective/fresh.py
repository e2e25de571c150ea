"""Whether a JSON result is of this run. nccl-tests never overwrites: where the file exists it writes to FILE.0, FILE.1 and so on, and
whoever reads FILE gets an old result."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Iterator
from time import strptime

from fabrictool.collective.model import NOT_SAID, Asked, TestRun
from fabrictool.model import Finding, Reason, Unreadable, Value
from fabrictool.room import About

ROUNDED = 0.011  # GB/s, and the share of it: the text has two decimals, or three digits
SLACK_S = 2.0  # whole seconds in the file, and two commands beside it
QUARTER_S = 900  # offsets from UTC are whole quarters of an hour, from -12 h to +14 h (tz database)
WEST_S, EAST_S = -12 * 3600, 14 * 3600
REMEDY = "read the file that the run names (`# Writing JSON output to`), or write to a new path for every run"


def fresh(run: TestRun, asked: Asked, about: About) -> Iterator[Finding]:
    """At most one finding; none where neither a path nor a start is known."""
    if run.json_path and asked.result_file:
        if _same(run.json_path, asked.result_file):
            yield about.ok(asked.result_file, run.json_path)
        else:
            yield about.fail(asked.result_file, run.json_path, "the run wrote to another file than the one that was read", remedy=REMEDY)
        return
    if asked.started_s is None or (run.started == NOT_SAID and not asked.result_file):
        return
    if not isinstance(run.started, Value):
        yield about.unknown(run.started, "started by this run")
        return
    began = epoch(run.started.value)
    if began is None:
        yield about.unknown(Unreadable(Reason.GARBLED, "start_time: no time"), "started by this run")
    elif of_this_run(began, asked):
        yield about.ok(f"started {run.started.value}", "started by this run")
    else:
        yield about.fail(f"started {run.started.value}", "started by this run", "the result is of an earlier run", remedy=REMEDY)


def beside(text: TestRun, file: TestRun, about: About) -> Finding:
    """A JSON result beside the output that the run printed: whether both tell of one run. Processes must be the same, and rows."""
    pids = [{d.rank: d.pid for d in run.devices if d.pid is not None} for run in (text, file)]
    common = pids[0].keys() & pids[1].keys()
    if not common or not text.rows or not file.rows:
        return about.unknown(Unreadable(Reason.EMPTY, "output and file have no processes or no rows to compare"), "one run")
    if any(pids[0][rank] != pids[1][rank] for rank in common):
        return about.fail("other process numbers than the output", "one run", "the result is of an earlier run", remedy=REMEDY)
    speeds = [[(r.size_bytes, p.busbw_gbytes_per_s) for r in run.rows for p in r.placements] for run in (text, file)]
    same = len(speeds[0]) == len(speeds[1]) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= max(ROUNDED, ROUNDED * b[1]) for a, b in zip(*speeds, strict=True))
    if not same:
        return about.fail("other rows than the output", "one run", "the result is of another run, or not all of it", remedy=REMEDY)
    return about.ok(f"{len(common)} processes and {len(file.rows)} rows agree", "one run")


def _same(one: str, other: str) -> bool:
    """A relative path is the run's own: it can only be compared from its end."""
    short, long = sorted((one.removeprefix("./"), other.removeprefix("./")), key=len)
    return long == short or (not short.startswith("/") and long.endswith(f"/{short}"))


def epoch(local: str) -> float | None:
    """`2026-11-29 18:09:34` as if it were UTC, seconds since 1970."""
    try:
        return float(timegm(strptime(local, "%Y-%m-%d %H:%M:%S")))
    except (ValueError, OverflowError):
        return None


def of_this_run(began: float, asked: Asked) -> bool:
    """Whether local time `began` lies between start and end. Without the node's offset from UTC any that exists will do."""
    if asked.started_s is None:
        return False
    ahead = began - asked.started_s
    window = max(0.0, (asked.ended_s if asked.ended_s is not None else asked.started_s + QUARTER_S - 2 * SLACK_S) - asked.started_s)
    if asked.utc_offset_s is not None:
        return -SLACK_S <= ahead - asked.utc_offset_s <= window + SLACK_S
    offsets = range(WEST_S, EAST_S + 1, QUARTER_S)
    return any(-SLACK_S <= ahead - offset <= window + SLACK_S for offset in offsets)
