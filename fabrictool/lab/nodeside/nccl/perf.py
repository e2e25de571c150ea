"""all_reduce_perf: what the program does between its command line and its exit status."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
from dataclasses import dataclass

from fabrictool.lab.nodeside.capacity import UNIFIED, gpu_bus
from fabrictool.lab.nodeside.nccl import options, results, table
from fabrictool.lab.nodeside.nccl.comm import Comm
from fabrictool.lab.nodeside.nccl.device import Gpu, Hardware
from fabrictool.lab.nodeside.nccl.errors import NcclError
from fabrictool.lab.nodeside.nccl.group import Group, by_environment
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.options import TYPES, Options, Refused, Usage
from fabrictool.lab.nodeside.nccl.params import Params, home, resolve
from fabrictool.lab.nodeside.nccl.table import Placement

TEST_NCCL, TEST_GPUS, TEST_RESULT, TEST_ARGUMENTS = 3, 5, 7, 255  # exit statuses of 2.19.6
PR_SET_NAME = 15
GIB = 1 << 30
DAY_S = 86400


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass
class Run:
    """One process of the test."""

    program: str
    argv: list[str]
    o: Options
    group: Group
    host: str
    started: float

    @property
    def first(self) -> bool:
        return self.group.rank == 0

    def lines(self, *lines: str) -> None:
        if self.first:
            say("".join(f"{line}\n" for line in lines))


def main(argv: list[str]) -> int:
    """`argv`: with the program's own path. The exit status."""
    program = os.path.basename(argv[0])
    ctypes.CDLL(None).prctl(PR_SET_NAME, program.encode()[:15], 0, 0, 0)
    try:
        o = options.parse(argv[1:])
    except Usage as unknown:
        if str(unknown):
            print(f"{argv[0]}: {unknown}", file=sys.stderr)
        say(options.usage(program))
        return 0
    except Refused as refused:
        print(refused, file=sys.stderr)
        return TEST_ARGUMENTS
    try:
        group = by_environment(os.environ)
    except OSError as error:
        print(f"{argv[0]}: error while loading shared libraries: {error}", file=sys.stderr)
        return 127
    run = Run(program, argv, o, group, os.uname().nodename.partition(".")[0], time.time())
    rc = _test(run)
    if rc in (0, TEST_RESULT):
        group.finish()
    return rc


def _test(run: Run) -> int:
    o, group = run.o, run.group
    file = results.opened(o.output) if run.first and o.output else None
    if file:
        run.lines(f"# Writing JSON output to {file[1]}")
    run.lines(*table.opening(run.program, o))
    hosts = [h.decode() for h in group.gather(run.host.encode())]
    mine = o.nthreads * o.ngpus
    local = hosts[:group.rank].count(run.host)
    gpus = [local * mine + i + int(os.environ.get("NCCL_TESTS_DEVICE", "0") or 0) for i in range(mine)]
    hardware = Hardware()
    gpu = hardware.gpu(run.program, gpus[0])
    if gpus[-1] >= gpu.count:
        say(f"Invalid number of GPUs: {gpus[-1] + 1} requested but only {gpu.count} were found.\n"
            f"Please check the number of processes and GPUs per process.\n .. {run.host} pid {os.getpid()}: Test failure common.cu:1454\n")
        return TEST_GPUS
    devices = _devices(run, gpus, gpu)
    limit = (gpu.memory_mib * (1 << 20) - GIB) // (3 if o.check else 2)
    if o.maxbytes > limit:
        o.maxbytes = limit
        run.lines(f"#\n# Reducing maxBytes to {limit} due to memory limitation")
    params = Params({**resolve(os.environ, home()), **gpu.plugin})
    log = Log(params, run.host, os.getpid())
    where: tuple[str, ...] = ("common.cu:222", "common.cu:1620", "common.cu:1454")
    try:
        comm = Comm(group, gpus, gpu, hardware, log, params)
        where = ("all_reduce.cu:46", "common.cu:401", "common.cu:1086", "common.cu:1454")
        rows, busbw, errors = _rows(run, comm, gpu)
        comm.destroy()
    except NcclError as error:
        say(f"{run.host}: Test NCCL failure {where[0]} '{error}'\n"
            + "".join(f" .. {run.host} pid {os.getpid()}: Test failure {place}\n" for place in where[1:]))
        log.info("ALL", "ENV/Plugin: Closing env plugin ncclEnvDefault")
        return TEST_NCCL
    average = sum(busbw) / len(busbw) if busbw else 0.0
    least = float(os.environ["NCCL_TESTS_MIN_BW"]) if os.environ.get("NCCL_TESTS_MIN_BW") else None
    run.lines(*table.closing(run.program, errors, average, least))
    slow = least is not None and average < 0.9 * least
    if file:
        okay = "unchecked" if least is None else "false" if slow else "true"
        past = DAY_S if gpu.old_json else 0
        times = tuple(time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(t - past)) for t in (run.started, time.time()))
        with file[0] as out:
            out.write(results.document(run.argv, results.environment(), o, devices, rows, errors, (average, okay), (times[0], times[1])))
    comm.words.closing()
    return TEST_RESULT if errors or slow else 0


def _devices(run: Run, gpus: list[int], gpu: Gpu) -> list[dict[str, object]]:
    """Every rank's line, printed by the first process; and the first GPU of each process, for the file."""
    def bus(number: int) -> str:
        return "000f:01:00" if gpu.model in UNIFIED else gpu_bus(number)[:-2]

    said = [[run.group.rank * len(gpus) + i, os.getpid(), run.host, g, bus(g), gpu.model] for i, g in enumerate(gpus)]
    every = [json.loads(raw) for raw in run.group.gather(json.dumps(said).encode())]
    run.lines(*(table.device(*line) for lines in every for line in lines))
    return [{"rank": rank, "group": 0, "pid": pid, "hostname": host, "device": number, "device_hex": address, "device_info": model}
            for rank, pid, host, number, address, model in (lines[0] for lines in every)]


def _rows(run: Run, comm: Comm, gpu: Gpu) -> tuple[list[str], list[float], int]:
    """Every row: as JSON; the bandwidths; how many results were wrong."""
    o = run.o
    run.lines(*table.heading(o))
    sizes = o.sizes()
    for size in sizes if o.warmup_iters else ():
        _call(comm, size, "float", o.warmup_iters)
    rows, busbw, errors, cycle = [], [], 0, 0
    while o.run_cycles == 0 or cycle < o.run_cycles:
        cycle += 1
        for kind, op, size in ((k, p, s) for k in o.types for p in o.ops for s in sizes):
            count = size // TYPES[kind]
            if run.first:
                say(table.begin(count * TYPES[kind], count, kind, op))
            halves = []
            for _ in range(2):
                place = _half(run, comm, gpu, count, kind)
                halves.append(place)
                busbw.append(place.busbw)
                errors += place.wrong > 0
                if run.first:
                    say(table.half(place, o))
            if run.first:
                stamp = time.strftime("  %Y-%m-%d %H:%M:%S") if o.timestamps else ""
                say(f"{stamp}\n")
            rows.append(results.row(count * TYPES[kind], count, kind, op, halves[0], halves[1], o))
    return rows, busbw, errors


def _call(comm: Comm, size: int, kind: str, calls: int) -> tuple[float, ...]:
    return comm.all_reduce(size // TYPES[kind], TYPES[kind], calls).per_call_us


def _half(run: Run, comm: Comm, gpu: Gpu, count: int, kind: str) -> Placement:
    """One placement: one call that is not timed, the timed ones, those whose result is looked at."""
    o, size = run.o, count * TYPES[kind]
    _call(comm, size, kind, 1)
    every = _call(comm, size, kind, o.iters * o.agg_iters)
    wrong = -1.0
    if o.check:
        _call(comm, size, kind, o.check)
        wrong = float(sum(comm.gather(min(gpu.wrong, count))))
    time_us = sum(every) / len(every) if every else 0.0
    ranks = len(comm.layout.places)
    algbw = size / time_us / 1000 if time_us else 0.0
    return Placement(time_us, algbw, algbw * 2 * (ranks - 1) / ranks, wrong, every)


def start(argv: list[str]) -> None:
    """As a process: ends without tidying up where the real one would."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        rc = main(argv)
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(rc)
    os._exit(141)
