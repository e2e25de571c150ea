"""What one run of nccl-tests proves by its own output. In the order in which it counts: wrong results, then whether it came to its end
at all, then whether what it says is whole, of the size that was asked for, of this run, and of the ranks that were asked for.

The exit status alone proves nothing: it is 0 after `-h` too, and the number for wrong results changed twice between versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabrictool.collective.ended import ended
from fabrictool.collective.fresh import fresh
from fabrictool.collective.model import Asked, Bounds, Ending, Placement, Row, TestRun
from fabrictool.model import Absent, Code, Finding, Observed, Reason, Status, Subject, Unreadable, Value
from fabrictool.room import About

# How far time, size and bandwidth of one row may lie apart: each is rounded to three digits or more.
ROUNDING = 0.02
WIDE_US, WIDE_ROUNDING = 1e7, 0.05  # from ten seconds on the time has two digits ("1.2e+07")
ALIGNMENT = 0.001  # a size is rounded down to whole elements of all ranks: far less than this for sizes that saturate a link


def judge(run: TestRun, asked: Asked, ending: Ending, subject: Subject, path: str,
          nodes: Mapping[str, Subject] | None = None) -> Iterator[Finding]:
    """`path`: begins each finding's own ("allreduce.run1"). `nodes`: subjects by the host name that the run prints, for what one host
    did; `subject` for all else. A fact of which nothing can be said, because the run never came to it, gets no finding beside the one
    that says so."""
    yield right(run, About(Code.WRONG_RESULT, subject, f"{path}.result", ""))
    yield from ended(run, ending, subject, path, nodes or {})
    yield from _whole(run, About(Code.RESULT_UNPARSED, subject, f"{path}.rows", ""))
    yield from _size(run, asked, About(Code.SIZE_REDUCED, subject, f"{path}.size", ""))
    yield from fresh(run, asked, About(Code.RESULT_STALE, subject, f"{path}.fresh", ""))
    yield from _ranks(run, asked, subject, path)


def right(run: TestRun, about: About) -> Finding:
    """Whether every element that was looked at was as expected, and all were looked at."""
    want = "0 wrong elements"
    remedy = "look for the node: run pairs of nodes; then its GPU memory (dmesg, Xid, ECC), its PCIe and the NIC's firmware"
    wrong = [r for r in run.rows if any(p.right == Value(False) for p in r.placements)]
    if wrong:
        return about.fail(_wrong(wrong), want, "the collective gave other numbers than it should have", remedy=remedy)
    if run.bounds == Value(Bounds.FAILED):
        return about.fail("Out of bounds values: FAILED", want, "nccl-tests itself found values out of bounds", remedy=remedy)
    if not run.concluded:
        return about.unknown(Unreadable(Reason.BLOCKED, "the run did not come to its closing line"), want)
    if run.fragments or run.missing_rows or run.others or not run.rows:
        return about.unknown(Unreadable(Reason.BLOCKED, "RESULT_UNPARSED: not every row is there"), want)
    if not isinstance(run.bounds, Value):
        return about.unknown(run.bounds, want)
    blind = [p for r in run.rows for p in r.placements if not isinstance(p.right, Value)]
    if blind:
        off = isinstance(run.parameters, Value) and run.parameters.value.validation == 0
        why = "validation is off (-c 0)" if off else f"{len(blind)} of {len(run.rows)} rows were not verified in both placements"
        return about.fail("not verified", want, why, status=Status.UNKNOWN, remedy="run with -c 1")
    return about.ok(f"0 wrong elements in {len(run.rows)} row{'s' * (len(run.rows) != 1)}, {run.bounds.value}", want)


def _wrong(rows: list[Row]) -> str:
    counts = [p.wrong.value for r in rows for p in r.placements if isinstance(p.wrong, Value)]
    deviations = [p.deviation.largest for r in rows for p in r.placements if p.deviation and p.deviation.exceeded]
    what = f"{max(counts):,} wrong elements" if any(counts) else f"deviation {max(deviations):g}"
    return f"{what} at {max(r.size_bytes for r in rows)} bytes, {len(rows)} row{'s' * (len(rows) != 1)} in all"


def _whole(run: TestRun, about: About) -> Iterator[Finding]:
    remedy = "send NCCL's log elsewhere (NCCL_DEBUG_FILE) and run again: several writers share one output"
    broken = [f"line {f.line}: {f.text[:80]}" if f.line else f.text[:80] for f in run.fragments]
    if run.missing_rows:
        broken.append(f"{run.missing_rows} row{'s' * (run.missing_rows != 1)} missing")
    if run.others:
        broken.append(f"{run.others + 1} runs in one output")
    if run.concluded and not run.rows and not broken:
        broken.append("no row")
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        yield about.fail(broken[0] + more, "every row whole", "a row that is cut or mixed with other text tells nothing",
                         status=Status.UNKNOWN, remedy=remedy)
    elif run.concluded:
        yield about.ok(f"{len(run.rows)} row{'s' * (len(run.rows) != 1)}", "every row whole")


def _size(run: TestRun, asked: Asked, about: About) -> Iterator[Finding]:
    told = run.parameters.value.max_bytes if isinstance(run.parameters, Value) else None
    if run.reduced_bytes is not None:
        want = f"{asked.size_bytes or told or 'the asked'} bytes"
        yield about.fail(f"{run.reduced_bytes} bytes", want, "nccl-tests made the buffers smaller because GPU memory is short",
                         remedy="free the GPUs' memory, or ask for a smaller size")
        return
    if asked.size_bytes is None or not (run.rows or told is not None):
        return
    want = f"{asked.size_bytes} bytes"
    largest = max((r.size_bytes for r in run.rows), default=None)
    if largest is not None and 0 <= asked.size_bytes - largest <= ALIGNMENT * asked.size_bytes:
        yield about.ok(f"{largest} bytes", want)
    elif told is not None and told != asked.size_bytes:
        yield about.fail(f"{told} bytes", want, "another size was run than was asked for", remedy="run again with the asked size")
    elif largest is not None:
        yield about.fail(f"{largest} bytes", want, "the asked size is not among the rows", status=Status.UNKNOWN,
                         remedy="run again with the asked size")


def _ranks(run: TestRun, asked: Asked, subject: Subject, path: str) -> Iterator[Finding]:
    about = About(Code.LAUNCH_FAILED, subject, f"{path}.ranks", "")
    if (asked.ranks is None and asked.nodes is None) or not (run.devices or run.table):
        return
    ranks = run.ranks
    want = " on ".join(f"{n} {w}" for n, w in ((asked.ranks, "ranks"), (asked.nodes, "nodes")) if n is not None)
    if not isinstance(ranks, Value):
        yield about.unknown(ranks, want)
        return
    hosts = run.hosts
    got = f"{ranks.value} rank{'s' * (ranks.value != 1)} on {len(hosts)} node{'s' * (len(hosts) != 1)}"
    if asked.ranks is not None and ranks.value != asked.ranks:
        alone = ranks.value == 1
        yield about.fail(got, want, "each process ran for itself: the program was built without MPI, or the launcher is not the MPI's own"
                         if alone else "other ranks took part than were asked for",
                         remedy="use the build with MPI (all_reduce_perf_mpi) and its own mpirun, or srun --mpi=pmix" if alone
                         else "look at the host file, the slots and the devices per process")
    elif asked.nodes is None or len(hosts) == asked.nodes:
        yield about.ok(got, want)
    elif len(hosts) < asked.nodes and len({(d.host, d.device) for d in run.devices}) < sum(d.device is not None for d in run.devices):
        yield about.fail(got, want, "several nodes have one host name, so it cannot be told where the ranks ran", status=Status.UNKNOWN,
                         remedy="give every node (or container) a host name of its own")
    elif len(hosts) == 1:
        yield About(Code.SINGLE_NODE, subject, f"{path}.ranks", "").fail(
            got, want, "all ranks ran on one node, so nothing went over the fabric",
            remedy="look at the host file: one slot per GPU and node, and at --map-by")
    else:
        yield about.fail(got, want, "the ranks ran on other nodes than were asked for", remedy="look at the host file")


def gate_busbw(run: TestRun) -> Observed[float]:
    """Bus bandwidth at the largest size, the lowest of both placements, decimal GB/s: the one number to hold against a threshold."""
    if run.others or run.fragments or run.missing_rows:
        return Unreadable(Reason.BLOCKED, "RESULT_UNPARSED: not every row is there")
    if not run.concluded:
        return Unreadable(Reason.CUT, "the run did not come to its closing line")
    if run.reduced_bytes is not None:
        return Unreadable(Reason.BLOCKED, "SIZE_REDUCED: the asked size was not run")
    if not run.rows:
        return Unreadable(Reason.EMPTY, "no rows")
    if run.ranks == Value(1):
        return Absent("bus bandwidth of a single rank")
    largest = max(r.size_bytes for r in run.rows)
    rows = [r for r in run.rows if r.size_bytes == largest]
    broken = next((r for r in rows if not agrees(r, expected_factor(run), cpu_time=run.cpu_time)), None)
    if broken:
        return Unreadable(Reason.GARBLED, f"{broken.size_bytes} bytes: time and bandwidths of the row contradict each other")
    return Value(min(p.busbw_gbytes_per_s for r in rows for p in r.placements))


def expected_factor(run: TestRun) -> float | None:
    """busbw / algbw of an AllReduce over n ranks: 2 (n - 1) / n (nccl-tests doc/PERFORMANCE.md). None for other collectives, or where n
    is not known. With NCCL_TESTS_SPLIT only the group of rank 0 is measured."""
    program = run.program.value if isinstance(run.program, Value) else ""
    if not isinstance(run.ranks, Value) or not ("all_reduce_perf" in program or "allreduce" in program):
        return None
    first = min(run.devices, key=lambda d: d.rank).group
    n = sum(1 for d in run.devices if d.group == first)
    return 2 * (n - 1) / n


def agrees(row: Row, factor: float | None = None, *, cpu_time: bool = False) -> bool:
    """Whether size, time and bandwidths of a row fit together: algbw = size / time (unless `cpu_time`: that is another time), and
    busbw = `factor` times that, or the same multiple of it in both placements."""
    return all(cpu_time or _speed(row.size_bytes, p) for p in row.placements) and _factors(row.placements, factor)


def _speed(size: int, p: Placement) -> bool:
    """Two decimals of algbw, and of time: for small sizes nothing but rounding is left."""
    made = size / 1000 / p.time_us if p.time_us else 0.0
    share = WIDE_ROUNDING if p.time_us >= WIDE_US else ROUNDING
    return abs(made - p.algbw_gbytes_per_s) <= max(0.01, share * max(made, p.algbw_gbytes_per_s))


def _factors(placements: tuple[Placement, ...], factor: float | None) -> bool:
    factors = [p.busbw_gbytes_per_s / p.algbw_gbytes_per_s for p in placements if p.algbw_gbytes_per_s >= 1]
    want = factor if factor is not None else factors[0] if factors else 0.0
    return all(abs(f - want) <= ROUNDING * max(f, want) and f <= 2 * (1 + ROUNDING) for f in factors)
