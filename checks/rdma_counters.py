"""Whether an AllReduce's bytes went over the spec's RDMA devices, by the devices' own counters.

What it looks at: port_xmit_data and port_rcv_data of every function before and after each run, against the bytes that a
ring must move; each rail's share; an idle window first; RDMA devices that are no rail; loss, damage and ECN counters.

Why it matters: NCCL falls back to TCP without an error, a fast link hides it, and logs tell the plan, not the traffic.

When it fails: the counters stand still or miss bytes, a rail idles, a device that is no rail carried bytes, frames
arrived damaged, or packets were lost where the spec claims PFC of the switch. Traffic of others: no verdict.

How to fix: look at NCCL_IB_HCA, the ports and GIDs of the rail that is named, /dev/infiniband and the memory lock limit
of the job; for loss at PFC, cable and path MTU. A device that was reset gives no sample: run again.

Cost and risk: the AllReduce loads the fabric for about a minute. --control adds a run over TCP that must move none of
these counters.
"""

from fabrictool.check import Check
from fabrictool.prove.rdma_counters import judge

CHECK = Check(probes=("allreduce",), judge=judge, unproven=(
    "whose bytes they were: counters know no process; an idle window and exact amounts speak for ours",))
