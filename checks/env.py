"""Whether NCCL, Gloo and UCX are told to use the fabric, where they run.

What it looks at: /etc/nccl.conf, env-files, profile.d and unit drop-ins that the spec names, and the environment of
running consumers (/proc/PID/environ, allow-listed names only).

Why it matters: a wrong name in NCCL_IB_HCA or a socket interface is no error: NCCL falls back to TCP, or Gloo hangs.

When it fails: a file differs from what the spec derives, a name does not exist on this node, a GID index is pinned,
debug output is left on, a place with precedence says otherwise, or a consumer still runs with older values.

How to fix: `fabrictool apply` writes the files. Restart a consumer yourself when it suits its users.

Cost and risk: reads only; no process is entered or restarted.
"""

from fabrictool.check import Check

CHECK = Check(rooms=("env",))
