"""Whether an AllReduce between the nodes runs over RDMA, moves every byte over the rails, is right, and is fast.

What it looks at: three runs of one size with NCCL_ALGO=Ring and the environment of the named consumer; NCCL's logs of
every rank, the RDMA counters around each run, the results, the bandwidth beside the rate that was read from the ports
(twins of a port counted once). One run more with NCCL's own choice of algorithm is told, not gated.

Why it matters: over TCP a 200G link still gives 150 Gb/s, exits with 0 and looks well. Only all of it together shows
that the fabric works.

When it fails: a channel between nodes runs over TCP, counters stay flat or short, a rail idles, numbers are wrong, a
rank dies or hangs, the median is below min_share_of_line_rate. A missing log or foreign traffic leaves no verdict.

How to fix: take the first finding first; `fabrictool explain CODE`. Then link, rdma, env, path_mtu, bootstrap_tcp.

Cost and risk: loads GPUs and fabric for a minute; refuses where GPUs are busy (--force). Nothing is left behind.
"""

from fabrictool.check import Check
from fabrictool.prove.allreduce import judge

CHECK = Check(probes=("allreduce",), judge=judge, unproven=(
    "that the switch drops nothing under load: hosts see their own side only",
    "other sizes and collectives, more nodes at once, and hours under load"))
