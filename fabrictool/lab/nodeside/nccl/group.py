"""Where the processes of a job meet before NCCL is there: by MPI, or at an address of rank 0's."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from fabrictool.lab.nodeside.nccl.mpi import Mpi, launched

MEET_S = 600.0  # PyTorch's and ours: how long to wait for the others


class Group(Protocol):
    """All processes of a job."""

    rank: int
    size: int

    def gather(self, mine: bytes) -> list[bytes]:
        """Everybody's message, by rank; the same call everywhere. ConnectionError when somebody has gone."""

    def broadcast(self, mine: bytes) -> bytes:
        """Rank 0's message. Rank 0 does not wait for the others."""

    def finish(self) -> None:
        """Leave in order."""


class Alone:
    """A job of one process."""

    rank, size = 0, 1

    def gather(self, mine: bytes) -> list[bytes]:
        return [mine]

    def broadcast(self, mine: bytes) -> bytes:
        return mine

    def finish(self) -> None:
        pass


class Store:
    """Rank 0 keeps words at HOST:PORT; everybody (rank 0 too) sets and gets them there. To get is to wait until it is set. TimeoutError
    when not all come in time."""

    def __init__(self, rank: int, size: int, host: str, port: int, limit_s: float = MEET_S) -> None:
        self.rank, self.size = rank, size
        if rank == 0:
            threading.Thread(target=_serve, args=(socket.create_server(("", port), backlog=size),), daemon=True).start()
            host = "127.0.0.1"
        line = _connect(host, port, limit_s)
        self._stream = line.makefile("rwb")
        self._round = 0
        line.settimeout(limit_s)
        self.gather(b"")  # nobody begins, and rank 0 does not leave, before all are there
        line.settimeout(None)

    def _ask(self, *words: str) -> str:
        """ConnectionError when rank 0 has gone."""
        self._stream.write(json.dumps(words).encode() + b"\n")
        self._stream.flush()
        line = self._stream.readline()
        if not line:
            raise ConnectionError("rank 0 has gone")
        return str(json.loads(line))

    def gather(self, mine: bytes) -> list[bytes]:
        self._round += 1
        self._ask("set", f"{self._round} {self.rank}", mine.decode("latin-1"))
        return [self._ask("get", f"{self._round} {r}").encode("latin-1") for r in range(self.size)]

    def broadcast(self, mine: bytes) -> bytes:
        self._round += 1
        if self.rank == 0:
            self._ask("set", f"{self._round} 0", mine.decode("latin-1"))
            return mine
        return self._ask("get", f"{self._round} 0").encode("latin-1")

    def finish(self) -> None:
        """Rank 0 stays until the others have said that they go: the words are its own."""
        self.gather(b"")
        if self.rank == 0:
            for r in range(1, self.size):
                self._ask("get", f"bye {r}")
        else:
            with contextlib.suppress(OSError):  # rank 0 may go as soon as it has heard it
                self._ask("set", f"bye {self.rank}", "")
        self._stream.close()


def _connect(host: str, port: int, limit_s: float) -> socket.socket:
    deadline = time.monotonic() + limit_s
    while True:
        try:
            line = socket.create_connection((host, port), timeout=max(deadline - time.monotonic(), 0.1))
            line.settimeout(None)
            return line
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _serve(listener: socket.socket) -> None:
    words: dict[str, str] = {}
    news = threading.Condition()

    def one(line: socket.socket) -> None:
        stream = line.makefile("rwb")
        with contextlib.suppress(OSError, ValueError):
            for raw in stream:
                verb, key, *value = json.loads(raw)
                with news:
                    if verb == "set":
                        words[key] = value[0]
                        news.notify_all()
                    else:
                        while key not in words:
                            news.wait()
                    answer = words[key]
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()

    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()


def by_environment(environ: Mapping[str, str]) -> Group:
    """An MPI launcher's, PyTorch's variables, or alone. OSError without MPI's library, KeyError or ValueError for half an address."""
    if launched(environ):
        return Mpi()
    if int(environ.get("WORLD_SIZE", "1")) > 1:
        return Store(int(environ["RANK"]), int(environ["WORLD_SIZE"]), environ["MASTER_ADDR"], int(environ["MASTER_PORT"]))
    return Alone()
