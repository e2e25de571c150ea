"""Whether nodes of one group run the same versions, and whether files that the spec names are what they should be.

What it looks at: kernel, NVIDIA driver, CUDA, GPUs and VBIOS, NIC firmware and driver, OFED, rdma-core, NCCL of the node;
in consumers NCCL, CUDA runtime and image; and `versions.probes` of the spec (a file's sha256, or a text in it).

Why it matters: ranks with different NCCL builds fail with `Message truncated` or hang, and one node with other firmware is
slow for no visible reason.

When it fails: a node differs from the majority of its group; without a majority all groups are named and no node is called
the odd one. A probe fails by itself, on each node and in each container.

How to fix: bring the nodes to one version; which one is right is yours to say. Start containers from one image digest.

Cost and risk: reads only, root for containers; files in containers are read through /proc/PID/root. A probe reads its
whole file.
"""

from fabrictool.check import Check
from fabrictool.prove import versions
from fabrictool.system import sections

CHECK = Check(sections=sections.versions, judge=versions.judge,
              unproven=("that a version is a good one: nodes are compared with each other, not with a list",))
