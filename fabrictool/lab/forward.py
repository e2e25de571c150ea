"""The lab's forwarder: listens on 127.0.0.1 of the machine, connects from inside the lab's control namespace.

So plain ssh, pyinfra and others reach a node at 127.0.0.1:PORT although no interface of the lab is in the machine's network. A
process of its own: `forward.py PLAN.json`. One JSON line on its socket changes how a node's port behaves (or asks it to end).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fabrictool.lab.nodeside.syscalls import CLONE_NEWNET, setns

CHUNK = 65536
NEWKEYS = 21  # SSH_MSG_NEWKEYS, RFC 4253 section 7.3: after it all is encrypted
CONNECT_S = 10
MODES = ("ok", "closed", "hang-before-banner", "hang-in-login")


@dataclass
class Door:
    """One node's port. `server` None while closed."""

    address: str
    port: int
    mode: str = "ok"
    server: asyncio.Server | None = None


class UntilNewKeys:
    """Lets the server's bytes through up to and with its NEWKEYS: the key exchange succeeds, then nothing more comes."""

    def __init__(self) -> None:
        self.buffer, self.banner, self.stop = b"", False, False

    def pass_on(self, data: bytes) -> bytes:
        """The part of `data` that may go to the client."""
        self.buffer += data
        out = b""
        while not self.stop:
            size = self.buffer.find(b"\n") + 1 if not self.banner else self._packet()
            if not 0 < size <= len(self.buffer):
                break
            packet, self.buffer = self.buffer[:size], self.buffer[size:]
            out += packet
            self.stop = self.banner and packet[5] == NEWKEYS
            self.banner = True
        return out

    def _packet(self) -> int:
        return int.from_bytes(self.buffer[:4], "big") + 4 if len(self.buffer) >= 6 else 0


class Forwarder:
    """All doors of a lab, and the two network namespaces between which this process goes to and fro."""

    def __init__(self, doors: dict[str, Door], control: str) -> None:
        self.doors = doors
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.lab = os.open(control, os.O_RDONLY)

    async def open(self, door: Door) -> None:
        """Listen, in the machine's namespace. Port 0 becomes the one that was free."""
        setns(self.home, CLONE_NEWNET)
        try:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", door.port))
            listener.listen(256)
        finally:
            setns(self.lab, CLONE_NEWNET)
        listener.setblocking(False)
        door.port = listener.getsockname()[1]

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.connection(door, reader, writer)

        door.server = await asyncio.start_server(serve, sock=listener, limit=CHUNK)

    async def connection(self, door: Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mode = door.mode
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            if mode == "hang-before-banner":
                while await reader.read(CHUNK):
                    pass
                return
            far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(door.address, 22), CONNECT_S)
            gate = UntilNewKeys() if mode == "hang-in-login" else None
            try:
                await asyncio.gather(pump(reader, far_writer, None), pump(far_reader, writer, gate))
            finally:
                far_writer.close()
        writer.close()

    async def set_mode(self, name: str, mode: str) -> None:
        door = self.doors[name]
        if mode not in MODES:
            raise ValueError(mode)
        if mode == "closed" and door.server:
            door.server.close()
            door.server = None
        elif mode != "closed" and door.server is None:
            await self.open(door)
        door.mode = mode

    async def command(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """{"node": N, "mode": M} -> "ok" or what is wrong."""
        try:
            asked = json.loads(await reader.readline())
            await self.set_mode(asked["node"], asked["mode"])
            answer = "ok"
        except (ValueError, KeyError, OSError) as error:
            answer = f"{type(error).__name__}: {error}"
        writer.write(answer.encode() + b"\n")
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: UntilNewKeys | None) -> None:
    """Bytes in one direction until that side ends; then the other side hears that it has ended."""
    transport = writer.get_extra_info("socket")
    if transport is not None:
        transport.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while data := await reader.read(CHUNK):
            writer.write(gate.pass_on(data) if gate else data)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof() if writer.can_write_eof() else writer.close()


async def main(path: Path) -> None:
    plan = json.loads(path.read_text())
    doors = {name: Door(address, port) for name, (address, port) in plan["doors"].items()}
    forwarder = Forwarder(doors, plan["control"])
    setns(forwarder.lab, CLONE_NEWNET)
    for door in doors.values():
        await forwarder.open(door)
    # A UNIX socket belongs to no network namespace when it has a path.
    # Bound by a relative name: the whole path may be longer than the 107 bytes that such an address holds.
    os.chdir(path.parent)
    control = await asyncio.start_unix_server(forwarder.command, plan["socket"])
    os.chmod(plan["socket"], 0o600)
    os.chdir("/")
    print(json.dumps({"pid": os.getpid(), "ports": {name: door.port for name, door in doors.items()}}), flush=True)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 1)
    async with control:
        await control.serve_forever()


if __name__ == "__main__":
    if os.fork():  # the starter does not have to stay to wait for it
        os._exit(0)
    os.setsid()
    asyncio.run(main(Path(sys.argv[1])))
