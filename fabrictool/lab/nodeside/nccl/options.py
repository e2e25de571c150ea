"""The command line of all_reduce_perf of nccl-tests 2.19.6."""

from __future__ import annotations

import getopt
import re
from dataclasses import dataclass, field

# short, long, what usage says
KNOWN = (
    ("t", "nthreads", "<num threads>"), ("g", "ngpus", "<gpus per thread>"), ("b", "minbytes", "<min size in bytes>"),
    ("e", "maxbytes", "<max size in bytes>"), ("i", "stepbytes", "<increment size>"), ("f", "stepfactor", "<increment factor>"),
    ("n", "iters", "<iteration count>"), ("m", "agg_iters", "<aggregated iteration count>"),
    ("w", "warmup_iters", "<warmup iteration count>"),
    ("N", "run_cycles", "<cycle count> run & print each cycle (default: 1; 0=infinite)"), ("p", "parallel_init", "<0/1>"),
    ("c", "check", "<check iteration count>"), ("o", "op", "<sum/prod/min/max/avg/mulsum/all>"), ("d", "datatype", "<nccltype/all>"),
    ("r", "root", "<root>"),
    ("z", "blocking", "<0/1/2/3> 1=barrier after each inner iter (-m), 2=no barrier, 3=wait and barrier after each outer iter (-n)"),
    ("y", "stream_null", "<0/1>"), ("T", "timeout", "<time in seconds>"), ("G", "cudagraph", "<num graph launches>"),
    ("C", "report_cputime", "<0/1>"), ("S", "report_timestamps", "<0/1> report timestamps (default 0)"),
    ("J", "output_file", "<file> write output to filepath, if accessible. Infer type from suffix (only json supported presently.)"),
    ("a", "average", "<0/1/2/3> report average iteration time <0=RANK0/1=AVG/2=MIN/3=MAX>"),
    ("R", "local_register", "<0/1/2> enable local (1) or symmetric (2) buffer registration on send/recv buffers (default: disable (0))"),
    ("x", "cta_policy", "<0/1/2> set CTA policy (NCCL_CTA_POLICY_DEFAULT (0), NCCL_CTA_POLICY_EFFICIENCY (1), NCCL_CTA_POLICY_ZERO (2)) "
                        "(default: do not set)"),
    ("D", "device_implementation", "<implementation number> enable device implementation (default: 0, use NCCL implementation; "
                                   "requires -R 2 if > 0)"),
    ("V", "device_cta_count", "<number> set number of CTAs for device implementation (default: 16)"),
    ("M", "memory", "<0/1> enable memory usage report (default: 0)"),
    ("u", "unalign", "<index of first element> Misalign source and destination buffers (default: 0)"),
    ("I", "per_iter_timing", "<0/1> per-iteration CUDA event timing\n\t    (best with -z 0, -z 2, or -z 3; with -z 1 includes barrier wait;"
                             "\n\t    i_p99 uses nearest-rank percentile and may equal i_max\n\t    with <100 samples) (default: 0)"),
    ("K", "per_iter_skip", "<count> exclude leading samples from -I summary stats (default: 0)"))
SUFFIXES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
TYPES = {"int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float": 4, "double": 8, "bfloat16": 2,
         "f8e4m3": 1, "f8e5m2": 1}
OPS = ("sum", "prod", "max", "min", "avg", "mulsum")


class Usage(Exception):
    """Print the usage and end well, as the program does for every option that it does not know."""


class Refused(Exception):
    """An argument that cannot be: text on stderr, status 255."""


@dataclass
class Options:
    nthreads: int = 1
    ngpus: int = 1
    minbytes: int = 32 << 20
    maxbytes: int = 32 << 20
    stepbytes: int = 1 << 20
    stepfactor: int = 1
    iters: int = 20
    agg_iters: int = 1
    warmup_iters: int = 1
    run_cycles: int = 1
    check: int = 1
    types: list[str] = field(default_factory=lambda: ["float"])
    ops: list[str] = field(default_factory=lambda: ["sum"])
    blocking: int = 0
    cudagraph: int = 0
    timestamps: int = 0
    parallel_init: int = 0
    unalign: int = 0
    output: str = ""
    per_iter: int = 0
    per_iter_skip: int = 0

    def sizes(self) -> list[int]:
        found, size = [], self.minbytes
        while size <= self.maxbytes:
            found.append(size)
            size = size * self.stepfactor if self.stepfactor > 1 else size + self.stepbytes
            if self.stepfactor <= 1 and self.stepbytes <= 0:
                break
        return found


def usage(program: str) -> str:
    return f"USAGE: {program} \n" + "".join(f"\t[-{s},--{name} {what}] \n" for s, name, what in KNOWN) + "\t[-h,--help]\n"


def size_of(text: str, name: str) -> int:
    """K, M, G are binary. Refused for what is no size."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)([KMGTB]?)[bB]?", text, re.IGNORECASE)
    if m is None:
        raise Refused(f"invalid size specified for '{name}'")
    return int(float(m[1]) * SUFFIXES[m[2].upper()])


def _number(text: str) -> int:
    """As strtol reads it: what is no number is 0."""
    m = re.match(r"\s*([+-]?)(0x[0-9a-f]+|\d+)", text, re.IGNORECASE)
    return int(m[1] + m[2], 0 if m[2].lower().startswith("0x") else 10) if m else 0


def parse(argv: list[str]) -> Options:
    """Usage or Refused for what the program would not run with."""
    try:
        pairs, _ = getopt.gnu_getopt(argv, "h" + "".join(f"{s}:" for s, _, _ in KNOWN), ["help", *(f"{n}=" for _, n, _ in KNOWN)])
    except getopt.GetoptError as error:
        raise Usage(error.msg) from error
    long = {f"-{s}": n for s, n, _ in KNOWN}
    o = Options()
    for key, value in pairs:
        name = long.get(key, key.lstrip("-"))
        if name in ("h", "help"):
            raise Usage("")
        _set(o, name, value)
    if o.minbytes > o.maxbytes:
        raise Refused(f"invalid sizes for 'minbytes' and 'maxbytes': {o.minbytes} > {o.maxbytes}")
    return o


def _set(o: Options, name: str, value: str) -> None:
    if name in ("minbytes", "maxbytes", "stepbytes"):
        setattr(o, name, size_of(value, name))
    elif name in ("datatype", "op"):
        known = list(TYPES) if name == "datatype" else list(OPS)
        chosen = known if value == "all" else [value] if value in known else ["float" if name == "datatype" else "sum"]
        setattr(o, "types" if name == "datatype" else "ops", chosen)
    elif name == "output_file":
        o.output = value
    elif name == "per_iter_timing":
        o.per_iter = _number(value)
    elif name == "report_timestamps":
        o.timestamps = _number(value)
    elif hasattr(o, name):
        setattr(o, name, _number(value))
