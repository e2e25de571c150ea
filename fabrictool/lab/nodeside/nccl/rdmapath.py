"""Whether the network carries RDMA packets between two adapters: a real datagram of the size of the packets goes there, and an answer
comes back. So routes, cables and the switch's MTU limit RDMA in a lab as they do in life."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import threading
from typing import Any

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE = 23, 3
HEADERS = 16  # bytes of BTH and ICRC, which here lie in the datagram with the payload
TRIES, WAIT_S = 8, 0.4  # as often as an adapter tries again; real ones wait some seconds each
SMALL = 64


class Door:
    """An adapter's own address: answers the probes of others, and sends some. OSError when the address is not there."""

    def __init__(self, address: str, interface: str) -> None:
        self.address = address
        scope = socket.if_nametoindex(interface) if ipaddress.ip_address(address).is_link_local else 0
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._family, self._scope = family, scope
        self._answers = self._socket(interface)
        self._asks = self._socket(interface)
        self._asks.settimeout(WAIT_S)
        self.port: int = self._answers.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _socket(self, interface: str) -> socket.socket:
        line = socket.socket(self._family, socket.SOCK_DGRAM)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        if self._family == socket.AF_INET:
            line.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
            line.bind((self.address, 0))
        else:
            line.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
            line.bind((self.address, 0, 0, self._scope))
        return line

    def _serve(self) -> None:
        while True:
            try:
                data, sender = self._answers.recvfrom(65536)
            except OSError:
                return
            if not sender:  # shut down
                return
            with contextlib.suppress(OSError):
                self._answers.sendto(data[:SMALL], sender)

    def reaches(self, address: str, port: int, size: int) -> int:
        """0, or the errno of a queue pair that gets no answer. `size`: bytes of payload in one packet."""
        there: tuple[Any, ...] = (address, port) if self._family == socket.AF_INET else (address, port, 0, self._scope)
        data = bytes(size + HEADERS)
        for _ in range(TRIES):
            try:
                self._asks.sendto(data, there)
                self._asks.recvfrom(SMALL)
                return 0
            except TimeoutError:
                continue
            except OSError as error:
                if error.errno in (errno.ENETUNREACH, errno.EINVAL):
                    return errno.ENETUNREACH
                if error.errno == errno.EMSGSIZE:
                    continue
        return errno.ETIMEDOUT

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._answers.shutdown(socket.SHUT_RDWR)
        self._answers.close()
        self._asks.close()
