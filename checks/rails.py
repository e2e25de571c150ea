"""Whether each port of the fabric can carry its rate, and whether its NIC reaches GPU memory directly.

What it looks at: functions of a port, PCIe width and speed, link state and rate; where `gpu.gpudirect` asks: nvidia_peermem
or dma-buf, the distance of NIC and GPU, ACS. In a run with `allreduce`: what each function carried.

Why it matters: a NIC that shows 200 Gb/s may carry 13: link and PCIe look fine then, and only traffic tells.

When it fails: a link is slow or down, a slot narrow or slow, GPUDirect is required and missing, a redirect (ACS) stands
between NIC and GPU, or functions with a healthy link carried 2 to 12 % of the port's rate (8 to 25 Gb/s of 200).

How to fix: each finding says what: cable, slot, BIOS, modprobe nvidia_peermem. A degraded NIC needs a power cycle; in a
ring it slows all nodes, so look for it by runs over two nodes (--limit).

Cost and risk: reads only (lspci as root); it makes no traffic: `fabrictool check allreduce rails` does.
"""

from fabrictool.check import Check
from fabrictool.prove import rails
from fabrictool.system import sections

CHECK = Check(sections=sections.rails, judge=rails.judge, unproven=("that NCCL uses GPUDirect: only its log tells",))
