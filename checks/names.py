"""Whether a node's own name and its peers' names lead to the fabric's bootstrap addresses.

What it looks at: how each name resolves on the node and in its containers, /etc/hosts, and the cloud-init template.

Why it matters: Gloo and torch.distributed advertise what their own name resolves to. 127.0.1.1, as Debian installs it,
makes every peer connect to itself, and the job hangs.

When it fails: the own name is a loopback address, a peer has another address here than elsewhere, an answer comes from
mDNS, or a template would write the old line back at the next boot.

How to fix: `fabrictool apply` replaces the 127.0.1.1 line (sudo needs one, so it is not deleted) and the template's.

Cost and risk: reads only; asks the resolver of the node.
"""

from fabrictool.check import Check

CHECK = Check(rooms=("names",))
