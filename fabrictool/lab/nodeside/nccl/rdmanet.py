"""The RDMA transport: queue pairs between the adapters that both ends give a channel, each from its own list. Bytes are counted by the
adapters, along paths that carry a packet of that size now."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictool.lab.nodeside.capacity import total
from fabrictool.lab.nodeside.nccl import adapters
from fabrictool.lab.nodeside.nccl.adapters import Adapter
from fabrictool.lab.nodeside.nccl.device import Hardware
from fabrictool.lab.nodeside.nccl.errors import REMOTE, SYSTEM, NcclError
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.nets import Layout
from fabrictool.lab.nodeside.nccl.params import WITH_PAIRS, Params
from fabrictool.lab.nodeside.nccl.rdmapath import SMALL, Door
from fabrictool.lab.nodeside.nccl.ring import Edge
from fabrictool.lab.nodeside.wire import MTUS, active_mtu

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
FIRST_QPN = 576
ECE = "{supported=1, vendor_id=0x15b3, options=0x30000002, comp_mask=0x0}"


@dataclass(frozen=True)
class Far:
    """The other end's adapter, as it told of itself. `gid` "" = there is none."""

    gid: str
    address: str
    port: int
    mtu: int
    tos: int


class RdmaNet:
    """`found`: the adapters in NCCL's order. `gpu_direct`: they read the GPU's memory themselves."""

    name = "IB"

    def __init__(self, found: Sequence[Adapter], hardware: Hardware, gpu_direct: bool, log: Log, params: Params) -> None:
        self.found, self.hardware, self.gpu_direct, self.log, self.params = found, hardware, gpu_direct, log, params
        rows = {r["rdma"]: r for r in hardware.adapters()}
        near = [i for i, a in enumerate(found) if not rows.get(a.name, {}).get("far")]
        self._rows, self.used = rows, near or list(range(len(found)))
        self._dice = random.Random(os.getpid())
        self._doors: dict[int, Door] = {}
        self._tos: dict[int, int] = {}
        self._ends: dict[Edge, Far] = {}
        self._layout: Layout | None = None

    def index(self, edge: Edge) -> int:
        """This end's adapter of an edge, by its place in this end's list: channels take turns."""
        return self.used[edge.channel % len(self.used)]

    def tail(self, edge: Edge) -> str:
        return f"IB/{self.index(edge)}{'/GDRDMA' if self.gpu_direct else ''}"

    def gid(self, adapter: Adapter) -> tuple[int, str]:
        """Index and text of the GID that connections use; "" for an empty entry."""
        index = adapters.gid_index(adapter, self.params.number("IB_GID_INDEX", -1))
        text = adapter.gids[index][0] if index < len(adapter.gids) else ""
        return index, "" if text == NO_GID else text

    def offer(self) -> Any:
        """Of every adapter: GID, address and port of its door, MTU, and the class that its packets carry."""
        self.params.look_at(WITH_PAIRS)
        said = []
        for i, adapter in enumerate(self.found):
            _, gid = self.gid(adapter)
            address = adapters.ipv4(gid) or gid
            with contextlib.suppress(OSError, ValueError):
                self._doors[i] = Door(address, adapter.interface)
            door = self._doors.get(i)
            said.append([gid, address, door.port if door else 0, active_mtu(_mtu(adapter.interface)), self._open(i)])
        return {"used": self.used, "adapters": said}

    def _open(self, index: int) -> int:
        if index in self.used:
            pairs = self.params.number("IB_QPS_PER_CONNECTION", 1)
            self._tos[index] = self.hardware.open(self.found[index].name, 2 * pairs, self.params.number("IB_TC", 0))
        return self._tos.get(index, 0)

    def connect(self, layout: Layout, offers: Sequence[Any]) -> None:
        self._layout = layout
        seen: dict[tuple[int, str], int] = {}
        for edge in (*layout.arriving(), *layout.leaving()):
            outward = layout.places[edge.source].process == layout.process
            process = layout.places[edge.target if outward else edge.source].process
            index = self.index(edge)
            theirs = offers[process]["used"]
            far = Far(*offers[process]["adapters"][theirs[edge.channel % len(theirs)]])
            self._ends[edge] = far
            self._say_pair(index, far)
            if (index, far.address) not in seen:
                seen[index, far.address] = 0
                self._ready(index, far)

    def _ready(self, index: int, far: Far) -> None:
        """Bring a queue pair to RTR: the other end's address has to be reachable. NcclError in the library's words."""
        adapter = self.found[index]
        at, gid = self.gid(adapter)
        door = self._doors.get(index)
        if not gid or not far.gid:
            code, why = 22, "Invalid argument"
        elif door is None:
            code, why = 19, "No such device"
        else:
            code = door.reaches(far.address, far.port, SMALL)
            why = os.strerror(code)
        if code:
            text = (f"Call to ibv_modify_qp failed with {code} {why}, on dev {adapter.name}:1, curr state INIT, next state RTR, "
                    f"local GID index {at}, local GID {_short(gid)}, remote GID {_short(far.gid)}")
            self.log.warn("misc/ibvwrap.cc:318", text)
            for where in ("transport/net_ib.cc:1246", "transport/net_ib.cc:1688", "transport/net.cc:775"):
                self.log.trace(where, SYSTEM)
            raise NcclError(SYSTEM, text)

    def _say_pair(self, index: int, far: Far) -> None:
        adapter, qpn, key = self.found[index], FIRST_QPN + self._dice.randrange(4096), self._dice.randrange(1 << 20, 1 << 21)
        at, gid = self.gid(adapter)
        head = f"NET/IB: NCCL Dev {index} IbDev {index} Port 1 qpn {qpn}"
        mtu = MTUS.index(self._path_mtu(index, far)) + 1
        self.log.info("NET", f"{head} mtu {mtu} GID {at} ({adapters.shown_gid(gid)}) fifoRkey=0x{key:x} fifoLkey=0x{key:x}")
        for step in ("query_ece", "set_ece"):
            self.log.info("NET", f"NET/IB: IbDev {index} Port 1 qpn {qpn} {step}={ECE}")

    def _path_mtu(self, index: int, far: Far) -> int:
        return min(active_mtu(_mtu(self.found[index].interface)), far.mtu)

    def gbytes(self, layout: Layout) -> float:
        """Of all adapters that the node's ranks use: each process tells the node's."""
        rows = [self._rows[self.found[i].name] for i in self.used if self.found[i].name in self._rows]
        return total(rows)

    def move(self, sizes: Mapping[Edge, int], calls: int) -> Any:
        assert self._layout is not None
        self._carries()
        flows: dict[tuple[int, int, int], list[int]] = {}
        for edge, far in self._ends.items():
            outward = self._layout.places[edge.source].process == self._layout.process
            index = self.index(edge)
            flow = flows.setdefault((index, self._path_mtu(index, far), far.tos), [0, 0])
            flow[0 if outward else 1] += sizes[edge]
        self._lost = self.hardware.carry([
            {"rdma": self.found[i].name, "sent": sent, "received": received, "mtu": mtu, "tos": self._tos.get(i, 0), "peer_tos": tos}
            for (i, mtu, tos), (sent, received) in flows.items()], calls)
        return self._reports()

    def _carries(self) -> None:
        """Every path still takes a full packet. NcclError as the adapter gives up."""
        seen = set()
        for edge, far in self._ends.items():
            index = self.index(edge)
            if (index, far.address) in seen:
                continue
            seen.add((index, far.address))
            door = self._doors[index]
            if door.reaches(far.address, far.port, self._path_mtu(index, far)):
                adapter = self.found[index]
                self.hardware.fail(adapter.name)
                text = (f"NET/IB: Got completion from peer {far.address}<{far.port}> with status=IBV_WC_RETRY_EXC_ERR(12) "
                        f"opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send localGid {_short(self.gid(adapter)[1])} "
                        f"remoteGids{_short(far.gid)} hca {adapter.name}")
                self.log.warn("transport/net_ib.cc:2461", text)
                for where in ("transport/net.cc:1298", "proxy.cc:965"):
                    self.log.trace(where, REMOTE)
                raise NcclError(REMOTE, text)

    def _reports(self) -> list[list[Any]]:
        """To whom this end owes a request to send again: [process, channel, packets]."""
        assert self._layout is not None
        found = []
        for edge in self._layout.arriving():
            name = self.found[self.index(edge)].name
            number = self._lost.pop(name, 0)
            if number:
                found.append([self._layout.places[edge.source].process, edge.channel, number])
        return found

    def heard(self, words: Sequence[Any]) -> None:
        assert self._layout is not None
        flows = []
        for channel, number in ((c, n) for said in words for process, c, n in said if process == self._layout.process):
            i = self.used[channel % len(self.used)]
            flows.append({"rdma": self.found[i].name, "sent": 0, "received": 0, "mtu": MTUS[-1], "tos": self._tos.get(i, 0),
                          "missed": number})
        if flows:
            self.hardware.carry(flows, 0)

    def close(self) -> None:
        for door in self._doors.values():
            door.close()


def _mtu(interface: str) -> int:
    try:
        with open(f"/sys/class/net/{interface}/mtu") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 1500


def _short(gid: str) -> str:
    """As inet_ntop writes it."""
    v4 = adapters.ipv4(gid)
    if v4:
        return f"::ffff:{v4}"
    try:
        return str(ipaddress.IPv6Address(gid))
    except ValueError:
        return "::"
