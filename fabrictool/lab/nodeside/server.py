"""The node's tool server: every call of a stand-in comes here, and is answered by a child of its own.

It runs as root, as the daemons do that nmcli and systemctl ask; what the caller may do is told by the caller's own user id, which
the kernel says. A caller that goes away (killed by `timeout`) takes its answer's child along.
"""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import struct
import traceback
from collections.abc import Callable
from pathlib import Path

from fabrictool.lab.nodeside import main, standins
from fabrictool.lab.nodeside.client import ADDRESS
from fabrictool.lab.nodeside.tool import Caller

LIMIT_S = 10
BUG = 70


def start(shared: Path) -> None:
    """Listen, then serve in a child of the caller (which is PID 1: it goes on booting)."""
    Path(ADDRESS).unlink(missing_ok=True)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.bind(ADDRESS)
    os.chmod(ADDRESS, 0o666)
    line.listen(128)
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
        _preload()
        while True:
            with contextlib.suppress(OSError):
                _serve(line, shared)
    line.close()


def _preload() -> None:
    """Every stand-in, once: the children that answer have them already."""
    for module in pkgutil.iter_modules(standins.__path__):
        with contextlib.suppress(Exception):  # its callers will see what is wrong with it
            importlib.import_module(f"{standins.__name__}.{module.name}")


def _serve(line: socket.socket, shared: Path) -> None:
    peer, _ = line.accept()
    with peer:
        uid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        if os.fork():
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line.close()
        try:
            _answer(peer, shared, uid == 0)
        finally:
            os._exit(0)


def _answer(peer: socket.socket, shared: Path, root: bool) -> None:
    peer.settimeout(LIMIT_S)
    data = b""
    while part := peer.recv(65536):
        data += part
    tool, argv, folder, raw = marshal.loads(data)
    environ = {os.fsdecode(k): os.fsdecode(v) for k, v in raw.items()}
    with contextlib.suppress(OSError):
        os.chdir(folder)
    try:
        answer = main.call(tool, argv, shared, root, Caller(environ, _gone(peer)))
        reply = (answer.rc, answer.out.encode("utf-8", "surrogateescape"), answer.err.encode("utf-8", "surrogateescape"))
    except Exception:  # noqa: BLE001  a bug in a stand-in must be seen as one, in the caller's own output
        reply = (BUG, b"", f"lab: stand-in {tool}: {traceback.format_exc()}".encode())
    peer.settimeout(None)
    peer.sendall(marshal.dumps(reply))


def _gone(peer: socket.socket) -> Callable[[float], bool]:
    """Waits until the caller has gone, at most so many seconds; whether it has."""
    def wait(seconds: float) -> bool:
        poll = select.poll()
        poll.register(peer, 0)  # only a hang-up counts: the caller has sent all it had to say
        return bool(poll.poll(seconds * 1000))
    return wait

