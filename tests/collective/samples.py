"""Outputs of nccl-tests for builds of which there is no capture, written by hand from their formats; and the captures."""

from __future__ import annotations

from pathlib import Path

CAPTURES = Path(__file__).resolve().parent.parent / "captures" / "nccl-tests"
MIB256 = 268435456


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


TEXTS = tuple(sorted(p.name for p in CAPTURES.glob("*.txt")))
JSONS = tuple(sorted(p.name for p in CAPTURES.glob("*.json")))
CONCLUDED = ("i_p99.txt", "mpi_local.txt", "mpi_mismatch.txt", "mpi_tagged.txt", "mpi_twohosts.txt", "nvlink.txt", "shm.txt", "socket.txt")

HEAD = """\
# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007
# Collective test starting: all_reduce_perf_mpi
"""
ASKS = """\
# nThread 1 nGpus 1 minBytes 268435456 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\
 unalign: 0
#
# Using devices
"""
DEVICES = "".join(f"#  Rank {r:2d} Group  0 Pid {4100 + r:6d} on {f'spark0{r + 1}':>10s} device  0 [000f:01:00] NVIDIA GB10\n"
                  for r in range(4))
TABLE = """\
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
"""
PREAMBLE = "   268435456      67108864     float     sum      -1"
OUT = "  17600.0   15.25   22.88       0"
IN = "  17580.0   15.27   22.90       0"
FOOT = """\
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 22.89
#
# Collective test concluded: all_reduce_perf_mpi
#

"""
ROW = PREAMBLE + OUT + IN + "\n"
HEALTHY = HEAD + ASKS + DEVICES + TABLE + ROW + FOOT
INFO = "NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"

# Before mid-2022: no root column, the largest deviation in place of a count, no line that closes.
OLD_ERROR = """\
# nThread 1 nGpus 1 minBytes 4096 maxBytes 16384 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid  26528 on  dgx-work01 device  0 [0x07] NVIDIA A100-SXM4-40GB
#   Rank  1 Pid  27302 on  dgx-work02 device  0 [0x07] NVIDIA A100-SXM4-40GB
#
#                                                       out-of-place                       in-place
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        4096          1024     float     sum    93.73    0.04    0.04  1e-06    93.15    0.04    0.04  0e+00
        8192          2048     float     sum    96.51    0.08    0.08  1e-06    94.98    0.09    0.09  1e-06
       16384          4096     float     sum    96.70    0.17    0.17  5e-07    94.98    0.17    0.17  1e-06
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.098
#
"""
# 2018: other names, milliseconds, no pid, no '#' before the last lines.
OLD_MS = """\
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
# NCCL Tests compiled with NCCL 2.4
# Using devices
#   Rank  0 on       ncrh device  0 [0x05] GeForce RTX 2080 Ti
#   Rank  1 on       ncrh device  1 [0x06] GeForce RTX 2080 Ti

#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
     1048576        262144   float     sum    0.230   4.56   4.56    1e-07    0.231   4.54   4.54    1e-07
 Out of bounds values : 0 OK
 Avg bus bandwidth    : 4.55

"""
# 2.13: #wrong five wide, PCI bus alone, no "Collective test" lines.
V2_13 = """\
# nThread 1 nGpus 2 minBytes 1073741824 maxBytes 1073741824 step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\
 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid     21 on  worker-1 device  0 [0x8c] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid     21 on  worker-1 device  1 [0x91] NVIDIA A100-SXM4-40GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1    11774   91.20   91.20      0    11774   91.19   91.19      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 91.195
#
"""
# -S: a timestamp behind every row; -I and -S together: times per iteration too.
STAMPED = HEALTHY.replace("#wrong     time   algbw   busbw  #wrong", "#wrong     time   algbw   busbw  #wrong           timestamp").replace(
    IN + "\n", IN + "  2026-11-29 18:16:39\n")
_ITER = "    i_min    i_max    i_p99    i_cv%"
ALL_COLUMNS = HEALTHY.replace("#wrong     time   algbw   busbw  #wrong", f"#wrong{_ITER}     time   algbw   busbw  #wrong{_ITER}"
                              "           timestamp").replace(
    ROW, PREAMBLE + OUT + "  17500.1  17800.2  17799.9     0.45" + IN + "  17500.1  17900.2  17899.9     0.55  2026-11-29 18:16:39\n")
# All-to-all in place is never verified; wide numbers lose their decimals, then get an exponent.
WIDE = HEALTHY.replace(ROW, PREAMBLE.replace("268435456", "8589934592").replace("67108864", "2147483648")
                       + "  1.2e+07    0.72    1.07       0" + "  1.2e+07    0.72    1.07     N/A\n").replace("268435456", "8589934592")
LAYOUTS = {"error": OLD_ERROR, "ms": OLD_MS, "2.13": V2_13, "stamped": STAMPED, "all columns": ALL_COLUMNS, "now": HEALTHY}
