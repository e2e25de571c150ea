"""Whether full frames pass undivided between the nodes, on every rail, both ways.

What it looks at: pings of the fabric's MTU that must not be fragmented, with small ones as control, between the rail
addresses of every pair of nodes; above eight nodes, of a covering set (see what the result calls not proven).

Why it matters: where a switch port or a host is smaller, small messages pass and large ones are lost. RDMA then hangs
or times out with no word of the MTU.

When it fails: large pings are lost while small ones pass. It names the pair, the node or the rail that all that failed
has in common. When small ones are lost as well it is not the MTU: no verdict.

How to fix: raise the MTU of the switch ports first, then the hosts (LINK_MTU_RUNNING); see `ip route get` for a cached
smaller path MTU.

Cost and risk: six pings for each direction of each pair and rail, at most four at a time from a node. Changes nothing.
"""

from fabrictool.check import Check
from fabrictool.prove.path_mtu import judge

CHECK = Check(probes=("path_mtu",), judge=judge, unproven=(
    "that RoCE passes: a ping is ICMP, not UDP 4791, and it rides no lossless priority",))
