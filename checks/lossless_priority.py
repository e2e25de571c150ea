"""How far it is proven that RoCE traffic rides its protected priority, from host to host.

What it looks at: traffic class, DSCP, priority, traffic class of the port, buffer and PFC on every node, and equal on
all; then the bytes by priority of each port during an AllReduce, both ways; pauses and ECN marks.

Why it matters: PFC that is set up everywhere protects nothing when the job's packets carry another DSCP.

When it fails: the chain is open on a node, nodes use different priorities, or the bytes ride another priority. Counters
that the firmware hides or that are not there: no verdict.

What `proven` says, each with those before it: nothing = the chain is open on some node; configured = it is closed on
each; agreed = all nodes use one priority; exercised = the run's bytes rode it; stressed = PFC or ECN worked then, and
nothing was lost.

How to fix: `fabrictool apply` closes the chain. For bytes on another priority look at NCCL_IB_TC in the job, at the
device's global traffic class, and at a switch that rewrites the DSCP.

Cost and risk: uses the same AllReduce as rdma_counters. It proves the hosts' side only.
"""

from fabrictool.check import Check
from fabrictool.prove.lossless_priority import judge

CHECK = Check(probes=("allreduce",), judge=judge, unproven=(
    "anything inside the switch: PFC, buffers, ECN thresholds, other paths; what was not seen there is not known",))
