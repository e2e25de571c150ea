"""Whether RDMA devices are active at the spec's rate with a RoCE v2 address.

What it looks at: port state, rate, link layer, GIDs with type and interface, active MTU, the global traffic class.

Why it matters: NCCL leaves out a device that is down without a word, and then runs on fewer rails or on TCP.

When it fails: a device is missing or down, its rate differs from rate_gbit, no RoCE v2 GID holds the rail's IPv4
address, or a global traffic class overrides what NCCL asks for.

How to fix: bring the interface up with its address (that makes the GID); for a low rate look at cable, port and PCIe.
A global traffic class is cleared in infiniband/DEVICE/tc/1/traffic_class.

Cost and risk: reads sysfs only. It does not show that traffic uses these devices.
"""

from fabrictool.check import Check

CHECK = Check(rooms=("rdma",))
