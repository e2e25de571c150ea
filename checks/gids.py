"""Whether each function has the RoCE v2 GID that NCCL finds by itself, and whether anything pins another one.

What it looks at: the GID table of each RDMA device (type, address, interface), and NCCL_IB_GID_INDEX in files (of
/home and of all homes in /etc/passwd too) and in running consumers; the NCCL that consumers have loaded.

Why it matters: an index is a place in a table that moves with every address and VLAN. A pinned one that was right
yesterday is RoCE v1 or link-local today, and queue pairs then fail with `Invalid argument` or reach nobody.

When it fails: no RoCE v2 GID holds the rail's IPv4 address on its interface, an index is pinned, or a consumer's NCCL is
older than 2.21 and takes index 0.

How to fix: give the interface its address; take NCCL_IB_GID_INDEX out of the file that the finding names; use NCCL 2.21
or newer.

Cost and risk: reads only. It is part of what `rdma` and `env` look at.
"""

from fabrictool.check import Check
from fabrictool.prove import gids

CHECK = Check(judge=gids.judge)
