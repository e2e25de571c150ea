"""NCCL's own TCP network: every process connects to the root, and then to the next process, at the addresses that they tell."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import threading
import time
from typing import Any

from fabrictool.lab.nodeside.nccl.errors import REMOTE, SYSTEM, NcclError
from fabrictool.lab.nodeside.nccl.interfaces import Interface
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.params import Params

RETRIES, RETRY_MS = 34, 100  # NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC: the n-th wait is n times as long
AGAIN = (errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH)
GONE = "socketProgress: Connection closed by remote peer "
Address = tuple[Any, ...]


def listen(interface: Interface) -> socket.socket:
    """On a port that the kernel picks."""
    line = socket.socket(interface.family, socket.SOCK_STREAM)
    line.bind(interface.at(0))
    line.listen(128)
    return line


def shown(address: Address) -> str:
    return f"{address[0]}<{address[1]}>"


def connect(address: Address, log: Log, params: Params) -> socket.socket:
    """Tries again as NCCL does. NcclError after the last try. A connection that nobody answers waits as long as the kernel does."""
    tries = params.number("SOCKET_RETRY_CNT", RETRIES)
    pause = params.number("SOCKET_RETRY_SLEEP_MSEC", RETRY_MS)
    for n in range(1, tries + 2):
        line = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            line.connect(tuple(address))
        except OSError as error:
            line.close()
            why = os.strerror(error.errno or 0)
            if error.errno not in AGAIN:
                text = f"socketStartConnect: Connect to {shown(address)} failed : {why}"
                log.warn("misc/socket.cc:588", text)
                raise NcclError(SYSTEM, text) from error
            if n > tries:
                text = f"socketPollConnect: connect to {shown(address)} returned {why}, exceeded error retry count after {n} attempts"
                log.warn("misc/socket.cc:556", text)
                raise NcclError(REMOTE, text) from error
            log.info("NET|BOOTSTRAP|INIT", f"socketPollConnect: connect to {shown(address)} returned {why}, "
                                           f"retrying ({n}/{tries}) after sleep for {n * pause} msec")
            time.sleep(n * pause / 1000)
            continue
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return line
    raise NcclError(SYSTEM)


class Channel:
    """Messages over one connection."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line

    def send(self, what: object) -> None:
        data = json.dumps(what).encode()
        self.line.sendall(len(data).to_bytes(4, "little") + data)

    def receive(self) -> Any:
        """ConnectionError when the other end has gone."""
        return json.loads(self._exactly(int.from_bytes(self._exactly(4), "little")))

    def _exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self.line.recv(size - len(parts))
            if not part:
                raise ConnectionResetError(errno.ECONNRESET, "closed")
            parts += part
        return parts


class Root:
    """Rank 0's meeting point: tells everybody the address of the next one. Its address is what the unique id holds."""

    def __init__(self, interface: Interface, size: int) -> None:
        self._listener, self._size = listen(interface), size
        self.address: Address = self._listener.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        here: dict[int, tuple[Channel, Address]] = {}
        with contextlib.suppress(OSError, ValueError, KeyError), self._listener:
            while len(here) < self._size:
                channel = Channel(self._listener.accept()[0])
                said = channel.receive()
                here[said["process"]] = (channel, said["address"])
            for process, (channel, _) in here.items():
                channel.send(here[(process + 1) % self._size][1])


class Ring:
    """The processes of a communicator in a ring. `gather` is its only message: everything else is built on it."""

    def __init__(self, process: int, size: int, root: Address, interface: Interface, log: Log, params: Params) -> None:
        self.process, self.size, self.log = process, size, log
        if size == 1:
            return
        own = listen(interface)
        hello = Channel(connect(root, log, params))
        hello.send({"process": process, "address": own.getsockname()})
        self._guard(lambda: self._join(own, hello, params))

    def _join(self, own: socket.socket, hello: Channel, params: Params) -> None:
        self._next = Channel(connect(hello.receive(), self.log, params))
        self._previous = Channel(own.accept()[0])
        own.close()

    def gather(self, mine: object) -> list[Any]:
        """Everybody's message, by process. NcclError when a neighbour has gone."""
        found: list[Any] = [None] * self.size
        found[self.process] = mine

        def around() -> None:
            for step in range(self.size - 1):
                self._next.send(found[(self.process - step) % self.size])
                found[(self.process - step - 1) % self.size] = self._previous.receive()

        self._guard(around)
        return found

    def _guard(self, work: Any) -> None:
        try:
            work()
        except (OSError, ValueError) as error:
            self.log.warn("misc/socket.cc:72", GONE)
            for where in ("misc/socket.cc:845", "bootstrap.cc:552"):
                self.log.trace(where, REMOTE)
            raise NcclError(REMOTE, GONE) from error
