"""The node's GPUs and RDMA adapters, as far as a program in a lab can use them: a service on a socket.

A stand-in of a GPU program keeps one connection open for its life, one JSON line each way per request. Its queue pairs and its place
on the GPU are gone when the connection is. No tool under test talks to it; what it sees are counters, queue pairs and processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabrictool.lab.nodeside import capacity, journal, sysfs, wire
from fabrictool.lab.nodeside.counts import add
from fabrictool.lab.nodeside.state import Node, edit, load

ADDRESS = "/run/lab-hardware"
STUCK_S = 3600.0
GPU_MEMORY_MIB = 512  # what such a program takes
MEMORY_MIB = {"NVIDIA H20": 97871, "NVIDIA H200": 143771, "NVIDIA L40S": 46068}
UNIFIED_MIB = 122570  # of the whole node: GPU and CPUs share it
RETRIES = 8  # of a packet, the first time included: NCCL_IB_RETRY_CNT is 7

Reply = dict[str, Any]


def start(shared: Path) -> None:
    """Listen, then serve in a child of the caller."""
    Path(ADDRESS).unlink(missing_ok=True)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.bind(ADDRESS)
    os.chmod(ADDRESS, 0o666)
    line.listen(128)
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            with contextlib.suppress(OSError):
                peer, _ = line.accept()
                if os.fork() == 0:
                    line.close()
                    _serve(peer, shared)
                    os._exit(0)
                peer.close()
    line.close()


def _serve(peer: socket.socket, shared: Path) -> None:
    pid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    session = Session(shared, pid)
    stream = peer.makefile("rwb")
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # it ended, or is no program of the lab
        for line in stream:
            asked = json.loads(line)
            stream.write(json.dumps(session.answer(asked)).encode() + b"\n")
            stream.flush()
    session.close()


class Session:
    """One program's use of the hardware."""

    def __init__(self, shared: Path, pid: int, wait: Callable[[float], None] = time.sleep) -> None:
        self.shared, self.pid, self.wait = shared, pid, wait
        self.pairs: dict[str, int] = {}  # queue pairs by RDMA device
        self.owed: dict[str, float] = {}
        self.calls = 0
        self.computes = False

    @contextmanager
    def _edit(self) -> Iterator[Node]:
        with edit(self.shared / "state.json") as node:
            yield node

    def answer(self, asked: Reply) -> Reply:
        """KeyError or TypeError for what is no request."""
        verb = asked.pop("do")
        if verb == "gpu":
            return self.gpu(**asked)
        if verb == "look":
            node = load(self.shared / "state.json")
            return {"model": node.gpu, "count": node.gpus}
        if verb == "context":
            if not load(self.shared / "state.json").gpu_ok:
                self.wait(STUCK_S)
            return {}
        if verb == "adapters":
            return {"adapters": capacity.adapters(load(self.shared / "state.json"))}
        if verb == "open":
            return self.open(**asked)
        if verb == "carry":
            return self.carry(**asked)
        if verb == "fail":
            return self.fail(**asked)
        raise KeyError(verb)

    def gpu(self, name: str, index: int) -> Reply:
        """Take a GPU."""
        with self._edit() as node:
            self.computes = True
            node.compute.append({"pid": self.pid, "name": name, "kind": "C", "memory_mib": GPU_MEMORY_MIB, "gpu": index})
        return {"model": node.gpu, "count": node.gpus, "gpu_direct": node.gpu_direct, "wrong": node.wrong_elements,
                "tcp_gbytes": node.tcp_gbytes, "noise": node.noise, "seed": node.seed, "plugin": node.nccl_plugin,
                "old_json": node.old_json, "memory_mib": MEMORY_MIB.get(node.gpu, UNIFIED_MIB)}

    def open(self, rdma: str, pairs: int, traffic_class: int) -> Reply:
        """Queue pairs. The answer says which class their packets carry."""
        with self._edit() as node:
            fn = wire.of(node, rdma)
            if fn is None:
                return {"error": "No such device"}
            node.qps[rdma] = node.qps.get(rdma, 0) + pairs
            self.pairs[rdma] = self.pairs.get(rdma, 0) + pairs
            return {"tos": wire.tos_of(fn, traffic_class)}

    def carry(self, flows: list[Reply], calls: int) -> Reply:
        """Count traffic, `calls` collectives of it. The answer says what got lost on the way here, by RDMA device."""
        lost: dict[str, int] = {}
        with self._edit() as node:
            for flow in (wire.Flow(**f) for f in flows):
                fn = wire.of(node, flow.rdma)
                if fn is not None:
                    lost[flow.rdma], self.owed[flow.rdma] = wire.carry(fn, flow, self.owed.get(flow.rdma, 0.0))
        sysfs.show_counters(self.shared)
        self.calls += calls
        if 0 < node.kills_after <= self.calls:
            self._kill()
        return {"lost": {rdma: n for rdma, n in lost.items() if n}}

    def fail(self, rdma: str) -> Reply:
        """A queue pair gave up after its last retry. Only counters say so."""
        with self._edit() as node:
            fn = wire.of(node, rdma)
            if fn is not None and not fn.frozen:
                add(fn, "local_ack_timeout_err", RETRIES)
                add(fn, "req_transport_retries_exceeded", 1)
        sysfs.show_counters(self.shared)
        return {}

    def _kill(self) -> None:
        """The kernel is out of memory, and takes the largest program."""
        name = Path(f"/proc/{self.pid}/comm").read_text().strip() if Path(f"/proc/{self.pid}").exists() else "python3"
        with self._edit() as node:
            node.kernel_log += journal.out_of_memory(self.pid, name, time.time())
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        if not self.pairs and not self.computes:
            return
        with self._edit() as node:
            for rdma, number in self.pairs.items():
                left = node.qps.get(rdma, 0) - number
                if left > 0:
                    node.qps[rdma] = left
                else:
                    node.qps.pop(rdma, None)
            node.compute = [p for p in node.compute if p["pid"] != self.pid]
