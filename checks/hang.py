"""Where the ranks of named consumers stand, who waits for whom, and why. For a job that hangs now.

What it looks at: of each process its stack (py-spy, gdb or eu-stack, where the node has one), sockets that listen or ask
in vain, its allowed variables and /etc/hosts, GPU use, lines of its log about communication; whether RDMA data moves.

Why it matters: one rank errs at once and the others wait, often for 30 minutes; looking at one of them blames the wrong one.

When it fails: a rank gave a loopback address, connections get no answer, ranks are missing, variables differ, a start does
not end, or one rank stands apart while all others wait. It warns where all wait and no byte of RDMA moves.

How to fix: the finding names the rank that is different from the others, and what that phase means.

Cost and risk: as root on the node; nothing is run in a container. A stack tool stops the process for a moment: for about
a second with --native. It looks only at consumers that the spec names.
"""

from fabrictool.check import Check
from fabrictool.prove import hang

CHECK = Check(probes=("hang",), judge=hang.judge)
