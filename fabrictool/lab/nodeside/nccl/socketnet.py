"""The socket transport: every byte is really sent, over TCP connections between the ranks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from socket import socket
from typing import Any

from fabrictool.lab.nodeside.nccl.bootstrap import GONE, Channel, connect, listen
from fabrictool.lab.nodeside.nccl.errors import REMOTE, NcclError
from fabrictool.lab.nodeside.nccl.interfaces import Interface
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.nets import Layout
from fabrictool.lab.nodeside.nccl.params import Params
from fabrictool.lab.nodeside.nccl.ring import Edge

CHUNK = 1 << 20
DEFAULT_MBIT = 10000  # what NCCL takes an interface for that does not tell its speed
OF_LINE_RATE = 0.94  # TCP's share of an Ethernet link


class SocketNet:
    """`tcp_gbytes`: what the node's CPUs can do (GB/s)."""

    name = "Socket"

    def __init__(self, interfaces: Sequence[Interface], tcp_gbytes: float, log: Log, params: Params) -> None:
        self.interfaces, self.tcp_gbytes, self.log, self.params = interfaces, tcp_gbytes, log, params
        self._listener = listen(interfaces[0])
        self._out: dict[Edge, socket] = {}
        self._in: dict[Edge, socket] = {}

    def tail(self, edge: Edge) -> str:
        return f"Socket/{edge.channel % len(self.interfaces)}"

    def offer(self) -> Any:
        return self._listener.getsockname()

    def connect(self, layout: Layout, offers: Sequence[Any]) -> None:
        expected = {(e.channel, e.source): e for e in layout.arriving()}

        def accept() -> None:
            while len(self._in) < len(expected):
                line = self._listener.accept()[0]
                channel, source = Channel(line).receive()
                self._in[expected[(channel, source)]] = line

        waiting = threading.Thread(target=accept, daemon=True)
        waiting.start()
        for edge in layout.leaving():
            line = connect(offers[layout.places[edge.target].process], self.log, self.params)
            Channel(line).send([edge.channel, edge.source])
            self._out[edge] = line
        waiting.join()
        self._listener.close()

    def gbytes(self, layout: Layout) -> float:
        rate = sum(self._mbit(i.name) for i in self.interfaces) / 8000 * OF_LINE_RATE
        return min(self.tcp_gbytes, rate)

    def _mbit(self, name: str) -> int:
        try:
            found = int(Path(f"/sys/class/net/{name}/speed").read_text())
        except (OSError, ValueError):
            found = -1
        if found > 0:
            return found
        self.log.info("NET", f"Could not get speed from /sys/class/net/{name}/speed. Defaulting to 10 Gbps.")
        return DEFAULT_MBIT

    def move(self, sizes: Mapping[Edge, int], calls: int) -> Any:
        broken: list[OSError] = []

        def guarded(work: Callable[[socket, int], None], line: socket, size: int) -> None:
            try:
                work(line, size)
            except OSError as error:
                broken.append(error)

        jobs = [threading.Thread(target=guarded, args=(work, line, sizes[edge]), daemon=True)
                for work, lines in ((_send, self._out), (_receive, self._in)) for edge, line in lines.items()]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        if broken:
            self.log.warn("misc/socket.cc:72", GONE)
            for where in ("misc/socket.cc:845", "transport/net_socket.cc:557", "transport/net.cc:1508", "proxy.cc:965"):
                self.log.trace(where, REMOTE)
            raise NcclError(REMOTE, GONE)
        return None

    def heard(self, words: Sequence[Any]) -> None:
        pass

    def close(self) -> None:
        for line in (*self._out.values(), *self._in.values()):
            line.close()


def _send(line: socket, size: int) -> None:
    data = memoryview(bytes(CHUNK))
    while size > 0:
        size -= line.send(data[:min(size, CHUNK)])


def _receive(line: socket, size: int) -> None:
    buffer = memoryview(bytearray(CHUNK))
    while size > 0:
        got = line.recv_into(buffer, min(size, CHUNK))
        if not got:
            raise ConnectionResetError("closed")
        size -= got
