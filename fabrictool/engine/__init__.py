"""Everything that talks to nodes: connect, gather, apply in waves; and every workaround for pyinfra or paramiko.

gevent has to patch the process before paramiko is imported, so importing this package does it first. pyinfra without the patch
connects hosts one by one and ignores time limits.
"""

import os

from gevent import monkey

monkey.patch_all()
os.environ.setdefault("PYINFRA_PROGRESS", "off")  # its spinner hangs at "Connecting" on some terminals; ours replaces it
