"""Whether consumers may lock the memory that RDMA registers.

What it looks at: Max locked memory and CAP_IPC_LOCK of each consumer's processes, LimitMEMLOCK of services that do not
run, and the limit of a login.

Why it matters: every buffer that a NIC reads or writes is locked. With the usual 8 MiB or 64 KiB ibv_reg_mr fails, and
NCCL ends with `Cannot allocate memory`, while other libraries fall back to TCP.

When it fails: a process of a consumer has no CAP_IPC_LOCK and may lock less than `memlock.at_least` of the spec. A small
limit of logins only warns: it counts for ranks that are started over SSH.

How to fix: docker run --ulimit memlock=-1, LimitMEMLOCK=infinity in a drop-in, or /etc/security/limits.d/; then start
the consumer anew when its work allows.

Cost and risk: reads /proc, as root.
"""

from fabrictool.check import Check
from fabrictool.prove import memlock
from fabrictool.system import sections

CHECK = Check(sections=sections.memlock, judge=memlock.judge)
