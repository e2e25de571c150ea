"""Whether every node can open TCP connections to any free port of the others' bootstrap addresses.

What it looks at: a listener of ours for some seconds on a port that the kernel chooses, at the bootstrap address of
each selected node, and connections to it from the other nodes, in both directions; above eight nodes from some of them.

Why it matters: NCCL, Gloo and torch meet on such ports before any RDMA. A firewall that lets only SSH pass makes their
start hang for minutes, without a word of why.

When it fails: a connection is refused, dropped, has no route or is answered by something else. It names the direction,
and the node or the pair that all that failed has in common.

How to fix: allow TCP between the bootstrap addresses for net.ipv4.ip_local_port_range in nft, ufw or firewalld, and in
a cloud's security group. See also the check names.

Cost and risk: needs python3 on the nodes. One listener a node, for at most 60 s; nothing of it is left afterwards.
"""

from fabrictool.check import Check
from fabrictool.prove.bootstrap_tcp import judge

CHECK = Check(probes=("bootstrap_tcp",), judge=judge, unproven=(
    "every port: one that the kernel chose was tried on each node", "that containers can do the same"))
