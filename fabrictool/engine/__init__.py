"""Everything that talks to nodes: connect, gather, apply in waves; and every workaround for pyinfra or paramiko.

gevent has to patch the process before paramiko is imported, so importing this package does it first. pyinfra without the patch
connects hosts one by one and ignores time limits.
"""

import os

from gevent import get_hub, monkey

monkey.patch_all()
# Ctrl-C is reported by the command line; gevent would print a line of its own before it raises it in the main greenlet.
get_hub().NOT_ERROR = (*get_hub().NOT_ERROR, KeyboardInterrupt)

from fabrictool.engine import decode  # noqa: E402 - imports paramiko

decode.install()
os.environ.setdefault("PYINFRA_PROGRESS", "off")  # its spinner hangs at "Connecting" on some terminals; ours replaces it
