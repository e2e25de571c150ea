"""What the kernel of each node said in the last hours: kills for want of memory, GPU errors, links, disks, hung tasks.

What it looks at: the kernel's log (journalctl -k, else dmesg) of the last `kernel_log.hours`, on the node's own clock.

Why it matters: the kernel names a cause that NCCL shows only as a hang or `remote peer closed connection`.

When it fails: a process of a consumer was killed, a fatal Xid, a fabric link that flaps or is gone, NIC or PCIe errors,
I/O errors, a file server that does not answer, a CPU that was stuck. What hit another control group is not blamed on the
job, and file system frames in the trace of a kill are no storage error. It warns of what may concern the job.

How to fix: each finding names the device or the control group, the line that proves it, and what to do.

Cost and risk: reads only, as root; up to 1 MB from each node.
"""

from fabrictool.check import Check
from fabrictool.prove import kernel_log
from fabrictool.system import sections

CHECK = Check(sections=sections.kernel_log, judge=kernel_log.judge,
              unproven=("what happened before the last boot, or before the log begins",))
