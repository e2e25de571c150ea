"""This process's connection to the node's GPUs and adapters (hardware.py, in the node's service)."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any

ADDRESS = "/run/lab-hardware"


@dataclass(frozen=True)
class Gpu:
    """What CUDA tells. `wrong`: elements of a result that this GPU gets wrong."""

    model: str
    count: int
    gpu_direct: bool
    wrong: int
    tcp_gbytes: float
    noise: float
    seed: int
    plugin: dict[str, str]
    old_json: bool
    memory_mib: int


class Hardware:
    """Open as long as the process uses the hardware."""

    def __init__(self, address: str = ADDRESS) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.connect(address)
        self._stream = self._line.makefile("rwb")

    def ask(self, verb: str, **what: object) -> dict[str, Any]:
        """OSError when the node's service has gone."""
        self._stream.write(json.dumps({"do": verb, **what}).encode() + b"\n")
        self._stream.flush()
        line = self._stream.readline()
        if not line:
            raise OSError("the node's hardware does not answer")
        found: dict[str, Any] = json.loads(line)
        return found

    def gpu(self, name: str, index: int) -> Gpu:
        """Take a GPU: from here on the process is one of its users."""
        return Gpu(**self.ask("gpu", name=name, index=index))

    def adapters(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.ask("adapters")["adapters"]
        return rows

    def open(self, rdma: str, pairs: int, traffic_class: int) -> int:
        """Queue pairs on a device; the class that their packets carry."""
        return int(self.ask("open", rdma=rdma, pairs=pairs, traffic_class=traffic_class).get("tos", 0))

    def carry(self, flows: list[dict[str, Any]], calls: int) -> dict[str, int]:
        """Count traffic; packets lost on the way here, by RDMA device."""
        lost: dict[str, int] = self.ask("carry", flows=flows, calls=calls)["lost"]
        return lost

    def fail(self, rdma: str) -> None:
        self.ask("fail", rdma=rdma)

    def close(self) -> None:
        self._stream.close()
        self._line.close()
