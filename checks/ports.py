"""Whether every function of the spec is one interface and one RDMA device on the node.

What it looks at: each function's selectors (interface, MAC, RDMA device) against sysfs, and the physical port behind
it (sys_image_guid and phys_port_name).

Why it matters: everything else is set and judged on the interface that a function is bound to. A selector that points
at the wrong card makes every later verdict one about the wrong card.

When it fails: a selector matches nothing, or two selectors of one function match different devices.

How to fix: correct the names in the spec. On a DGX Spark the interfaces vanish without a cable: plug it in first, and
look whether it sits in the other cage.

Cost and risk: reads sysfs only; changes nothing.
"""

from fabrictool.check import Check

CHECK = Check(rooms=("ports",))
