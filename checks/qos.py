"""Whether RoCE traffic gets the lossless priority that the spec asks for, on this host's side.

What it looks at: trust, DSCP to priority, PFC, traffic classes and buffers, global pause, DCBX, other writers of QoS,
and whether it all comes back after a reboot; read with mlnx_qos and, as a second reader, dcb.

Why it matters: RoCE packets in a lossy priority are dropped under load, and one drop costs a retransmission of many.

When it fails: a value differs, two readers disagree, another program writes QoS too, or nothing would set it at boot.

How to fix: `fabrictool apply` writes one setting a call and reads it back. A change of PFC flaps the link, so it needs
consent, and is refused while RDMA queue pairs are up or on a management interface.

Cost and risk: reads only. It proves the host's side, never that the switch is lossless.
"""

from fabrictool.check import Check

CHECK = Check(rooms=("qos",))
